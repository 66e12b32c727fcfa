"""Exchanges that repeat, put together: a loop of hundreds becomes a row or two.

Exchanges in short in, rows out, in order. Each exchange is in just one row.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from moontap.findings.progress import LONGEST_CYCLE
from moontap.report.story.told import Told

ROWS = 18
"""Rows from which on those in between are put together, too."""
_ENDS = 4


@dataclass(frozen=True, slots=True)
class Row:
    """exchanges: all that it stands for. cycle: how many of them repeat; 0: they differ, and are
    only counted. times: how often these came."""

    exchanges: Sequence[Told]
    cycle: int = 1
    times: int = 1

    @property
    def first(self) -> int:
        return self.exchanges[0].number

    @property
    def last(self) -> int:
        return self.exchanges[-1].number


def fold(exchanges: Sequence[Told], notable: Callable[[Told], bool], rows: int = ROWS) -> list[Row]:
    """The rows. notable: whether something was found in an exchange, whose row is then kept as
    long as there is room."""
    made: list[Row] = []
    at = 0
    while at < len(exchanges):
        made.append(_next(exchanges, at))
        at += len(made[-1].exchanges)
    return made if len(made) <= rows else _fewer(made, notable, rows)


def unfolded(exchanges: Sequence[Told]) -> list[Row]:
    """Each exchange a row of its own."""
    return [Row([one]) for one in exchanges]


def _next(exchanges: Sequence[Told], at: int) -> Row:
    """The row that begins there: the cycle that covers the most."""
    best = Row(exchanges[at : at + 1])
    for length in range(1, LONGEST_CYCLE + 1):
        end = at + length
        while end < len(exchanges) and exchanges[end].alike == exchanges[end - length].alike:
            end += 1
        times = (end - at) // length
        if times > 1 and times * length > len(best.exchanges):
            best = Row(exchanges[at : at + times * length], length, times)
    return best


def _fewer(rows: Sequence[Row], notable: Callable[[Told], bool], most: int) -> list[Row]:
    """The first rows, the last ones, and those where something was found; the rest counted."""
    kept = {*range(_ENDS), *range(len(rows) - _ENDS, len(rows))}
    for number, row in enumerate(rows):
        # Each one that is kept may also cut a gap in two.
        if len(kept) >= most // 2 + _ENDS:
            break
        if any(map(notable, row.exchanges)):
            kept.add(number)
    made: list[Row] = []
    gap: list[Told] = []
    for number, row in enumerate(rows):
        if number in kept:
            made += [*([Row(gap, 0)] if gap else []), row]
            gap = []
        else:
            gap += row.exchanges
    return made
