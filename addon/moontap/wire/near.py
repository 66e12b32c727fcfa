"""The known word that somebody meant who wrote another one. Words in, a word out. Pure."""

from collections.abc import Iterable
from functools import lru_cache

_LONGEST = 40
_SHORT = 6  # letters, below which one slip is all that is forgiven


def near(word: str, known: Iterable[str]) -> str | None:
    """The known word that is a slip or two away from one that is not known; None where none is.

    A digit more is a version (`web_search_20250305`) and no slip, and so is a word that stands
    within the other: they are words of their own.
    """
    lower = word.strip().lower()
    words = tuple(known)
    if lower in words:
        return lower
    if not 2 < len(lower) <= _LONGEST or any(one.isdigit() for one in lower):
        return None
    most = 1 if len(lower) < _SHORT else 2
    found = [(distance(lower, one, most), one) for one in words if one != word]
    best = min(found, default=(most + 1, ""))
    return best[1] if best[0] <= most else None


@lru_cache(maxsize=1024)
def distance(one: str, other: str, most: int) -> int:
    """How many letters must be put in, left out, changed or swapped with the next; `most` + 1
    where it is more than `most`."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    last = list(range(len(other) + 1))
    for n, letter in enumerate(one, 1):
        row = [n]
        for m, its in enumerate(other, 1):
            cost = min(last[m] + 1, row[-1] + 1, last[m - 1] + (letter != its))
            if n > 1 and m > 1 and (letter, its) == (other[m - 2], one[n - 2]):
                cost = min(cost, before[m - 2] + 1)
            row.append(cost)
        before, last = last, row
    return min(last[-1], most + 1)
