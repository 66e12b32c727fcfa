from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from moontap.testing.written import Facts, facts, source
from tests.testing.test_checks import line

LOST = Facts(2, True, "kimi-k3")
FOLDER = Path("/work/mine")
FILE = FOLDER / "tests" / "test_loop.py"
FLOW = FOLDER / "tests" / "flows" / "loop.flow"


@pytest.mark.parametrize(
    ("lines", "about"),
    [
        ([line(), line()], Facts(2, False, None)),
        ([line(), line(status="unanswered"), line(status="unanswered")], Facts(2, True, None)),
        ([line(status="orphan"), line(status="error")], Facts(1, False, None)),
        ([line(model="kimi-k3")], Facts(1, False, "kimi-k3")),
        ([line(model="kimi-k3", protocol="openai-chat")], Facts(1, False, None)),
        ([], Facts(0, False, None)),
    ],
)
def test_what_a_session_is_about(lines: list[dict[str, Any]], about: Facts) -> None:
    assert facts([{"model": None} | one for one in lines]) == about


def text(
    about: Facts = LOST,
    *,
    flow: Path = FLOW,
    file: Path = FILE,
    command: tuple[str, ...] = ("python", "agent.py"),
) -> str:
    made = source(about, flow, file, FOLDER, command, "off", 60)
    ast.parse(made)
    assert max(map(len, made.splitlines())) <= 100
    return made


def test_the_whole_text() -> None:
    assert (
        text()
        == '''\
"""loop.flow, played to the agent again: no tool call may lose its result.

Written by `moontap test`, yours to change. It needs no key and no network.
"""

from pathlib import Path

from moontap.testing import assert_all_paired, run_agent

COMMAND = ["python", "agent.py"]
FOLDER = Path(__file__).parents[1]


def test_loop(moontap_replay, moontap_tap):
    # any_result: what the tools answer now need not be what they answered then.
    # Not strict: an agent that loses nothing leaves the recorded way, and is refused from there on.
    replay = moontap_replay("flows/loop.flow", any_result=True, strict=False)
    # "off": ids reach the agent as the server gave them. "all": as behind `moontap run`.
    tap = moontap_tap(replay, rewrite="off")
    run_agent(COMMAND, tap, cwd=FOLDER, timeout=60, env={"ANTHROPIC_MODEL": "kimi-k3"})
    assert_all_paired(tap, at_least=2)  # in the recording, call 2 has no result
'''
    )


@pytest.mark.parametrize(
    ("made", "has"),
    [
        (text(Facts(1, False, None)), "timeout=60)\n    assert_all_paired(tap)\n"),
        (text(flow=FOLDER / "loop.flow"), 'moontap_replay("../loop.flow",'),
        (text(file=FOLDER / "test_it.py"), "FOLDER = Path(__file__).parents[0]\n"),
        # Elsewhere, as where the test is but tried: whole paths.
        (text(file=Path("/tmp/x/test_it.py")), f'moontap_replay("{FLOW}",'),
        (text(file=Path("/tmp/x/test_it.py")), f'FOLDER = Path("{FOLDER}")\n'),
        (text(flow=FOLDER / "2026-11 Loop (1).flow"), "def test_2026_11_loop_1(moontap_replay"),
        (
            text(command=("claude", "-p", 'say "hi"')),
            """COMMAND = ["claude", "-p", 'say "hi"']\n""",
        ),
        (
            text(command=("a", "it's", "x" * 80)),
            f'COMMAND = [\n    "a",\n    "it\'s",\n    "{"x" * 80}",\n]\n',
        ),
    ],
)
def test_what_differs(made: str, has: str) -> None:
    assert has in made
