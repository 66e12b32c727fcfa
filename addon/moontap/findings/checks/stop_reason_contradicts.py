"""A stop reason that says something else than the reply it ends."""

from collections.abc import Iterator

from moontap.findings.check import Check
from moontap.findings.turn import Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity
from moontap.wire.types import ReplyCall

_CALLS = frozenset({"tool_use", "tool_calls"})
_DONE = frozenset({"end_turn", "stop"})


def look(turn: Turn) -> Iterator[Found]:
    """Each choice of a reply that came to its end."""
    got = turn.got
    if got is None or got.is_refusal or got.cut or not got.reply.complete or got.reply.unreadable:
        return
    held: dict[int, list[ReplyCall]] = {}
    for call in got.calls:
        held.setdefault(call.choice, []).append(call)
    for number, choice in got.reply.choices.items():
        reason, calls = choice.stop_reason, held.get(number, [])
        if reason in _CALLS and not calls:
            says = f"The reply ends with `{reason}`, and there is no call in it."
        elif reason in _DONE and calls and not _forced(turn):
            some = "a call" if len(calls) == 1 else f"{len(calls)} calls"
            says = f"The reply holds {some}, and ends with `{reason}` as if it were done."
        else:
            continue
        yield Found(
            says,
            about=(reason, bool(calls)),
            evidence=Evidence(
                choice=number,
                ids=tuple(call.id for call in calls),
                facts={"stop_reason": reason, "calls": len(calls)},
            ),
        )


def _forced(turn: Turn) -> bool:
    """Whether the request demanded a call: OpenAI ends such a reply with `stop`."""
    choice = bytes(turn.sent.request.asked.tool_choice if turn.sent else b"").strip()
    return choice == b'"required"' or (choice[:1] == b"{" and b'"function"' in choice)


CHECK = Check(
    code="stop-reason-contradicts",
    needs=Part.REPLY,
    severity=Severity.WARNING,
    party=Party.API,
    title="The stop reason contradicts the reply",
    explained="""\
A reply with tool calls ends with `tool_use` (Messages) or `tool_calls` (Chat Completions), one
without them with `end_turn` or `stop`. Here it is the other way round. Servers that find calls in a
model's text have been seen to do both. Where the request demanded a call (`tool_choice: "required"`
or a named function), OpenAI ends the reply with `stop`, and that is none of this.

An agent that goes by the stop reason stops although there are calls, and the next request lacks
their results; or it waits for calls that never came, and sends an empty list of results.""",
    example="""\
data: {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "ls:0", …}]}}]}
data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}""",
    remedy="Go by the calls in the reply, not by its stop reason.",
    look=look,
)
