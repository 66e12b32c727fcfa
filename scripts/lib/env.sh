# shellcheck shell=bash
# Sourced by scripts/* and .ci/run, with $root set to the checkout.
# Enters: PATH, PYENV_ROOT, MOONTAP_PYTHON (an interpreter to use instead of searching).
# Leaves: a ready $root/.venv. Never touches anything outside it but pip's own cache.
# Plain enough for the bash 3.2 of macOS.

venv="$root/.venv"
stamp="$venv/.moontap-stamp"

say() { printf 'moontap: %s\n' "$*" >&2; }

# version_of PYTHON: prints "3.13"; fails for what is not a working Python (a pyenv shim, say).
version_of() { "$1" -I -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }

# new_enough VERSION
new_enough() {
    local major=${1%%.*} minor=${1#*.}
    [ "$major" -gt 3 ] || { [ "$major" -eq 3 ] && [ "$minor" -ge 12 ]; }
}

# candidates: prints every interpreter worth a look, best first. The versions that constraints.txt
# was tried with come before newer ones, PATH before pyenv.
candidates() {
    local home=~ name pyenv version
    pyenv=${PYENV_ROOT:-$home/.pyenv}
    if [ -n "${MOONTAP_PYTHON:-}" ]; then
        printf '%s\n' "$MOONTAP_PYTHON"
        return
    fi
    for name in python3.13 python3.12 python3 python python3.14 python3.15; do
        type -aP "$name" || true
    done
    for version in 3.13 3.12 3.14 3.15; do
        for name in "$pyenv/versions/$version" "$pyenv/versions/$version".*; do
            if [ -x "$name/bin/python" ]; then printf '%s\n' "$name/bin/python"; fi
        done
    done
}

# find_python: prints a Python >= 3.12 that can make venvs. Without one: one line on stderr that
# says what to install, and status 2.
find_python() {
    local python version too_old='' no_venv=''
    while IFS= read -r python; do
        version=$(version_of "$python") || continue
        if ! new_enough "$version"; then
            too_old="${too_old:-; found only $version ($python)}"
        # Debian's python3 imports venv, yet cannot make one until python3.N-venv brings ensurepip.
        elif ! "$python" -I -c 'import ensurepip, venv' 2>/dev/null; then
            no_venv="${no_venv:-$version $python}"
        else
            printf '%s\n' "$python"
            return 0
        fi
    done < <(candidates)
    if [ -n "$no_venv" ]; then
        version=${no_venv%% *}
        say "Python $version (${no_venv#* }) has no venv module:" \
            "install it (on Debian and Ubuntu: apt-get install python$version-venv)"
    else
        say "needs Python 3.12 or newer$too_old: install python3.13 with python3.13-venv," \
            "or run \`pyenv install 3.13\`"
    fi
    return 2
}

# stamp_for PYTHON: what must be unchanged for .venv to be fit for use. A venv and the interpreter
# it was made from give the same answer. The checkout's path counts because the commands in
# .venv/bin carry it.
stamp_for() {
    "$1" -I -S -c '
import hashlib, sys
files = hashlib.sha256(b"".join(open(name, "rb").read() for name in sys.argv[2:])).hexdigest()
print(sys.version.replace("\n", " "), sys.argv[1], files, sep="\n")
' "$root" "$root/pyproject.toml" "$root/constraints.txt"
}

# ready: is .venv whole and made from these files? Asks its own Python, so that a .venv whose
# interpreter is gone counts as broken; starts neither pip nor the search for an interpreter.
ready() {
    local python="${MOONTAP_PYTHON:-$venv/bin/python}" now
    [ -f "$stamp" ] && [ -x "$venv/bin/python" ] && [ -x "$venv/bin/moontap" ] || return 1
    now=$(stamp_for "$python" 2>/dev/null) && [ "$now" = "$(cat "$stamp")" ] || return 1
    "$venv/bin/python" -I -c 'import moontap' 2>/dev/null
}

# pip_install ARGS…
pip_install() {
    PIP_DISABLE_PIP_VERSION_CHECK=1 "$venv/bin/python" -m pip install --quiet \
        --constraint "$root/constraints.txt" "$@" </dev/null >&2
}

make_venv() {
    local python
    python=$(find_python) || return
    say "making .venv with $python (only now; takes about a minute)"
    rm -rf "$venv" &&
        "$python" -m venv "$venv" >&2 &&
        # The build backend first, so that it is pinned too: pip's isolated builds take the newest.
        pip_install hatchling &&
        pip_install --no-build-isolation --editable "$root[dev]" &&
        # Last, and in one step: a set-up that was cut short has no stamp and is made anew.
        stamp_for "$venv/bin/python" >"$stamp.part" &&
        mv "$stamp.part" "$stamp" || {
        say "could not set up .venv (the reason stands above)"
        return 1
    }
}

# with_lock FILE COMMAND…: one at a time, where flock exists; the lock ends with COMMAND.
with_lock() {
    local file=$1
    shift
    if command -v flock >/dev/null; then
        { flock 9 && "$@" 9>&-; } 9>"$file"
    else
        "$@"
    fi
}

make_venv_unless_ready() { ready || make_venv; }

# ensure_env: what scripts call. Fails with 2 where no fitting Python is found.
ensure_env() { ready || with_lock "$root/.venv.lock" make_venv_unless_ready; }
