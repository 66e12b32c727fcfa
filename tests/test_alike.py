from __future__ import annotations

import pytest

from moontap.alike import Alike

THINGS = ["a1", "b1", "a2", "c1"]


@pytest.mark.parametrize(
    ("asked", "exactly", "taken"),
    [
        ("aabc", True, ["a1", "a2", "b1", "c1"]),
        ("aaa", True, ["a1", "a2", None]),
        ("x", True, [None]),
        ("xxxxx", False, ["a1", "b1", "a2", "c1", None]),
        ("bxa", False, ["b1", "a1", "a2"]),
        ("cxxx", False, ["c1", "a1", "b1", "a2"]),
    ],
)
def test_the_same_key_before_the_first(asked: str, exactly: bool, taken: list[str | None]) -> None:
    alike = Alike(THINGS, lambda thing: thing[0], set())
    assert [alike.take(lambda key=key: key, exactly=exactly) for key in asked] == taken  # type: ignore[misc]


def test_what_another_one_took_is_gone() -> None:
    taken: set[int] = {0, 2}
    one, other = (Alike(range(4), lambda number: number, taken) for _ in range(2))
    assert [one.take(lambda: 9), other.take(lambda: 0), one.take(lambda: 3)] == [1, 3, None]


def test_the_last_one_is_not_asked_for_its_key() -> None:
    def fails(_: int) -> int:
        raise AssertionError

    assert Alike([7], fails, set()).take(lambda: fails(0)) == 7
