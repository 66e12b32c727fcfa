"""What ids show, as a table: nothing is read out of their form."""

from __future__ import annotations

import pytest

from moontap.probe.verdict import MEANING, Verdict, verdict

A, B, C, D = "pwd_0", "pwd_1", "toolu_x", "functions.pwd:7"


@pytest.mark.parametrize(
    ("rounds", "found"),
    [
        ([[A], [A]], Verdict.REUSED),
        ([[A, B], [B]], Verdict.REUSED),
        ([[A, A], [B]], Verdict.REUSED),  # twice in one reply
        ([[A], [B, B]], Verdict.REUSED),
        ([[A], [B]], None),  # counted or unique: two rounds cannot tell
        ([[A], [B], [A]], Verdict.COUNTED),
        ([[A], [B], [B]], Verdict.COUNTED),
        ([[A, B], [C, D], [D]], Verdict.COUNTED),
        ([[A], [B], [C, C]], Verdict.REUSED),
        ([[A], [B], [C]], Verdict.UNIQUE),
        ([["pwd_210"], ["pwd_211"], ["pwd_212"]], Verdict.UNIQUE),  # it counts, but never back
        ([["x"], ["X"], ["x "]], Verdict.UNIQUE),
    ],
)
def test_verdict(rounds: list[list[str]], found: Verdict | None) -> None:
    assert verdict(rounds) is found


def test_each_has_a_meaning_and_only_unique_is_fine() -> None:
    assert set(MEANING) == set(Verdict)
    assert [one for one in Verdict if not one.wanting] == [Verdict.UNIQUE]
