"""Which result answers which call within one history: by occurrence, never by id alone.

A history's messages in, positions out. Pure. The rule: a result belongs to the latest assistant
message before it that has an unanswered call with that id, and within one message to the first
such call.
"""

from collections.abc import Iterable
from typing import Self

from moontap.wire.types import Message

type Place = tuple[int, int]
"""A message's position in the history, and the position of a call or result within it."""


class Pairing:
    """The pairs of a history, message by message.

    answers: call place -> result place. orphans: places of results without a call, in order.
    Linear in the messages added; a copy costs what still waits for a result.
    """

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.answers: dict[Place, Place] = {}
        self.orphans: list[Place] = []
        self._position = 0
        # id -> for each message with unanswered calls of that id, these calls, the first
        # one last; the latest message last.
        self._waiting: dict[str | None, list[list[Place]]] = {}
        self.add(messages)

    def add(self, messages: Iterable[Message]) -> None:
        """Go on with the next messages."""
        for message in messages:
            self._results(message)
            self._calls(message)
            self._position += 1

    def copy(self) -> Self:
        """The same position in the history, with nothing found yet."""
        copy = type(self)()
        copy._position = self._position
        copy._waiting = {
            id_: [list(places) for places in stack] for id_, stack in self._waiting.items()
        }
        return copy

    def _results(self, message: Message) -> None:
        for number, result in enumerate(message.results):
            stack = self._waiting.get(result.id)
            if not stack:
                self.orphans.append((self._position, number))
                continue
            self.answers[stack[-1].pop()] = (self._position, number)
            if not stack[-1]:
                stack.pop()
            if not stack:
                del self._waiting[result.id]

    def _calls(self, message: Message) -> None:
        opened: dict[str | None, list[Place]] = {}
        for number in range(len(message.calls) - 1, -1, -1):
            opened.setdefault(message.calls[number].id, []).append((self._position, number))
        for id_, places in opened.items():
            self._waiting.setdefault(id_, []).append(places)


def pair(messages: Iterable[Message]) -> Pairing:
    """Pair the calls and results of a whole history."""
    return Pairing(messages)
