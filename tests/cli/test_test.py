"""`moontap test` as a process; what it writes is tried in tests/e2e/test_three_commands.py."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from moontap.demo import agent
from moontap.testing.taps import Taps
from tests.cli.commands import KEY, Moontap, files
from tests.cli.forks import Forks

# It loses a call whose id it has seen, as Claude Code does.
AGENT = """
import os
from moontap.demo import agent
tools = {"Bash": lambda arguments: "done"}
list(agent.turns(os.environ["ANTHROPIC_BASE_URL"], tools, "go", 9))
"""


@pytest.fixture(scope="module")
def flow(standin_url: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three calls of Bash, all as Bash_0, as the agent above makes them."""
    with Taps() as taps:
        tap = taps.start(standin_url, tmp_path_factory.mktemp("captures"), rewrite="off")
        list(agent.turns(f"{tap.url}/anthropic", {"Bash": lambda _: "done"}, "go", 4))
        folder = tap.close().folder
    assert folder
    return folder / "traffic.flow"


@pytest.fixture
def moontap_command(moontap_command: Moontap, forked_python: Forks) -> Moontap:
    """One whose pytest, and the tap in that, are forks too."""
    before = ("-m", "moontap.cli")
    return replace(moontap_command, forks=forked_python, before=before)


def command(code: str) -> list[str]:
    return ["--", sys.executable, "-c", code]


def test_it_fails_and_says_which_call_was_lost(moontap_command: Moontap, flow: Path) -> None:
    before = set(files(moontap_command.folder))
    done = moontap_command.run("test", str(flow), *command(AGENT))
    assert done.returncode == 1, done.stderr
    assert "tool calls did not come back with a result" in done.stdout
    assert "Bash_0 *" in done.stdout
    assert KEY not in done.stdout + done.stderr
    left = {
        path for path in set(files(moontap_command.folder)) - before if "home" not in path.parts
    }
    assert left == set()


def test_with_unique_ids_it_passes(moontap_command: Moontap, flow: Path) -> None:
    done = moontap_command.run("test", str(flow), "--rewrite", "all", *command(AGENT))
    assert done.returncode == 0, done.stdout


def test_an_agent_that_asks_for_something_else(moontap_command: Moontap, flow: Path) -> None:
    """It must not pass for want of calls, and the nearest recorded request is shown."""
    done = moontap_command.run("test", str(flow), *command(AGENT.replace('"go"', '"stop"')))
    assert done.returncode == 1
    assert "no tool call came through the tap" in done.stdout
    assert "moontap replay: no recorded request matches. Nearest: " in done.stdout


def test_it_writes_what_it_runs_and_nothing_over_it(moontap_command: Moontap, flow: Path) -> None:
    target = moontap_command.folder / "tests" / "test_mine.py"
    arguments = ("test", str(flow), "--write", "tests/test_mine.py", *command("print('hi')"))
    for _ in range(2):  # the same again is no harm
        done = moontap_command.run(*arguments)
        assert done.returncode == 1, done.stderr
        assert "wrote tests/test_mine.py" in done.stderr
    text = target.read_text("utf-8") + "# mine\n"
    target.write_text(text, "utf-8")
    done = moontap_command.run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "tests/test_mine.py is there already" in done.stderr
    assert target.read_text("utf-8") == text


def test_a_damaged_file_is_used_and_said(moontap_command: Moontap, flow: Path) -> None:
    damaged = moontap_command.folder / "damaged.flow"
    damaged.write_bytes(flow.read_bytes()[:-10])
    done = moontap_command.run("test", "damaged.flow", "--rewrite", "all", *command(AGENT))
    assert done.returncode == 2, done.stdout
    assert "1 passed" in done.stdout
    assert "moontap test: damaged.flow: left out 1 damaged record" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no.flow", "--", "true"], "no.flow: no such file or folder"),
        ([__file__, "--", "true"], "is not a flow file"),
        (["x.flow"], "no command given, as in: moontap test"),
        (["x.flow", "--", "no-such-program"], "no-such-program: command not found"),
        (["x.flow", "--write", "loop.py", "--", "true"], "pytest would not find loop.py"),
        (["x.flow", "--timeout", "0", "--", "true"], "'0' is no number of seconds"),
        (["x.flow", "--rewrite", "some", "--", "true"], "invalid choice: 'some'"),
    ],
)
def test_wrong_usage(arguments: list[str], said: str, moontap_command: Moontap) -> None:
    done = moontap_command.run("test", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
