"""From "my agent looped last night" to a failing test in three commands, as the README has them.

A real agent loops behind `moontap run`, before a stand-in that reuses ids, and is stopped. The
commands are run in its project; what they leave must fail, and pass where ids are unique.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from moontap.standin import Standin, load_script
from moontap.testing.background import Background
from moontap.testing.flows import flows
from tests.cli.forks import Forks
from tests.e2e.rig import wait_until
from tests.testing.projects import ROOT, Project, entry_points

# Each of its dozen steps starts Python anew, and one of them Claude Code.
pytestmark = pytest.mark.timeout(300)

README = (ROOT / "README.md").read_text("utf-8")
SECRET = "sk-made-up-5f8g2h9j4k7l1z3x6c0v"


def three_commands() -> list[str]:
    (block,) = re.findall(r"^```sh\n(moontap cut .*?)^```", README, re.S | re.M)
    commands = [line.partition(" #")[0].strip() for line in block.splitlines()]
    assert [command.split()[:2] for command in commands] == [
        ["moontap", "cut"],
        ["moontap", "scrub"],
        ["moontap", "test"],
    ]
    return commands


@dataclass(frozen=True)
class Looping:
    """An agent that loops. command: as in `moontap run -- …`. id: of the call that it loses first.

    lost: how the failing test names that call.
    """

    command: tuple[str, ...]
    id: str
    lost: str
    script: Path | None = None


CLAUDE = Looping(
    ("claude", "-p", "look around", "--allowedTools", "Bash"),
    "Bash_0",
    r'2  Bash  {"command":"ls",.*  Bash_0 \*     Bash_0  unanswered',
)
SDK = Looping(
    ("python", "agent.py", "How many lamps did we sell?"),
    "read_file:0",
    r'3  read_file  {"path":"south.csv"}  read_file:0 \*  read_file:0  unanswered',
    ROOT / "examples" / "standin.yaml",
)


@pytest.fixture
def project(request: pytest.FixtureRequest, tmp_path: Path, forked_python: Forks) -> Project:
    """A project with the example agent in it, and `moontap` and `python` on its PATH. With Claude
    Code each process starts from nothing; with an SDK, where more would load one, they are forks.
    """
    real = request.node.callspec.params["looping"] == "claude"
    python = sys.executable if real else forked_python.python
    folder, programs = tmp_path / "project", tmp_path / "bin"
    folder.mkdir()
    programs.mkdir()
    (tmp_path / "home").mkdir()
    shutil.copy(ROOT / "examples" / "openai_agent.py", folder / "agent.py")
    (folder / "north.csv").write_text("lamps,120\n")
    (folder / "south.csv").write_text("lamps,80\n")
    moontap = programs / "moontap"
    moontap.write_text(f'#!/bin/sh\nexec {python} -m moontap.cli "$@"\n')
    moontap.chmod(0o755)
    if python != sys.executable:
        (programs / "python").symlink_to(python)
    path = f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {
        "PATH": path,
        "HOME": str(tmp_path / "home"),
        "ANTHROPIC_AUTH_TOKEN": SECRET,
        "ANTHROPIC_MODEL": "kimi-k3",
        "OPENAI_API_KEY": SECRET,
        "IS_SANDBOX": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    installed = entry_points(tmp_path / "installed")
    return Project(folder, f"{ROOT / 'addon'}:{installed}", forked_python, environment)


@pytest.fixture(params=["claude", "sdk"])
def looping(request: pytest.FixtureRequest, project: Project) -> Looping:
    if request.param == "sdk":
        return SDK
    program: Path = request.getfixturevalue("claude_program")
    (project.folder.parent / "bin" / "claude").symlink_to(program)
    return CLAUDE


@pytest.fixture
def capture(looping: Looping, project: Project) -> Path:
    """What last night left: the folder of a run that was stopped after ten requests."""
    with Background() as background:
        script = load_script(looping.script) if looping.script else None
        standin, close = background.enter(Standin(script))
        arguments = ["run", "--rewrite", "off", "--upstream", standin.base_url, "--"]
        log = project.folder.parent / "run.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                ["moontap", *arguments, *looping.command],
                cwd=project.folder,
                env=project.env(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        try:
            assert wait_until(lambda: len(standin.requests) >= 10, 90), log.read_text()
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        close()
    (folder,) = (project.folder / "moontap-captures").glob("*Z-*")
    return folder


def shell(command: str, project: Project) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-euc", command],
        cwd=project.folder,
        env=project.env(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=150,
        check=False,
    )
    return done.returncode, done.stdout


def test_from_a_loop_to_a_failing_test(looping: Looping, capture: Path, project: Project) -> None:
    cut, scrub, test = three_commands()
    if looping is CLAUDE:
        assert tuple(shlex.split(test.partition(" -- ")[2])) == CLAUDE.command
    else:  # the README's is Claude Code
        cut = cut.replace(CLAUDE.id, looping.id)
        test = test.partition(" -- ")[0] + " -- " + shlex.join(looping.command)

    for command in (cut, scrub):
        code, output = shell(command, project)
        assert code == 0, output
    saved = project.folder / "tests" / "flows" / "loop.flow"
    whole = flows(capture)
    assert len(whole) >= 10
    if looping is CLAUDE:
        assert len(flows(saved)) == 3
        assert saved.stat().st_size < (capture / "traffic.flow").stat().st_size / 3
    assert SECRET.encode() not in saved.read_bytes()
    code, output = shell("moontap scrub --check tests/flows/loop.flow", project)
    assert code == 0, output

    code, output = shell(test, project)
    assert code == 1, output
    assert "tool calls did not come back with a result" in output
    assert re.search(looping.lost, output), output
    written = project.folder / "tests" / "test_loop.py"
    assert len(written.read_text().splitlines()) < 25

    # From now on it is a test like any other: it fails again, and passes once ids are unique.
    ended = project.pytest("tests")
    assert (ended.code, ended.counts) == (1, {"failed": 1}), ended.output
    written.write_text(written.read_text().replace('rewrite="off"', 'rewrite="all"'))
    ended = project.pytest("tests")
    assert (ended.code, ended.counts) == (0, {"passed": 1}), ended.output
