"""Results of a request's new messages that no waiting call can take, told apart by why.

A turn in, strays out. Pure. It looks at nothing where every result has its call, as is the rule.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from moontap.findings.turn import Sent, Turn
from moontap.lineage import Tracked
from moontap.origin import Origin
from moontap.pairing import Place
from moontap.wire.types import Result


class Why(Enum):
    """AGAIN: its call has a result already. EARLY: its call comes later. DROPPED: its call was
    delivered, and is not in the history. UNKNOWN: there is no such call."""

    AGAIN = auto()
    EARLY = auto()
    DROPPED = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class Stray:
    """message: the result's position in the history. at: the message of the call that it names,
    where there is one. call: where it was delivered and dropped."""

    message: int
    result: Result
    why: Why
    at: int | None = None
    call: Tracked[Origin] | None = None


def strays(turn: Turn) -> Iterator[Stray]:
    """In the order of the history."""
    sent = turn.sent
    if sent is None:
        return
    places = [place for place in sent.pairing.orphans if place[0] >= sent.new]
    if places:
        history = _History(turn, sent, places)
        for place in places:
            yield history.stray(place)


class _History:
    """A history, looked through once for all that its strays may belong to.

    Positions of messages by the ids that the strays name; rising, so that the nearest one is found
    without a look at each: a request may hold ten thousand strays.
    """

    def __init__(self, turn: Turn, sent: Sent, places: Sequence[Place]) -> None:
        messages = self._messages = sent.request.messages
        wanted = {messages[at].results[number].id for at, number in places}
        self._dropped = {
            id(outcome.result): outcome.call
            for outcome in turn.outcomes
            if outcome.result and outcome.call and outcome.at is None
        }
        self._replies: list[int] = []
        self._called: dict[str | None, list[int]] = {}
        self._open: dict[str | None, list[Place]] = {}
        self._said: dict[tuple[str | None, bytes], Place] = {}
        for at, message in enumerate(messages):
            if message.role == "assistant":
                self._replies.append(at)
            for number, call in enumerate(message.calls):
                if call.id in wanted:
                    self._called.setdefault(call.id, []).append(at)
                    if (at, number) not in sent.pairing.answers:
                        self._open.setdefault(call.id, []).append((at, number))
            for number, result in enumerate(message.results):
                if result.id in wanted:
                    self._said.setdefault((result.id, result.content), (at, number))

    def stray(self, place: Place) -> Stray:
        """What the result at a place is."""
        at, number = place
        result = self._messages[at].results[number]
        if call := self._dropped.get(id(result)):
            return Stray(at, result, Why.DROPPED, None, call)
        called, opened = self._called.get(result.id, []), self._open.get(result.id, [])
        reply, latest = _before(self._replies, at), _before(called, at)
        if reply is not None and _before(called, reply + 1) == reply:
            return Stray(at, result, Why.AGAIN, reply)
        # An equal one was there before: the same id, the same content.
        if latest is not None and self._said[result.id, result.content] < place:
            return Stray(at, result, Why.AGAIN, latest)
        later = bisect_left(opened, (at, 0))
        if later < len(opened):
            return Stray(at, result, Why.EARLY, opened[later][0])
        return Stray(at, result, Why.UNKNOWN)


def _before(positions: list[int], at: int) -> int | None:
    number = bisect_left(positions, at)
    return positions[number - 1] if number else None
