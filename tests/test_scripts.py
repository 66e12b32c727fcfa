"""What scripts/demo, scripts/test and their shell library do on machines made up in a folder.

Each case has a PATH, a HOME and a pyenv of its own. An interpreter there is the one that runs the
tests under another version number; its `-m venv` and `-m pip` only note that they were called, so
no case needs the network. The real set-up is what runs before these tests do.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BASH = shutil.which("bash") or "bash"
TOOLS = ("bash", "cat", "chmod", "dirname", "flock", "mkdir", "mktemp", "mv", "rm", "sh", "tail")

INTERPRETER = r'''
"""argv: version, "venv" or "no-venv", the log, the shim's own path, then Python's arguments."""
import os, shutil, sys, types
from pathlib import Path

version, venv, log, me, *args = sys.argv[1:]
note = "code" if "-c" in args else " ".join(args)
with open(log, "a") as file:
    file.write(note + "\n")
if "-c" in args:
    at = args.index("-c")
    sys.argv = ["-c", *args[at + 2 :]]
    sys.version, sys.version_info = version, tuple(map(int, version.split(".")))
    sys.modules["moontap"] = types.ModuleType("moontap")
    if venv == "no-venv":
        sys.modules["ensurepip"] = None
    exec(args[at + 1].lstrip())
elif args[:2] == ["-m", "venv"]:
    home = Path(args[2], "bin")
    home.mkdir(parents=True)
    shutil.copy(me, home / "python")
elif args[:2] == ["-m", "pip"]:
    if "PIP_FAILS" in os.environ:
        sys.exit("pip: no network")
    for command in ("moontap", "ruff", "mypy"):
        file = Path(me).with_name(command)
        file.write_text(f'#!/bin/sh\necho {command} "$@" >>"{log}"\n[ "$FAILS" != {command} ]\n')
        file.chmod(0o755)
'''

CLAUDE = """#!/bin/sh
echo claude "$@" "$HOME" >>"{log}"
echo "{version} (Claude Code)"
"""

NPM = """#!/bin/sh
echo npm "$@" >>"{log}"
[ "{version}" != fails ] || exit 1
mkdir -p "$3/node_modules/.bin"
cat >"$3/node_modules/.bin/claude" <<'END'
{claude}END
chmod +x "$3/node_modules/.bin/claude"
"""


@dataclass
class Machine:
    """A made-up machine: its folders, and what was started on it in `calls`."""

    base: Path
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.bin = self.base / "bin"
        self.home = self.base / "home"
        self.checkout = self.base / "checkout"
        self.log = self.base / "log"
        for folder in (self.bin, self.home, self.checkout):
            folder.mkdir()
        self.log.touch()
        for tool in TOOLS:
            if found := shutil.which(tool):
                (self.bin / tool).symlink_to(found)
        (self.base / "interpreter.py").write_text(INTERPRETER)
        shutil.copytree(ROOT / "scripts/lib", self.checkout / "scripts/lib")
        for name in ("demo", "test"):
            shutil.copy(ROOT / "scripts" / name, self.checkout / "scripts")
        for name in ("pyproject.toml", "constraints.txt"):
            shutil.copy(ROOT / name, self.checkout)

    def script(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    def python(self, path: Path, version: str) -> Path:
        """An interpreter at `path`. `version`: "3.13", "3.13 no-venv", or "dead" (always fails)."""
        if version == "dead":
            return self.script(path, "#!/bin/sh\nexit 127\n")
        number, _, venv = version.partition(" ")
        run = f'"{sys.executable}" -I -S "{self.base}/interpreter.py"'
        args = f'{number} "{venv or "venv"}" "{self.log}" "$0" "$@"'
        return self.script(path, f"#!/bin/sh\nexec {run} {args}\n")

    def environment(self, **env: str) -> dict[str, str]:
        return {"PATH": str(self.bin), "HOME": str(self.home)} | self.env | env

    def run(self, *command: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [BASH, *command],
            env=self.environment(**env),
            cwd=self.base,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def library(self, code: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run shell code with the library loaded, as strictly as the scripts do."""
        lib = self.checkout / "scripts/lib"
        head = f'set -euo pipefail; root="{self.checkout}"; . "{lib}/env.sh"; . "{lib}/claude.sh"; '
        head += f'. "{lib}/browser.sh"; '
        return self.run("-c", head + code, **env)

    def calls(self) -> list[str]:
        """What was started since the last call of this, the look-ups by `-c` left out."""
        lines = [line for line in self.log.read_text().splitlines() if line != "code"]
        self.log.write_text("")
        return lines

    def demo(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        return self.run(self.checkout / "scripts/demo", *args, **env)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def ready(machine: Machine) -> Machine:
    """A machine on which scripts/demo has run once."""
    machine.python(machine.bin / "python3.13", "3.13.1")
    assert machine.demo().returncode == 0
    machine.calls()
    return machine


FOUND: list[tuple[str, dict[str, str], str]] = [
    ("the plain name", {"bin/python3": "3.12"}, "bin/python3"),
    ("a name with its version first", {"bin/python3": "3.12", "bin/python3.13": "3.13"}, "3.13"),
    (
        "a version that was tried first",
        {"bin/python3.14": "3.14", "bin/python3.12": "3.12"},
        "3.12",
    ),
    ("a newer one if there is no other", {"bin/python3.14": "3.14"}, "bin/python3.14"),
    ("next major version", {"bin/python3": "4.0"}, "bin/python3"),
    ("PATH before pyenv", {"bin/python3.12": "3.12", "pyenv/3.13.0": "3.13"}, "bin/python3.12"),
    ("pyenv behind an old one", {"bin/python3": "3.11", "pyenv/3.12.1": "3.12"}, "versions/3.12.1"),
    ("the better of pyenv's", {"pyenv/3.12.9": "3.12", "pyenv/3.13.0": "3.13"}, "versions/3.13.0"),
    ("pyenv's shim of no version", {"bin/python3.13": "dead", "bin/python3": "3.12"}, "python3"),
    (
        "one with venv before one without",
        {"bin/python3.13": "3.13 no-venv", "pyenv/3.12.1": "3.12"},
        "versions/3.12.1",
    ),
]

NOT_FOUND: list[tuple[str, dict[str, str], list[str]]] = [
    ("nothing", {}, ["Python 3.12 or newer", "pyenv install 3.13"]),
    (
        "too old",
        {"bin/python3": "3.11"},
        ["Python 3.12 or newer", "found only 3.11", "bin/python3"],
    ),
    ("much too old", {"bin/python": "2.7"}, ["Python 3.12 or newer", "found only 2.7"]),
    ("too old under pyenv", {"pyenv/3.11.7": "3.11"}, ["Python 3.12 or newer"]),
    ("a dead shim", {"bin/python3.13": "dead"}, ["Python 3.12 or newer"]),
    ("no venv", {"bin/python3": "3.13 no-venv"}, ["venv", "apt-get install python3.13-venv"]),
]


def install(machine: Machine, pythons: dict[str, str]) -> None:
    for where, version in pythons.items():
        folder, _, name = where.partition("/")
        if folder == "bin":
            machine.python(machine.bin / name, version)
        else:
            machine.python(machine.home / ".pyenv/versions" / name / "bin/python", version)


@pytest.mark.parametrize(("pythons", "found"), [c[1:] for c in FOUND], ids=[c[0] for c in FOUND])
def test_the_interpreter_that_is_taken(
    machine: Machine, pythons: dict[str, str], found: str
) -> None:
    install(machine, pythons)
    done = machine.library("find_python")
    assert done.returncode == 0, done.stderr
    assert done.stdout.removesuffix("\n").removesuffix("/bin/python").endswith(found)
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("pythons", "said"), [c[1:] for c in NOT_FOUND], ids=[c[0] for c in NOT_FOUND]
)
def test_one_line_where_none_fits(
    machine: Machine, pythons: dict[str, str], said: list[str]
) -> None:
    install(machine, pythons)
    done = machine.demo()
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert [part for part in said if part not in done.stderr] == []
    assert not (machine.checkout / ".venv").exists()


@pytest.mark.parametrize("variable", ["PYENV_ROOT", "MOONTAP_PYTHON"])
def test_a_variable_names_the_place(machine: Machine, variable: str) -> None:
    machine.python(machine.home / ".pyenv/versions/3.13.0/bin/python", "3.13")
    wanted = machine.python(machine.base / "other/versions/3.12.4/bin/python", "3.12")
    value = machine.base / "other" if variable == "PYENV_ROOT" else wanted
    done = machine.library("find_python", **{variable: str(value)})
    assert done.stdout == f"{wanted}\n"


def test_the_first_run_installs_and_the_second_starts_at_once(machine: Machine) -> None:
    machine.python(machine.bin / "python3.13", "3.13.1")
    first = machine.demo("--turns", "two words")
    assert first.returncode == 0, first.stderr
    calls = machine.calls()
    assert [call.split()[1] for call in calls[:-1]] == ["venv", "pip", "pip"]
    assert all("constraints.txt" in call for call in calls[1:-1])
    assert calls[-1] == "moontap demo --turns two words"

    second = machine.demo()
    assert (second.returncode, second.stderr) == (0, "")
    assert machine.calls() == ["moontap demo"]


def test_the_second_run_needs_no_interpreter_on_path(ready: Machine) -> None:
    (ready.bin / "python3.13").unlink()
    assert ready.demo().returncode == 0
    assert ready.calls() == ["moontap demo"]


def no_stamp(machine: Machine) -> None:
    (machine.checkout / ".venv/.moontap-stamp").unlink()


def no_command(machine: Machine) -> None:
    (machine.checkout / ".venv/bin/moontap").unlink()


def other_pins(machine: Machine) -> None:
    with (machine.checkout / "constraints.txt").open("a") as file:
        file.write("rich==1\n")


def other_project(machine: Machine) -> None:
    with (machine.checkout / "pyproject.toml").open("a") as file:
        file.write("# changed\n")


def interpreter_gone(machine: Machine) -> None:
    python = machine.checkout / ".venv/bin/python"
    python.unlink()
    python.symlink_to(machine.base / "no/such/python")


def interpreter_renewed(machine: Machine) -> None:
    machine.python(machine.checkout / ".venv/bin/python", "3.13.2")


def checkout_moved(machine: Machine) -> None:
    machine.checkout = machine.checkout.rename(machine.base / "moved")


@pytest.mark.parametrize(
    "change",
    [
        no_stamp,
        no_command,
        other_pins,
        other_project,
        interpreter_gone,
        interpreter_renewed,
        checkout_moved,
    ],
)
def test_a_venv_that_no_longer_fits_is_made_anew(
    ready: Machine, change: Callable[[Machine], None]
) -> None:
    left_over = ready.checkout / ".venv/left-over"
    left_over.touch()
    change(ready)
    assert ready.demo().returncode == 0
    assert ready.calls()[0].startswith("-m venv")
    assert not (ready.checkout / ".venv/left-over").exists()
    assert ready.demo().returncode == 0
    assert ready.calls() == ["moontap demo"]


def test_a_set_up_that_failed_is_not_taken_for_a_whole_one(machine: Machine) -> None:
    machine.python(machine.bin / "python3.13", "3.13.1")
    failed = machine.demo(PIP_FAILS="1")
    assert failed.returncode == 1
    assert "pip: no network" in failed.stderr
    assert not [call for call in machine.calls() if call.startswith("moontap")]
    assert machine.demo().returncode == 0


@pytest.mark.skipif(not shutil.which("flock"), reason="flock is missing: set-up is not locked")
def test_two_at_once_set_up_once(machine: Machine) -> None:
    machine.python(machine.bin / "python3.13", "3.13.1")
    both = [
        subprocess.Popen(
            [BASH, machine.checkout / "scripts/demo"],
            env=machine.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(2)
    ]
    assert [process.wait() for process in both] == [0, 0]
    calls = machine.calls()
    assert len([call for call in calls if call.startswith("-m venv")]) == 1
    assert calls.count("moontap demo") == 2


PYTEST_ARGS: list[tuple[list[str], str]] = [
    ([], "--numprocesses auto --dist worksteal"),
    (["--fast"], "-m not e2e --numprocesses auto --dist worksteal"),
    (["tests/wire", "-k", "crlf or bom"], "tests/wire -k crlf or bom"),
    (["tests/wire", "--fast"], "-m not e2e tests/wire"),
]


@pytest.mark.parametrize(("args", "passed"), PYTEST_ARGS)
def test_what_scripts_test_runs(ready: Machine, args: list[str], passed: str) -> None:
    done = ready.run(ready.checkout / "scripts/test", *args, MOONTAP_CLAUDE="/some/claude")
    assert done.returncode == 0, done.stderr
    assert ready.calls() == [
        "ruff check .",
        "ruff format --check .",
        "mypy",
        f"-m pytest {passed}",
    ]


@pytest.mark.parametrize("command", ["ruff", "mypy"])
def test_scripts_test_ends_with_the_first_failure(ready: Machine, command: str) -> None:
    done = ready.run(ready.checkout / "scripts/test", "--fast", FAILS=command)
    assert done.returncode != 0
    assert ready.calls()[-1].startswith(command)


@pytest.fixture
def claude_version(machine: Machine) -> str:
    return machine.library('printf %s "$claude_version"').stdout


def give_npm(machine: Machine, version: str) -> None:
    claude = CLAUDE.format(log=machine.log, version=version)
    machine.script(machine.bin / "npm", NPM.format(log=machine.log, version=version, claude=claude))


SHOW = 'ensure_claude; printf %s "${MOONTAP_CLAUDE:-none}"'


def test_claude_code_is_installed_and_looked_at_once(machine: Machine, claude_version: str) -> None:
    give_npm(machine, claude_version)
    first = machine.library(SHOW)
    folder = machine.home / f".cache/moontap/claude-{claude_version}"
    assert first.stdout == f"{folder}/node_modules/.bin/claude", first.stderr
    npm, claude = machine.calls()
    assert npm.endswith(f"@anthropic-ai/claude-code@{claude_version}")
    assert claude.startswith("claude --version")
    assert str(machine.home) not in claude

    assert machine.library(SHOW).stdout == first.stdout
    assert machine.calls() == []


@pytest.mark.parametrize(
    ("env", "folder"),
    [
        ({"MOONTAP_CACHE": "{base}/a", "XDG_CACHE_HOME": "{base}/b"}, "a"),
        ({"XDG_CACHE_HOME": "{base}/b"}, "b/moontap"),
    ],
)
def test_where_claude_code_is_kept(
    machine: Machine, claude_version: str, env: dict[str, str], folder: str
) -> None:
    give_npm(machine, claude_version)
    env = {name: value.format(base=machine.base) for name, value in env.items()}
    assert machine.library(SHOW, **env).stdout.startswith(f"{machine.base}/{folder}/claude-")


def test_a_claude_code_that_was_named_is_taken_as_it_is(machine: Machine) -> None:
    assert machine.library(SHOW, MOONTAP_CLAUDE="/some/claude").stdout == "/some/claude"


@pytest.mark.parametrize(
    ("npm", "reason"),
    [
        (None, "npm is missing"),
        ("fails", "npm install failed"),
        ("0.0.1", "does not say"),
    ],
)
def test_without_claude_code(machine: Machine, npm: str | None, reason: str) -> None:
    if npm:
        give_npm(machine, npm)
    skipped = machine.library(SHOW)
    assert (skipped.returncode, skipped.stdout) == (0, "none")
    last = skipped.stderr.splitlines()[-1]
    assert "are skipped" in last
    assert reason in last
    must = machine.library(SHOW, MOONTAP_MUST_RUN="1")
    assert must.returncode == 1
    assert reason in must.stderr


def give_lookers(machine: Machine, *names: str) -> None:
    for name in names:
        machine.script(machine.bin / name, "#!/bin/sh\n")


SEE = 'ensure_lookers; printf %s "${MOONTAP_CHROMIUM:-none}"'


@pytest.mark.parametrize(
    ("there", "found"),
    [
        (["chromium"], "chromium"),
        (["google-chrome"], "google-chrome"),
        (["google-chrome", "chromium-browser"], "chromium-browser"),
    ],
)
def test_the_browser_that_is_taken(machine: Machine, there: list[str], found: str) -> None:
    give_lookers(machine, *there, "tmux")
    done = machine.library(SEE, MOONTAP_MUST_RUN="1")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{machine.bin / found}", "")


def test_a_browser_that_was_named_comes_first(machine: Machine) -> None:
    give_lookers(machine, "chromium", "tmux", "mine")
    mine = str(machine.bin / "mine")
    assert machine.library(SEE, MOONTAP_CHROMIUM=mine).stdout == mine


@pytest.mark.parametrize(
    ("there", "env", "reason"),
    [
        (["tmux"], {}, "no chromium"),
        (["chromium"], {}, "no tmux"),
        (["tmux", "chromium"], {"MOONTAP_CHROMIUM": "/no/such"}, "/no/such is no program"),
    ],
)
def test_without_a_browser_or_a_terminal(
    machine: Machine, there: list[str], env: dict[str, str], reason: str
) -> None:
    give_lookers(machine, *there)
    skipped = machine.library(SEE, **env)
    assert skipped.returncode == 0
    assert "are skipped" in skipped.stderr
    assert reason in skipped.stderr
    must = machine.library(SEE, **env, MOONTAP_MUST_RUN="1")
    assert must.returncode == 1
    assert reason in must.stderr


APT_UPDATE = "apt-get update -qq"
APT_INSTALL = "apt-get install -y -qq --no-install-recommends"
LOOKERS = ["chromium", "tmux"]


@pytest.mark.parametrize(
    ("python", "npm", "lookers", "installed", "code"),
    [
        ("3.13", True, LOOKERS, [], 0),
        ("3.13", False, LOOKERS, [APT_UPDATE, f"{APT_INSTALL} nodejs npm"], 1),
        (
            "3.13",
            True,
            [],
            [
                APT_UPDATE,
                f"{APT_INSTALL} chromium fonts-noto-color-emoji fonts-dejavu-core",
                f"{APT_INSTALL} tmux",
            ],
            1,
        ),
        ("3.13 no-venv", True, LOOKERS, [APT_UPDATE, f"{APT_INSTALL} python3 python3-venv"], 2),
        (
            "3.11",
            False,
            LOOKERS,
            [
                APT_UPDATE,
                f"{APT_INSTALL} python3 python3-venv",
                f"{APT_INSTALL} nodejs npm",
            ],
            2,
        ),
    ],
)
def test_ci_installs_what_is_missing(
    machine: Machine,
    claude_version: str,
    python: str,
    npm: bool,
    lookers: list[str],
    installed: list[str],
    code: int,
) -> None:
    """The made-up apt-get installs nothing: what is missing stays so, and must be an error."""
    machine.python(machine.bin / "python3", python)
    machine.script(machine.bin / "apt-get", f'#!/bin/sh\necho apt-get "$@" >>"{machine.log}"\n')
    if npm:
        give_npm(machine, claude_version)
    give_lookers(machine, *lookers)
    shutil.copytree(ROOT / ".ci", machine.checkout / ".ci")
    done = machine.run(machine.checkout / ".ci/run", CI="true")
    calls = machine.calls()
    assert done.returncode == code, done.stderr
    assert [call for call in calls if call.startswith("apt-get")] == installed
    assert ("-m pytest --numprocesses auto --dist worksteal" in calls) == (code == 0)


def test_scripts_can_be_started() -> None:
    for name in ("scripts/demo", "scripts/test", ".ci/run"):
        assert os.access(ROOT / name, os.X_OK), name
