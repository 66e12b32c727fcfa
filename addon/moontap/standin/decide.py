"""The stand-in model's mind: which step of the script comes next.

In: what the request shows (`Seen`) and the script. Out: a `Decision`. It remembers nothing: a
pair that the client lost is a step not done, and is played again, as the real model does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from moontap.standin.script import Call, Conversation, Script, Step
from moontap.standin.seen import Seen, SeenCall, parsed


class Kind(StrEnum):
    """A step of the script, its closing text, or a side request that takes no part."""

    STEP = "step"
    FINAL = "final"
    ASIDE = "aside"


@dataclass(frozen=True, slots=True)
class Decision:
    """What to answer. `conversation` and `step` count from 0; -1 is the default conversation."""

    kind: Kind
    conversation: int
    step: int
    text: str
    thinking: str = ""
    calls: tuple[Call, ...] = ()

    @property
    def takes_part(self) -> bool:
        return self.kind is not Kind.ASIDE


def decide(seen: Seen, script: Script) -> Decision:
    """The next reply. Side requests (no tools, or none that the next step needs) get "ok"."""
    number, conversation = _conversation(seen.opening, script)
    step_number = _steps_done(conversation.steps, seen.calls)
    if step_number == len(conversation.steps):
        if conversation.steps and not seen.tools:
            return Decision(Kind.ASIDE, number, step_number, "ok")
        return Decision(Kind.FINAL, number, step_number, conversation.final)
    step = conversation.steps[step_number]
    if seen.tools.isdisjoint(call.name for call in step.calls):
        return Decision(Kind.ASIDE, number, step_number, "ok")
    return Decision(Kind.STEP, number, step_number, step.text, step.thinking, step.calls)


def _conversation(opening: str, script: Script) -> tuple[int, Conversation]:
    for number, conversation in enumerate(script.conversations):
        if conversation.match in opening:
            return number, conversation
    return -1, script.default


def _steps_done(steps: Sequence[Step], history: Sequence[SeenCall]) -> int:
    """How many steps stand answered in the history, each after the one before it."""
    start = 0
    for number, step in enumerate(steps):
        taken: set[int] = set()
        for call in step.calls:
            at = _find(call, history, start, taken)
            if at is None:
                return number
            taken.add(at)
        start = max(taken, default=start - 1) + 1
    return len(steps)


def _find(call: Call, history: Sequence[SeenCall], start: int, taken: set[int]) -> int | None:
    wanted: Any = call.arguments
    if isinstance(wanted, str):
        wanted = parsed(wanted)
    for at in range(start, len(history)):
        seen = history[at]
        if (
            at not in taken
            and seen.answered
            and seen.name == call.name
            and seen.arguments == wanted
        ):
            return at
    return None
