# shellcheck shell=bash
# Sourced by scripts/test. Enters: MOONTAP_CHROMIUM, MOONTAP_MUST_RUN, PATH.
# Leaves: the browser and the terminal in which tests/e2e look at mitmweb and at mitmproxy's
# console. Installs nothing: `.ci/run` does, where apt-get can.

# find_chromium: prints a Chromium, or the reason why there is none.
find_chromium() {
    local name
    if [ -n "${MOONTAP_CHROMIUM:-}" ]; then
        if [ -x "$MOONTAP_CHROMIUM" ]; then
            printf '%s\n' "$MOONTAP_CHROMIUM"
            return 0
        fi
        echo "MOONTAP_CHROMIUM=$MOONTAP_CHROMIUM is no program"
        return 1
    fi
    for name in chromium chromium-browser google-chrome; do
        if type -P "$name"; then return 0; fi
    done
    echo "no chromium, chromium-browser or google-chrome on PATH (on Debian: apt-get install chromium)"
    return 1
}

# find_tmux: the same for tmux.
find_tmux() {
    type -P tmux || { echo "no tmux on PATH (on Debian: apt-get install tmux)" && return 1; }
}

# ensure_lookers: exports MOONTAP_CHROMIUM. What is missing is said in a line each, and is a failure
# only under MOONTAP_MUST_RUN=1, where a skipped test would hide a gap.
ensure_lookers() {
    local found missing=''
    if found=$(find_chromium); then
        export MOONTAP_CHROMIUM="$found"
    else
        missing=1
        _not_looked "in a browser" "$found"
    fi
    if ! found=$(find_tmux); then
        missing=1
        _not_looked "in a terminal" "$found"
    fi
    [ -z "$missing" ] || [ "${MOONTAP_MUST_RUN:-}" != 1 ]
}

# _not_looked WHERE REASON
_not_looked() {
    if [ "${MOONTAP_MUST_RUN:-}" = 1 ]; then
        say "the tests $1 are needed here: $2"
    else
        say "the tests $1 are skipped: $2"
    fi
}
