"""Calls of a reply that are not whole: the limit of tokens cut them, or the reply broke off.

A turn in, calls with the cause out. Pure.
"""

from collections.abc import Mapping
from enum import StrEnum, auto

from moontap.findings import arguments
from moontap.findings.arguments import Shape
from moontap.findings.declared import declared
from moontap.findings.turn import Got, Turn
from moontap.wire.types import ReplyCall

LIMITS = frozenset({"length", "max_tokens", "model_context_window_exceeded"})
"""Stop reasons by which a reply says that it had to stop before it was done."""

_PLACEHOLDERS = ("", "{}")  # what a call has before the first piece of its arguments


class Cause(StrEnum):
    """LIMIT: the stop reason says so. ERROR: the server sent an error. BROKEN: it just ended."""

    LIMIT = auto()
    ERROR = auto()
    BROKEN = auto()


def cut_calls(turn: Turn) -> Mapping[int, Cause]:
    """By their positions in `got.calls`: why they are not whole. A call whose arguments are an
    object is whole, whatever came after it."""
    got = turn.got
    if got is None or not got.calls:
        return {}
    found = {}
    for number, call in enumerate(got.calls):
        if cause := _cause(turn, got, call, last=number == len(got.calls) - 1):
            found[number] = cause
    return found


def _cause(turn: Turn, got: Got, call: ReplyCall, *, last: bool) -> Cause | None:
    choice = got.reply.choices.get(call.choice)
    limited = choice is not None and choice.stop_reason in LIMITS
    over = got.reply.complete and not got.cut and got.reply.error is None
    if not limited and (over or call.ended):
        return None
    nothing = call.arguments.strip() in _PLACEHOLDERS
    if nothing:
        unsaid = not call.arguments.strip() or _needs_arguments(turn, call)
        missing = not call.ended or (last and unsaid)
    else:
        missing = arguments.read(call.arguments).shape is Shape.BROKEN
    if not missing:
        return None
    if limited:
        return Cause.LIMIT
    return Cause.ERROR if got.reply.error is not None else Cause.BROKEN


def _needs_arguments(turn: Turn, call: ReplyCall) -> bool:
    """Whether its tool cannot be run with none: then they were still to come."""
    schema = declared(turn.sent.request.asked).schemas.get(call.name) if turn.sent else None
    return bool(schema and schema.required)
