"""The guard and the real Claude Code, before a stand-in whose ids come back.

One run is stopped, by `moontap run --guard block`; another is reminded, behind mitmdump.
"""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from moontap.capture import metadata
from moontap.cli import main
from tests.e2e import rig
from tests.e2e.conftest import Once

SCRIPT: dict[str, Any] = {
    "steps": [
        {"calls": [{"name": "Bash", "arguments": {"command": f"echo {n}", "description": "test"}}]}
        for n in (1, 2)
    ],
    "final": "The task is done.",
}
LIMIT = 12
REMINDED = [3, 5, 8]
ENOUGH = 12  # requests, to have seen all reminders
SECONDS = 50  # measured: 3 s alone


@dataclass
class Group:
    """A run that is stopped, and one that is reminded and has to be ended. code, output: of
    `moontap run` around the former; debug: its client's own log."""

    code: int
    output: str
    debug: Path
    asked: list[dict[str, Any]]
    blocked: Path
    reminded: list[dict[str, Any]]
    reminding: Path

    @property
    def repairs(self) -> int:
        """How often the client says that it repaired its history."""
        return self.debug.read_bytes().count(rig.REPAIR)


@pytest.fixture(scope="module")
def group(once: Once, conf: Path, claude_program: Path) -> Group:
    return once("guard", lambda folder: run_both(folder, conf, claude_program))


def run_both(folder: Path, conf: Path, program: Path) -> Group:
    captures, debug = folder / "blocked", folder / "blocked.debug"
    with ExitStack() as stack:
        one, other = (
            stack.enter_context(rig.standin(folder, SCRIPT, name=name)) for name in ("one", "other")
        )
        tap = stack.enter_context(
            rig.tap(folder, conf, [f"reverse:{other.url}"], moontap_guard="remind")
        )
        command: list[str | Path] = [sys.executable, "-m", "moontap.cli", "run", "--guard", "block"]
        command += ["--rewrite", "off", "--upstream", one.url, "--dir", captures, "--"]
        command += [program, *rig.claude_arguments(debug)]
        stopped = stack.enter_context(rig.running(command, folder, "run", rig.CLAUDE_ENV))
        looping = stack.enter_context(rig.claude(program, f"{tap.url}/anthropic", folder))
        assert rig.wait_until(lambda: len(messages(other.received)) > ENOUGH, SECONDS)
        looping.process.kill()
        code = stopped.wait(SECONDS)
        assert tap.process.stop() == 0, tap.process.output
        asked, reminded = messages(one.received), messages(other.received)
        return Group(code, stopped.output, debug, asked, captures, reminded, tap.captures)


def messages(received: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The requests of the one conversation."""
    return [one for one in received if one["body"] and "messages" in one["body"]]


def test_it_ends_by_itself_and_shows_why(group: Group) -> None:
    assert group.code == 1, group.output
    said = (
        f"blocked_no_progress: moontap stopped this agent: Bash was called {LIMIT} times in a row"
    )
    assert f"API Error: 423 {said}" in group.output
    assert group.repairs > 0  # it is the loop that was stopped, not something else
    assert "The task is done." not in group.output


def test_upstream_sees_no_more_than_the_limit(group: Group) -> None:
    assert len(group.asked) == LIMIT + 1  # and one that was done as it should be
    flows = rig.saved_flows(group.blocked)
    blocked = [flow for flow in flows if metadata.BLOCKED in flow.metadata]
    assert len(blocked) == 1  # it does not try again
    assert blocked[0].response is not None
    details = json.loads(blocked[0].response.content or b"")["error"]["blocked_no_progress"]
    assert details["requires_review"] is True
    assert (details["tool"], details["count"]) == ("Bash", LIMIT)
    calling = {line["call_flow"] for line in rig.saved_pairs(group.blocked)}
    assert {details["first_exchange"], details["last_exchange"]} <= calling


def test_the_model_is_reminded_at_each_threshold(group: Group) -> None:
    seen = []
    for number, one in enumerate(group.reminded):
        asked = one["body"]["messages"]
        # The last user message's last text; a system message may stand behind it.
        last = [message for message in asked if message["role"] == "user"][-1]["content"][-1]
        text = last.get("text", "") if isinstance(last, dict) else ""
        if text.startswith("<system-reminder>") and "times in a row" in text:
            seen.append((number, int(text.split()[1])))
        elsewhere = [message for message in asked if "times in a row" in json.dumps(message)]
        assert len(elsewhere) == (bool(seen) and seen[-1][0] == number)
    assert [count for _, count in seen] == REMINDED
    assert [number for number, _ in seen] == [count + 1 for count in REMINDED]


def test_it_is_on_record(group: Group) -> None:
    flows = rig.saved_flows(group.reminding)
    counts = [flow.metadata.get(metadata.REPEATS) for flow in flows]
    assert [count for count in counts if count] == REMINDED


def test_what_it_lost_is_what_the_client_says_it_repaired(group: Group) -> None:
    found = rig.saved_findings(group.blocked)
    dropped = [line for line in found if line["code"] == "pair-dropped-by-client"]
    assert len(dropped) == group.repairs  # one call a turn
    assert dropped[-1]["evidence"]["repaired"] == group.repairs
    # Each was foretold by the finding before it; the first one by that of the id.
    foretold = [line for line in found if line["code"] == "id-reused"][:1] + dropped[:-1]
    assert [line["evidence"]["predicted_drops"] for line in foretold] == [1] * group.repairs
    assert {line["code"] for line in found} >= {"empty-user-turn", "no-progress"}


def test_it_is_explained(group: Group, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(group.blocked)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    first = "Where it went wrong first: exchange 2"
    came = f"the client dropped {group.repairs} pairs of call and result"
    repaired = f"repaired its history so in {group.repairs} requests"
    for said in (first, "[id-reused, error", came, repaired, "user turns said nothing"):
        assert said in told
    assert "moontap run -- " in told


def test_its_debug_log_alone_tells_it_too(group: Group, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "--json", str(group.debug)]) == 1
    (read,) = json.loads(capsys.readouterr().out)["inputs"]
    found = {line["code"]: line["evidence"] for line in read["findings"]}
    dropped = found["pair-dropped-by-client"]
    assert (dropped["repairs"], dropped["dropped"]) == (group.repairs, group.repairs)
    assert found["id-reused"]["ids"] == ["Bash_0"]
