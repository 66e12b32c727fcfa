"""A session of the real Claude Code, recorded through `moontap run`, then replayed to it.

Both runs have the same folder, HOME and session id, as a person's own would. What still differs
between the two requests of a turn, as seen on 2.1.328: `metadata.user_id` (a device id that is
made with each HOME), `cache_control` on the last message, and with it the form of the first user
messages (blocks in the first turn, strings later), and `x-stainless` headers after a retry. In
another folder also the message of role `system` behind the first one, which names the folder,
and the system prompt. The results of parallel calls come in the order in which the tools ended
(two of five runs had them the other way round). None of that counts.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import rig
from tests.e2e.conftest import Once

SESSION = "5f0c1f5e-52e4-4d0e-9d7e-6f5f2f0f7a01"


def bash(command: str) -> dict[str, Any]:
    return {"name": "Bash", "arguments": {"command": command, "description": "test"}}


# Results that are the same in both runs: their hashes are compared.
SCRIPT: dict[str, Any] = {
    "steps": [
        {"text": "I look.", "calls": [bash("pwd"), bash("echo two")]},
        {"calls": [{"name": "Write", "arguments": {"file_path": "$", "content": "one\ntwo\n"}}]},
        {"calls": [{"name": "Read", "arguments": {"file_path": "$"}}]},
        {"calls": [bash("cat no-such-file")]},
        {"text": "And again.", "calls": [bash("pwd")]},
    ],
    "final": "The task is done.",
}
CALLS = ("Bash", "Bash", "Write", "Read", "Bash", "Bash")
RUN_OF = ("called_at", "answered_at", "latency_s", "call_flow", "result_flow")


@dataclass
class Session:
    """One run of Claude Code behind `moontap run`."""

    code: int
    output: str
    repairs: int
    pairs: list[dict[str, Any]]


@dataclass
class Both:
    """The recorded session, the replayed one, and what `moontap replay` printed."""

    recorded: Session
    replayed: Session
    replay: str
    replay_code: int


@pytest.fixture(scope="module")
def both(once: Once, claude_program: Path) -> Both:
    return once("replay", lambda folder: run_both(folder, claude_program))


def run_both(folder: Path, program: Path) -> Both:
    script = filled(SCRIPT, str(folder / "agent.home" / "note.txt"))
    with rig.standin(folder, script, "--mint", "response") as standin:
        recorded = session(folder, program, standin.url, "recorded")
    (capture,) = (folder / "recorded").glob("*Z-*")
    command: list[str | Path] = [sys.executable, "-m", "moontap.cli", "replay", capture]
    with rig.running(command, folder, "replay") as replay:
        url = replay.wait_for(r"replay on (http://\S+) of")[1]
        replayed = session(folder, program, url, "replayed")
        code = replay.stop()
        return Both(recorded, replayed, replay.output, code)


def session(folder: Path, program: Path, upstream: str, name: str) -> Session:
    """Claude Code in a new HOME at the same place each time, which is its working folder too."""
    captures, debug = folder / name, folder / f"{name}.debug"
    with ExitStack() as stack:
        command: list[str | Path] = [sys.executable, "-m", "moontap.cli", "run"]
        command += ["--upstream", upstream, "--dir", captures, "--"]
        command += [program, *rig.claude_arguments(debug), "--session-id", SESSION]
        process = stack.enter_context(rig.running(command, folder, "agent", rig.CLAUDE_ENV))
        code = process.wait(60)
        output = process.output
    (folder / "agent.home").rename(folder / f"{name}.home")
    repairs = debug.read_bytes().count(rig.REPAIR)
    return Session(code, output, repairs, rig.saved_pairs(captures))


def filled(value: Any, path: str) -> Any:
    """The script with a path wherever it says `$`."""
    if isinstance(value, dict):
        return {name: filled(one, path) for name, one in value.items()}
    if isinstance(value, list):
        return [filled(one, path) for one in value]
    return path if value == "$" else value


def in_order(pairs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """In the order of the calls: parallel ones can end, and be logged, in either."""
    return sorted(pairs, key=lambda pair: (pair["called_at"], pair["index"]))


def lasting(pair: Mapping[str, Any]) -> dict[str, Any]:
    """What of a pair must not change from run to run."""
    return {name: value for name, value in pair.items() if name not in RUN_OF}


def test_the_recorded_run_went_well(both: Both) -> None:
    run = both.recorded
    assert (run.code, run.repairs) == (0, 0), run.output
    assert tuple(pair["tool"] for pair in run.pairs) == CALLS
    statuses = [pair["status"] for pair in run.pairs]
    assert statuses == ["ok", "ok", "ok", "ok", "error", "ok"]


def test_it_ends_the_same_way(both: Both) -> None:
    was, now = both.recorded, both.replayed
    assert (now.code, now.repairs) == (was.code, was.repairs), now.output
    assert "The task is done." in now.output.splitlines()


def test_the_pair_log_is_the_same_but_for_times_and_flow_ids(both: Both) -> None:
    recorded, replayed = (in_order(run.pairs) for run in (both.recorded, both.replayed))
    assert len(replayed) == len(CALLS)
    for was, now in itertools.zip_longest(recorded, replayed):
        assert lasting(now) == lasting(was)
        assert now["call_flow"] != was["call_flow"]


def test_every_request_was_recorded_and_every_recorded_one_asked_for(both: Both) -> None:
    assert both.replay_code == 0, both.replay
    assert "6 requests, 6 matched, 0 not\n" in both.replay
    assert "never asked for" not in both.replay
    assert "400" not in both.replay
