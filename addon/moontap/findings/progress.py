"""Whether an agent gets anywhere: the same calls with the same results, one after the other or in
cycles.

Steps in, the length of the repetition out. Pure. What counts as equal the rules say; see
`rules.progress`.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain

LONGEST_CYCLE = 4
"""Replies in a cycle that is still seen."""


@dataclass(frozen=True, slots=True)
class Step:
    """A call and what came of it. arguments, result: digests of what counts; result: None where
    none ever came back. flow: of the reply that made the call. id: as the client saw it. text: the
    arguments themselves. masked: a secret is masked in them or in the result, so that equal ones
    may have differed."""

    tool: str
    arguments: bytes
    result: bytes | None
    flow: str | None = None
    id: str | None = None
    text: bytes = field(default=b"", compare=False, repr=False)
    masked: bool = False

    @property
    def same(self) -> tuple[str, bytes, bytes | None]:
        """What makes two steps equal."""
        return self.tool, self.arguments, self.result


@dataclass(frozen=True, slots=True)
class Streak:
    """count: how many times the cycle was done in a row. cycle: its steps as they were done last,
    those of one to four replies. first: the step that began it."""

    count: int
    cycle: tuple[Step, ...]
    first: Step


@dataclass(frozen=True, slots=True)
class _Round:
    """The calls of one reply, each once: made side by side they are one decision. What makes two
    rounds equal is the set, for models and clients change the order."""

    steps: tuple[Step, ...]
    same: frozenset[tuple[str, bytes, bytes | None]]


class Progress:
    """The steps of one conversation. Constant work and memory a step."""

    def __init__(self) -> None:
        self._rounds: deque[_Round] = deque(maxlen=LONGEST_CYCLE)
        # For each length of a cycle: how many rounds in a row were those of one cycle before, and
        # the round where the first of these cycles began.
        self._runs = [0] * (LONGEST_CYCLE + 1)
        self._first: list[_Round | None] = [None] * (LONGEST_CYCLE + 1)

    def add(self, steps: Iterable[Step]) -> None:
        """The steps of one reply, in order. Equal ones among them count once."""
        each: dict[tuple[str, bytes, bytes | None], Step] = {}
        for step in steps:
            each.setdefault(step.same, step)
        if each:
            self._add(_Round(tuple(each.values()), frozenset(each)))

    def reset(self) -> None:
        """Something new came in: a person spoke."""
        self._rounds.clear()
        self._runs = [0] * (LONGEST_CYCLE + 1)

    @property
    def streak(self) -> Streak | None:
        """The repetition that goes on; None where there is none."""
        best = None
        for length in range(1, LONGEST_CYCLE + 1):
            count = self._runs[length] // length + 1
            if count > 1 and (best is None or count > best.count):
                last = tuple(self._rounds)[-length:]
                first = self._first[length] or last[0]
                cycle = tuple(chain.from_iterable(one.steps for one in last))
                best = Streak(count, cycle, first.steps[0])
        return best

    def _add(self, new: _Round) -> None:
        for length in range(1, LONGEST_CYCLE + 1):
            if len(self._rounds) >= length and self._rounds[-length].same == new.same:
                if not self._runs[length]:
                    self._first[length] = self._rounds[-length]
                self._runs[length] += 1
            else:
                self._runs[length] = 0
        self._rounds.append(new)
