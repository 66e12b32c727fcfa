"""From raw samples to ratios. Pure.

Samples of one round were taken within moments of each other, so a ratio is formed per round and
the median of these taken: a machine that slows down half-way slows both sides of a pair alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Ratio:
    """Median, smallest and largest of the per-round ratios."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Measure:
    """One row: what was measured, and every sample of it.

    samples: column -> one value a round, in `unit`. The first column is what others are compared
    with; all have the same length. target: the largest allowed median ratio, None for a row that
    informs only. judged: the columns the target holds for. limit: the largest allowed median
    itself, in `unit`, where that and not the ratio is what matters.
    """

    section: str
    name: str
    unit: str
    samples: dict[str, list[float]]
    target: float | None = None
    judged: tuple[str, ...] = ()
    limit: float | None = None

    @property
    def ratios(self) -> dict[str, Ratio]:
        """Each column against the first."""
        base = next(iter(self.samples.values()))
        return {column: paired(values, base) for column, values in self.samples.items()}

    @property
    def is_judged(self) -> bool:
        return self.target is not None or self.limit is not None

    @property
    def missed(self) -> list[str]:
        """The judged columns whose median ratio is above the target, or median above the limit."""
        return [column for column in self.judged if self._is_above(column)]

    def _is_above(self, column: str) -> bool:
        if self.target is not None and self.ratios[column].median > self.target:
            return True
        return self.limit is not None and median(self.samples[column]) > self.limit


def paired(values: Sequence[float], base: Sequence[float]) -> Ratio:
    """Ratios of the samples taken in the same round.

    Raises ValueError: the lengths differ, there are no samples, or a base sample is not positive.
    """
    if not base or min(base) <= 0:
        raise ValueError("a ratio needs samples above zero to compare with")
    ratios = [value / other for value, other in zip(values, base, strict=True)]
    return Ratio(median(ratios), min(ratios), max(ratios))
