from __future__ import annotations

import pytest

from moontap.report.story.fold import ROWS, fold, unfolded
from moontap.report.story.rows import numbers
from moontap.report.story.told import Told
from tests.report.story.telling import letters


def never(one: Told) -> bool:
    return False


@pytest.mark.parametrize(
    ("pattern", "rows"),
    [
        ("a", ["1 1x1"]),
        ("abc", ["1 1x1", "2 1x1", "3 1x1"]),
        ("abbbb", ["1 1x1", "2-5 1x4"]),
        ("aab", ["1-2 1x2", "3 1x1"]),
        ("xabababab", ["1 1x1", "2-9 2x4"]),
        ("abcabcab", ["1-6 3x2", "7 1x1", "8 1x1"]),
        ("abcdabcdabcd", ["1-12 4x3"]),
        ("abcdeabcde", [f"{n} 1x1" for n in range(1, 11)]),  # five are no cycle
    ],
)
def test_what_repeats_is_one_row(pattern: str, rows: list[str]) -> None:
    made = fold(letters(pattern), never)
    assert [f"{numbers(row)} {row.cycle}x{row.times}" for row in made] == rows


# No two letters next to each other, nor two in a cycle, are the same.
LONG = "".join(chr(0x4E00 + number) for number in range(400))


@pytest.mark.parametrize("notable", [(), (200,), (50, 51, 52, 300), range(1, 401)])
def test_long_ones_are_short(notable: range | tuple[int, ...]) -> None:
    exchanges = letters(LONG)
    rows = fold(exchanges, lambda one: one.number in notable)
    assert len(rows) <= ROWS
    assert [one for row in rows for one in row.exchanges] == exchanges
    kept = {row.first for row in rows if row.cycle}
    assert {1, 2, 3, 4, 397, 398, 399, 400} <= kept
    assert set(list(notable)[:4]) <= kept


def test_unfolded_is_all_of_them() -> None:
    assert [numbers(row) for row in unfolded(letters("aaa"))] == ["1", "2", "3"]
