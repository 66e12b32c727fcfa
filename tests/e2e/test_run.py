"""`moontap run -- claude -p …`: what a person types, before a stand-in that reuses ids."""

from __future__ import annotations

import re
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import leaks, oracle, rig
from tests.e2e.conftest import Once

SECRETS = {
    "token": "sk-Zk93jfQ2mVx81LpWc57TnRb60YhGd4Es",
    "arguments and result": "sk-kimi-b7HqX03NzKt92WmUeLc58RvPf61JyAsD",
    "text": "sk-ant-api03-Pq4Tn81XcVz60BmKw29LsJd73FgHrEy5",
}
SCRIPT: dict[str, Any] = {
    "steps": [
        {
            "text": f"With {SECRETS['text']}.",
            "calls": [
                {
                    "name": "Bash",
                    "arguments": {
                        "command": f"echo {SECRETS['arguments and result']}",
                        "description": "test",
                    },
                }
            ],
        },
        *(
            {
                "calls": [
                    {
                        "name": "Bash",
                        "arguments": {"command": f"echo step-{n}", "description": "test"},
                    }
                ]
            }
            for n in (2, 3)
        ),
    ],
    "final": "The task is done.",
}


@dataclass
class Run:
    """A finished `moontap run`."""

    code: int
    output: str
    repairs: int
    captures: Path
    received: list[dict[str, Any]]


@pytest.fixture(scope="module")
def run(once: Once, claude_program: Path) -> Run:
    return once("run", lambda folder: run_it(folder, claude_program))


def run_it(folder: Path, claude_program: Path) -> Run:
    captures, debug = folder / "captures", folder / "claude.debug"
    with ExitStack() as stack:
        standin = stack.enter_context(rig.standin(folder, SCRIPT, "--mint", "response"))
        command: list[str | Path] = [sys.executable, "-m", "moontap.cli", "run"]
        command += ["--upstream", standin.url, "--dir", captures, "--"]
        command += [program_name(folder, claude_program), *rig.claude_arguments(debug)]
        env = {**rig.CLAUDE_ENV, "ANTHROPIC_AUTH_TOKEN": SECRETS["token"], "COLUMNS": "1000"}
        process = stack.enter_context(rig.running(command, folder, "run", env))
        code = process.wait(60)
        repairs = debug.read_bytes().count(rig.REPAIR)
        return Run(code, process.output, repairs, captures, standin.received)


def program_name(folder: Path, program: Path) -> Path:
    """Claude Code under the name that a person types."""
    link = folder / "claude"
    link.symlink_to(program.resolve())
    return link


def test_it_ends_by_itself_and_repairs_nothing(run: Run) -> None:
    assert run.code == 0, run.output
    assert run.repairs == 0
    assert "The task is done." in run.output.splitlines()


def test_the_pair_log_holds_every_call_once_with_its_result(run: Run) -> None:
    logged = rig.saved_pairs(run.captures)
    wanted = oracle.expected_pairs(run.received, SCRIPT)
    masked, *_ = wanted
    assert len(logged) == len(wanted) == 3
    for line, pair in zip(logged, wanted, strict=True):
        fields = pair.keys() - ({"arguments", "result"} if pair is masked else set())
        assert {field: line[field] for field in fields} == {field: pair[field] for field in fields}
        assert (line["status"], line["source"], line["rewritten"]) == ("ok", "live", True)
        assert line["latency_s"] > 0
    assert [line["duplicate"] for line in logged] == [False, True, True]


def test_the_summary_says_what_happened_and_where_it_is(run: Run) -> None:
    (counts,) = re.findall(r"^moontap: (\d+ calls.*)$", run.output, re.MULTILINE)
    assert counts == (
        "3 calls, 3 pairs, 2 with an id used before, 3 rewritten, 0 unanswered in 4 requests"
    )
    assert rig.run_folder(run.captures).name in run.output


def test_a_replay_gives_the_same_pair_log(run: Run, tmp_path: Path, conf: Path) -> None:
    live = rig.run_folder(run.captures)
    again = rig.replay(tmp_path, conf, live / "traffic.flow")
    assert (again / "pairs.jsonl").read_bytes() == (live / "pairs.jsonl").read_bytes()


def test_no_key_is_in_the_capture_or_on_the_terminal(run: Run) -> None:
    assert leaks.in_folder(run.captures, SECRETS) == set()
    assert leaks.in_bytes(run.output.encode(), SECRETS) == set()
    assert "arguments and result" in leaks.in_bytes(str(run.received).encode(), SECRETS)
