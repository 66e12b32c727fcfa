"""Replies as they come back in the next request's history.

A turn in, its new assistant messages beside what was delivered at their place out. Pure.
"""

from collections.abc import Hashable, Iterator
from functools import partial

from moontap.alike import Alike
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
    for position, message in turn.sent.fresh:
        said = turn.before.replies.get(position)
        if said and said.complete and message.role == "assistant":
            yield position, message, said


def matched(message: Message, said: Said) -> list[tuple[Call, Given]]:
    """The calls that came back, each beside what was delivered: by id and tool, and of several
    such calls the one with these very arguments before the first one."""
    found: dict[tuple[str | None, str], list[int]] = {}
    for number, given in enumerate(said.calls):
        found.setdefault(given[:2], []).append(number)
    taken: set[int] = set()
    alike = {
        known: Alike(some, lambda number: _meaning(said.calls[number][2]), taken)
        for known, some in found.items()
    }
    pairs = []
    for call in message.calls:
        some = alike.get((call.id, call.name))
        at = some.take(partial(_meaning, call.arguments)) if some else None
        if at is not None:
            pairs.append((call, said.calls[at]))
    return pairs


def _meaning(text: bytes) -> Hashable:
    return arguments.meaning(arguments.read(text))


def was_delivered(turn: Turn, position: int, call: Call) -> bool:
    """Whether a call of the history is one that a reply at its place delivered."""
    said = turn.before.replies.get(position)
    return said is not None and (call.id, call.name) in said.tools
