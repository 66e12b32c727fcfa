"""Counting repetitions: tables, and a naive count that must agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moontap.findings.progress import LONGEST_CYCLE, Progress, Step, Streak


def step(name: str, number: int = 0) -> Step:
    """A call named by a letter; in upper case its result never came."""
    return Step(
        name.lower(), b"", None if name.isupper() else b"", f"flow-{number}", f"id_{number}"
    )


def run(turns: str) -> Progress:
    """Turns parted by blanks, each with its calls; `.` is something new that was said."""
    progress, number = Progress(), 0
    for turn in turns.split():
        if turn == ".":
            progress.reset()
            continue
        progress.add([step(name, number + n) for n, name in enumerate(turn)])
        number += len(turn)
    return progress


@pytest.mark.parametrize(
    ("turns", "count", "cycle", "first"),
    [
        ("", 0, "", 0),
        ("a", 0, "", 0),
        ("a a", 2, "a", 0),
        ("a a a", 3, "a", 0),
        ("b a a", 2, "a", 1),
        ("a a b", 0, "", 0),
        ("a b a", 0, "", 0),
        ("a b a b", 2, "ab", 0),
        ("a b a b a", 2, "ba", 0),
        ("x a b a b a b", 3, "ab", 1),
        ("a b c a b c", 2, "abc", 0),
        ("a b c d a b c d a b c d", 3, "abcd", 0),
        ("a b c d e a b c d e", 0, "", 0),
        # A cycle of one counts more than the cycle of two that it is as well.
        ("a a a a", 4, "a", 0),
        ("a b b b", 3, "b", 1),
        # Side by side is one decision.
        ("aa", 0, "", 0),
        ("aa aa", 2, "a", 0),
        ("ab ab ab", 3, "ab", 0),
        ("aba aba", 2, "ab", 0),
        ("abcdef abcdef abcdef", 3, "abcdef", 0),
        # In whatever order; shown is the latest.
        ("ab ba ab ba", 4, "ba", 0),
        ("ab c ba c", 2, "bac", 0),
        # Replies are counted, not calls.
        ("ab a b", 0, "", 0),
        ("a bc d e a bc d e", 2, "abcde", 0),
        ("ab abc ab abc", 2, "ababc", 0),
        ("a a ab", 0, "", 0),
        # A lost result is not the same as one that came.
        ("a A a A", 2, "aA", 0),
        ("A A A", 3, "A", 0),
        ("a a . a", 0, "", 0),
        ("a a . a a", 2, "a", 2),
        (". .", 0, "", 0),
    ],
)
def test_the_repetition_that_goes_on(turns: str, count: int, cycle: str, first: int) -> None:
    streak = run(turns).streak
    if not count:
        assert streak is None
        return
    assert streak is not None
    shown = "".join(s.tool.upper() if s.result is None else s.tool for s in streak.cycle)
    assert (streak.count, shown, streak.first.flow) == (count, cycle, f"flow-{first}")


def naive(replies: list[list[Step]]) -> Streak | None:
    same = [frozenset(one.same for one in steps) for steps in replies]
    best = None
    for length in range(1, LONGEST_CYCLE + 1):
        at = len(same)
        while at - 1 - length >= 0 and same[at - 1] == same[at - 1 - length]:
            at -= 1
        count = (len(same) - at) // length + 1
        if count > 1 and (best is None or count > best.count):
            cycle = [step for steps in replies[-length:] for step in steps]
            best = Streak(count, tuple(cycle), replies[at - length][0])
    return best


@given(st.lists(st.one_of(st.none(), st.text("abC", min_size=1, max_size=3)), max_size=40))
def test_a_naive_count_agrees(turns: list[str | None]) -> None:
    progress = Progress()
    replies: list[list[Step]] = []
    for number, turn in enumerate(turns):
        if turn is None:
            progress.reset()
            replies = []
        else:
            progress.add([step(name, number) for name in turn])
            replies.append([step(name, number) for name in dict.fromkeys(turn)])
        assert progress.streak == naive(replies)
