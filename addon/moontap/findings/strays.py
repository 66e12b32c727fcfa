"""Results of a request's new messages that no waiting call can take, told apart by why.

A turn in, strays out. Pure. It looks at nothing where every result has its call, as is the rule.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from moontap.findings.turn import Sent, Turn
from moontap.lineage import Tracked
from moontap.origin import Origin
from moontap.pairing import Place
from moontap.wire.types import Message, Result


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
    for place in sent.pairing.orphans:
        if place[0] >= sent.new:
            yield _stray(turn, sent, place)


def _stray(turn: Turn, sent: Sent, place: Place) -> Stray:
    position, number = place
    messages = sent.request.messages
    result = messages[position].results[number]
    for outcome in turn.outcomes:
        if outcome.result is result and outcome.at is None and outcome.call:
            return Stray(position, result, Why.DROPPED, None, outcome.call)
    at = _last_reply(messages, position)
    if at is not None and _calls(messages[at], result.id):
        return Stray(position, result, Why.AGAIN, at)
    at = _called(messages[:position], result.id)
    if at is not None and _said_before(messages, place):
        return Stray(position, result, Why.AGAIN, at)
    for later in range(position, len(messages)):
        for n, call in enumerate(messages[later].calls):
            if call.id == result.id and (later, n) not in sent.pairing.answers:
                return Stray(position, result, Why.EARLY, later)
    return Stray(position, result, Why.UNKNOWN)


def _last_reply(messages: tuple[Message, ...], before: int) -> int | None:
    found = (at for at in range(before - 1, -1, -1) if messages[at].role == "assistant")
    return next(found, None)


def _called(messages: tuple[Message, ...], id_: str | None) -> int | None:
    """The latest message with a call of that id."""
    found = (at for at in range(len(messages) - 1, -1, -1) if _calls(messages[at], id_))
    return next(found, None)


def _calls(message: Message, id_: str | None) -> bool:
    return any(call.id == id_ for call in message.calls)


def _said_before(messages: tuple[Message, ...], place: Place) -> bool:
    """Whether the history before has an equal result: the same id, the same content."""
    position, number = place
    result = messages[position].results[number]
    earlier = [one for message in messages[:position] for one in message.results]
    earlier += messages[position].results[:number]
    return any(one.id == result.id and one.content == result.content for one in earlier)
