# shellcheck shell=bash
# Sourced by scripts/test. Enters: MOONTAP_CACHE, MOONTAP_CLAUDE, MOONTAP_MUST_RUN, npm on PATH.
# Leaves: the path of the real Claude Code for tests/e2e, installed once into a cache folder
# outside the checkout. Never uses or changes a Claude Code that a person has installed.

# One version: what its log calls a repair is what tests/e2e counts.
claude_version=2.1.328

# claude_works FILE: does it start, and is it that version? With a HOME of its own, so that it
# neither reads nor writes a person's settings.
claude_works() {
    local home said
    home=$(mktemp -d) || return
    said=$(HOME="$home" CLAUDE_CONFIG_DIR="$home/.claude" DISABLE_AUTOUPDATER=1 \
        "$1" --version 2>/dev/null </dev/null) || said=''
    rm -rf "$home"
    [ "${said%% *}" = "$claude_version" ]
}

# install_claude FOLDER: prints the reason where it fails; npm's output is then in FOLDER.log.
install_claude() {
    local folder=$1 file="$1/node_modules/.bin/claude"
    if [ -f "$folder/.checked" ] && [ -x "$file" ]; then return 0; fi
    if ! claude_works "$file"; then
        if ! command -v npm >/dev/null; then
            echo "npm is missing"
            return 1
        fi
        say "installing Claude Code $claude_version for tests/e2e into $folder (only now)"
        # Beside its place and then moved: a download that was cut short leaves nothing there.
        rm -rf "$folder" "$folder.part" && mkdir -p "$folder.part" || return
        # Its install script puts the program in place, whatever npm is told to do elsewhere.
        if ! npm install --prefix "$folder.part" --ignore-scripts=false --no-fund --no-audit \
            "@anthropic-ai/claude-code@$claude_version" </dev/null >"$folder.log" 2>&1; then
            echo "npm install failed, see $folder.log"
            return 1
        fi
        mv "$folder.part" "$folder" || return
        if ! claude_works "$file"; then
            echo "$file --version does not say $claude_version, see $folder.log"
            return 1
        fi
    fi
    : >"$folder/.checked"
    rm -f "$folder.log"
}

# ensure_claude: sets and exports MOONTAP_CLAUDE. Without Claude Code: one line with the reason,
# and failure only under MOONTAP_MUST_RUN=1, where a skipped test would hide a gap.
ensure_claude() {
    local home=~ cache folder reason
    cache=${MOONTAP_CACHE:-${XDG_CACHE_HOME:-$home/.cache}/moontap}
    folder="$cache/claude-$claude_version"
    if [ -n "${MOONTAP_CLAUDE:-}" ]; then return 0; fi
    mkdir -p "$cache" || return
    if reason=$(with_lock "$folder.lock" install_claude "$folder"); then
        export MOONTAP_CLAUDE="$folder/node_modules/.bin/claude"
    elif [ "${MOONTAP_MUST_RUN:-}" = 1 ]; then
        say "Claude Code is needed here: $reason"
        if [ -f "$folder.log" ]; then tail -n 20 "$folder.log" >&2; fi
        return 1
    else
        say "the tests with the real Claude Code are skipped: $reason"
    fi
}
