"""Whether an agent gets anywhere: the same calls with the same results, one after the other or in
cycles.

Steps in, the length of the repetition out. Pure. What counts as equal the rules say; see
`rules.progress`.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

LONGEST_CYCLE = 4
"""Calls in a cycle that is still seen."""


@dataclass(frozen=True, slots=True)
class Step:
    """A call and what came of it. arguments, result: digests of what counts; result: None where
    none ever came back. flow: of the reply that made the call. id: as the client saw it."""

    tool: str
    arguments: bytes
    result: bytes | None
    flow: str | None = None
    id: str | None = None

    @property
    def same(self) -> tuple[str, bytes, bytes | None]:
        """What makes two steps equal."""
        return self.tool, self.arguments, self.result


@dataclass(frozen=True, slots=True)
class Streak:
    """count: how many times the cycle was done in a row. cycle: its steps, one to four, as they
    were done last. first: the step that began it."""

    count: int
    cycle: tuple[Step, ...]
    first: Step


class Progress:
    """The steps of one conversation. Constant work and memory a step."""

    def __init__(self) -> None:
        self._steps: deque[Step] = deque(maxlen=LONGEST_CYCLE)
        # For each length of a cycle: how many steps in a row were those of one cycle before, and
        # the step where the first of these cycles began.
        self._runs = [0] * (LONGEST_CYCLE + 1)
        self._first: list[Step | None] = [None] * (LONGEST_CYCLE + 1)

    def add(self, steps: Iterable[Step]) -> None:
        """The steps of one turn, in order. Equal ones among them count once: calls made side by
        side are one decision."""
        seen = set()
        for step in steps:
            if step.same not in seen:
                seen.add(step.same)
                self._add(step)

    def reset(self) -> None:
        """Something new came in: a person spoke."""
        self._steps.clear()
        self._runs = [0] * (LONGEST_CYCLE + 1)

    @property
    def streak(self) -> Streak | None:
        """The repetition that goes on; None where there is none."""
        best = None
        for length in range(1, LONGEST_CYCLE + 1):
            count = self._runs[length] // length + 1
            if count > 1 and (best is None or count > best.count):
                first = self._first[length]
                cycle = tuple(self._steps)[-length:]
                best = Streak(count, cycle, first or cycle[0])
        return best

    def _add(self, step: Step) -> None:
        for length in range(1, LONGEST_CYCLE + 1):
            if len(self._steps) >= length and self._steps[-length].same == step.same:
                if not self._runs[length]:
                    self._first[length] = self._steps[-length]
                self._runs[length] += 1
            else:
                self._runs[length] = 0
        self._steps.append(step)
