"""What the ids of a probe's rounds show.

Ids in, a verdict and its sentence out. Pure; nothing is read out of the form of an id.
"""

from collections.abc import Sequence
from enum import StrEnum

ROUNDS = 3
"""The most requests that a verdict takes; `reused` shows after two."""


class Verdict(StrEnum):
    """How a server names its calls."""

    REUSED = "reused"
    COUNTED = "counted"
    UNIQUE = "unique"

    @property
    def wanting(self) -> bool:
        """Whether agents that pair calls and results by id lose some."""
        return self is not Verdict.UNIQUE


MEANING = {
    Verdict.REUSED: "an id came a second time while its first call stands in the history.\n"
    "Agents that pair calls and results by id lose the later call at once.",
    Verdict.COUNTED: "ids differ while the history shows the call before, and come back after.\n"
    "Agents that pair calls and results by id lose calls after a compaction or a rewind.",
    Verdict.UNIQUE: f"no id came twice in {ROUNDS} replies, one of them after a compaction.",
}


def verdict(rounds: Sequence[Sequence[str]]) -> Verdict | None:
    """The verdict on the ids of each round; None where it takes another round.

    Rounds 1 and 2 are one conversation; round 3 is the same after a compaction, so that a server
    that counts the calls in front of it begins again.
    """
    together = [id_ for ids in rounds[:2] for id_ in ids]
    if len(set(together)) < len(together):
        return Verdict.REUSED
    if len(rounds) < ROUNDS:
        return None
    after = rounds[2]
    if len(set(after)) < len(after):
        return Verdict.REUSED
    return Verdict.COUNTED if set(after) & set(together) else Verdict.UNIQUE
