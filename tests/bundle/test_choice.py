"""Which exchanges are kept, on saved conversations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from moontap.bundle.choice import Choice, around, of_finding, worst
from moontap.bundle.source import Source, read
from moontap.capture.reader import FlowFile
from moontap.care.identities import Known
from moontap.findings.types import Severity
from moontap.rules import Rules
from tests.saved import conversation, exchange, write

LOOP = conversation(["pwd", "ls", "ls", "ls", "ls", "ls"], lost=frozenset(range(1, 6)))
FINE = conversation(["make", "test"], first=20, session="s-22", id_="toolu_{}")
MODELS = exchange(b"", b"{}", number=30, path="/v1/models", session=None)


def source(folder: Path, flows: Sequence[Any]) -> Source:
    file = write(folder / "a.flow", flows)
    return read(file, FlowFile(file).records(), Rules(), Known())


def chosen(one: Source, code: str | None = None) -> Choice:
    found = worst([one], code)
    assert found
    return of_finding(*found, Rules())


@pytest.mark.parametrize(
    ("code", "numbers"),
    [
        (None, [0, 1]),  # both rounds, although the second's history would do
        ("id-reused", [0, 1]),
        ("pair-dropped-by-client", [0, 1, 2]),
        ("empty-user-turn", [2]),
    ],
)
def test_the_fewest_that_show_a_finding(
    tmp_path: Path, code: str | None, numbers: list[int]
) -> None:
    one = source(tmp_path, [*LOOP, MODELS])
    choice = chosen(one, code)
    assert choice.numbers == numbers
    assert choice.finding
    assert choice.finding.code == (code or "id-reused")


def test_what_others_did_in_between_is_left_out(tmp_path: Path) -> None:
    mixed = [MODELS, FINE[0], LOOP[0], FINE[1], LOOP[1], FINE[2], *LOOP[2:]]
    one = source(tmp_path, mixed)
    assert chosen(one).numbers == [2, 4]
    assert chosen(one, "pair-dropped-by-client").numbers == [2, 4, 6]


def test_a_loop_keeps_what_it_takes_to_count_it(tmp_path: Path) -> None:
    one = source(tmp_path, [*FINE, *LOOP])
    choice = chosen(one, "no-progress")
    assert choice.finding
    assert len(choice.numbers) < len(LOOP) + 1
    assert set(choice.numbers) <= set(range(3, 3 + len(LOOP)))


def test_of_a_loop_its_last(tmp_path: Path) -> None:
    """It took the first error, at 8, of a loop that went to 12."""
    loop = conversation(["pwd"] + ["ls"] * 14, lost=frozenset(range(1, 15)))
    found = worst([source(tmp_path, loop)], "no-progress")
    assert found
    assert found[1].evidence.facts["count"] == 12


def test_a_stop_keeps_what_was_done_before(tmp_path: Path) -> None:
    """The guard names the first and the last exchange, by their flows."""
    flows = conversation(["pay", "ls", "pay", "pay"], id_="t_{}")
    stop = flows[-1]
    error = {"first_exchange": flows[2].id, "last_exchange": flows[3].id, "count": 2, "limit": 2}
    body = {"error": {"code": "blocked_no_progress", "blocked_no_progress": error}}
    assert stop.response
    stop.response.status_code = 423
    stop.response.text = json.dumps(body)
    stop.metadata["moontap.blocked"] = "blocked_no_progress"
    one = source(tmp_path, flows)
    assert one.stopped == [4]
    assert chosen(one, "guard-stopped").numbers == [2, 3, 4]


def test_what_is_good_to_know_is_nothing_to_show(tmp_path: Path) -> None:
    """A run with unique ids is clean, whatever the server minted."""
    one = source(tmp_path, conversation(["ls"] * 3, id_="t_{}"))  # three equal ones: info
    assert {finding.severity for finding in one.findings} == {Severity.INFO}
    assert worst([one]) is None
    assert worst([one], "no-progress")


def test_nothing_wrong(tmp_path: Path) -> None:
    one = source(tmp_path, FINE)
    assert worst([one], "id-reused") is None
    assert around([one], "nope", Rules()) is None


@pytest.mark.parametrize(
    ("id_", "numbers", "among"),
    [
        ("Bash_0", [0, 1, 2], 6),  # the first that was lost, with the first use of its id
        ("toolu_1", [8, 9], 1),
        (MODELS.id, [10], 1),
        (FINE[0].id, [7, 8], 1),
    ],
)
def test_around_an_id(tmp_path: Path, id_: str, numbers: list[int], among: int) -> None:
    one = source(tmp_path, [*LOOP, *FINE, MODELS])
    choice = around([one], id_, Rules())
    assert choice
    assert (choice.numbers, choice.among) == (numbers, among)
