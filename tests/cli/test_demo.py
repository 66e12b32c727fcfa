"""`moontap demo`: what it shows, and that it says so when it is not as claimed."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from moontap import cli
from moontap.capture.recorder import Counts
from moontap.demo import task
from moontap.demo.agent import Done, Turn
from moontap.demo.rounds import TURNS, Outcome, wanting
from tests.cli.commands import Moontap, pairs


def test_it_shows_the_same_task_without_and_with(moontap_command: Moontap) -> None:
    done = moontap_command.run("demo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    without, _, with_ = done.stdout.partition("2. With rewriting")
    assert f"CUT OFF after {TURNS} turns: 14 calls, 3 pairs, 11 lost, 0 rewritten" in without
    assert "LOST: id seen before" in without
    assert "DONE: 5 calls, 5 pairs, 0 lost, 5 rewritten" in with_
    assert "LOST" not in with_
    text, _, _ = done.stdout.partition("The pairs of round 2")
    assert max(map(len, text.splitlines())) < 80
    off, on = moontap_command.captures()
    logged = pairs(on)
    assert [line["status"] for line in pairs(off)].count("unanswered") == 11
    assert len(logged) == 5
    for line in logged:
        (row,) = [row for row in with_.splitlines() if f" {line['id']} " in row and "│" in row]
        cells = [cell.strip() for cell in row.strip("│").split("│")]
        assert cells[1] == line["tool"]
        assert cells[4].removesuffix(" *") == line["upstream_id"]
    for name in (f"{off.name}/", f"{on.name}/", "run -- claude", "proxy", "traffic.flow"):
        assert name in with_
    assert list((moontap_command.folder / "home").iterdir()) == []


def test_without_a_capture_it_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["demo", "--dir", "/dev/null/captures"]) == 1
    assert "NOT AS CLAIMED: a capture is missing" in capsys.readouterr().out


def _call(id_: str, lost: bool = False) -> Done:
    return Done(id_, "add", {"numbers": [1]}, "1", lost)


def _line(id_: str) -> dict[str, object]:
    return {"id": id_, "tool": "add", "arguments": {"numbers": [1]}, "result": "1"}


END = Turn(3, task.ANSWER, ())
OFF = Outcome(
    turns=[Turn(1, "", (_call("a"),)), Turn(2, "", (_call("a", lost=True),))],
    counts=Counts(unanswered=1),
    lines=[],
    capture=Path("off"),
    seconds=1,
)
ON = Outcome(
    turns=[Turn(1, "", (_call("a"),)), Turn(2, "", (_call("b"),)), END],
    counts=Counts(),
    lines=[_line("a"), _line("b")],
    capture=Path("on"),
    seconds=1,
)


def test_nothing_is_wanting_where_all_is_as_claimed() -> None:
    assert wanting(OFF, ON) == []


@pytest.mark.parametrize(
    ("off", "on", "said"),
    [
        (replace(OFF, turns=[*OFF.turns, END]), ON, "done all the same"),
        (replace(OFF, turns=[Turn(1, "", ())], counts=Counts()), ON, "no pair was lost"),
        (replace(OFF, counts=Counts(unanswered=2)), ON, "other losses than the agent"),
        (OFF, replace(ON, turns=ON.turns[:2]), "the task was not done"),
        (OFF, replace(ON, counts=Counts(unanswered=1)), "with rewriting a pair was lost"),
        (OFF, replace(ON, lines=ON.lines[:1]), "pair log is not what the agent did"),
        (OFF, replace(ON, lines=[*ON.lines, _line("b")]), "pair log is not what the agent did"),
        (OFF, replace(ON, capture=None), "a capture is missing"),
        (OFF, replace(ON, counts=Counts(lost=1)), "records were lost"),
    ],
)
def test_each_claim_can_fail(off: Outcome, on: Outcome, said: str) -> None:
    assert [text for text in wanting(off, on) if re.search(said, text)]


def test_an_id_that_comes_twice_is_noticed() -> None:
    twice = replace(ON, turns=[Turn(1, "", (_call("a"),)), Turn(2, "", (_call("a"),)), END])
    assert "with rewriting an id came twice" in wanting(OFF, twice)
