"""Replies as they come back in the next request's history.

A turn in, its new assistant messages beside what was delivered at their place out. Pure.
"""

from collections.abc import Iterator

from moontap.findings import arguments
from moontap.findings.conversation import Said
from moontap.findings.turn import Turn
from moontap.wire.types import Call, Message

type Given = tuple[str | None, str, bytes]
"""A delivered call: its id, tool and arguments."""


def echoes(turn: Turn) -> Iterator[tuple[int, Message, Said]]:
    """The new assistant messages, with their positions, where a reply was delivered that came to
    its end."""
    if turn.sent is None:
        return
    for position, message in turn.sent.fresh():
        said = turn.before.replies.get(position)
        if said and said.complete and message.role == "assistant":
            yield position, message, said


def matched(message: Message, said: Said) -> list[tuple[Call, Given]]:
    """The calls that came back, each beside what was delivered: by id and tool, and of several
    such calls the one with these very arguments before the first one."""
    left = list(said.calls)
    pairs = []
    for call in message.calls:
        alike = [one for one in left if one[:2] == (call.id, call.name)]
        if alike:
            given = alike[0] if len(alike) == 1 else _nearest(call, alike)
            left.remove(given)
            pairs.append((call, given))
    return pairs


def _nearest(call: Call, alike: list[Given]) -> Given:
    back = arguments.read(call.arguments)
    return next((one for one in alike if arguments.same(arguments.read(one[2]), back)), alike[0])


def was_delivered(turn: Turn, position: int, call: Call) -> bool:
    """Whether a call of the history is one that a reply at its place delivered."""
    said = turn.before.replies.get(position)
    return said is not None and any(one[:2] == (call.id, call.name) for one in said.calls)
