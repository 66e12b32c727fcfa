"""A request that comes again, and which kind of again: told by what went before and by its headers.

A turn and the exchange before it in, a kind out. Pure. A new decision of the model is none of them:
then the history has grown.
"""

from enum import StrEnum

from moontap.findings.conversation import Last
from moontap.findings.turn import Turn
from moontap.findings.types import Ending
from moontap.wire.types import Message, Request

_FIRST, _LAST = 2, 8


class Repeat(StrEnum):
    """Why the same messages came again."""

    SDK_RETRY = "sdk-retry"
    """The SDK says so in `x-stainless-retry-count`."""
    CLIENT_RETRY = "client-retry"
    """After a failure; the SDK counts its retries and says that this is none."""
    NETWORK_RETRY = "network-retry"
    """After a failure; nothing says who sent it."""
    FALLBACK = "fallback"
    """A stream, then the same without streaming."""
    TWO_CLIENTS = "two-clients"
    """From another client, or while the first one still ran."""
    SENT_AGAIN = "sent-again"
    """The reply before was whole and good."""


def repeat_of(turn: Turn, last: Last | None) -> Repeat | None:
    """Which one a turn's request is; None where it is none, or where the evidence does not say."""
    sent = turn.sent
    if sent is None or last is None or last.ending is None or not sent.is_repeat:
        return None
    if not same_history(turn, last):
        return None  # a rewind, or another text in the place of the last one
    if sent.retry:
        return Repeat.SDK_RETRY
    same = last.asked == asked_of(sent.request)
    failed = last.ending is not Ending.WHOLE
    if not failed and not same:
        return None  # the same history put to another use: a title, a summary, another model
    if sent.agent and last.agent and sent.agent != last.agent:
        return Repeat.TWO_CLIENTS
    early = turn.at is not None and last.ended is not None and turn.at < last.ended
    if early and last.ending is not Ending.LEFT:
        return Repeat.TWO_CLIENTS
    if last.stream and not sent.request.stream:
        return Repeat.FALLBACK
    if failed:
        return Repeat.NETWORK_RETRY if sent.retry is None else Repeat.CLIENT_RETRY
    return Repeat.SENT_AGAIN if last.size == sent.size else None


def same_history(turn: Turn, last: Last) -> bool:
    """Whether a request has just the messages of the one before it."""
    sent = turn.sent
    return (
        sent is not None
        and last.messages == len(sent.request.messages)
        and last.history == history_of(sent.request.messages)
    )


def continues(turn: Turn, last: Last) -> bool:
    """Whether a request has the messages of the one before it, and more."""
    messages = turn.sent.request.messages if turn.sent else ()
    return len(messages) > last.messages and last.history == history_of(messages[: last.messages])


def history_of(messages: tuple[Message, ...]) -> int:
    """A number for what its first and its latest messages say. It means something within one
    process only. Not for all: a turn must not cost more for what came long before it, and that a
    repeat shares all its calls and most of its texts is known already."""
    ends = messages if len(messages) <= _FIRST + _LAST else messages[:_FIRST] + messages[-_LAST:]
    return hash(tuple([(one.skeleton, one.said, one.heard) for one in ends]))


def asked_of(request: Request) -> int:
    """A number for what else it asks for. Not for the limit and the thinking: Claude Code sets
    another limit where it falls back from streaming."""
    asked = request.asked
    return hash((request.model, asked.tools, asked.tool_choice, asked.functions))


def is_opening(request: Request) -> bool:
    """Whether no reply stands in it: the same opening sent again is often a new run."""
    return not any(message.role == "assistant" for message in request.messages)


def forces_call(request: Request) -> bool:
    """Whether the model must call a tool: a client that wants data in a form, and no result."""
    choice = request.asked.tool_choice
    return any(mark in choice for mark in (b'"any"', b'"tool"', b'"function"', b'"required"'))
