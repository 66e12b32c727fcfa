"""A reply that broke off, or that ended without its end."""

from collections.abc import Iterator

from moontap.findings.check import Check
from moontap.findings.turn import Got, Turn
from moontap.findings.types import Ending, Evidence, Found, Part, Party, Severity
from moontap.report.text import short
from moontap.wire.types import Protocol

_END = {Protocol.ANTHROPIC: "message_stop", Protocol.OPENAI: "[DONE]"}


def look(turn: Turn) -> Iterator[Found]:
    """At most one a reply."""
    got = turn.got
    if got is None or got.ending not in (Ending.LEFT, Ending.BROKEN, Ending.NONE):
        return
    if got.ending is Ending.BROKEN and not (got.cut or got.streamed):
        return  # whatever it is, it is no reply
    open_ = [call for call in got.calls if not call.ended]
    yield Found(
        _message(turn, got, [call.name for call in open_]),
        about=turn.number,
        evidence=Evidence(
            ids=tuple(call.id for call in open_),
            excerpt=short(got.body[-200:].decode("utf-8", "replace").strip()[-120:], 160),
            facts={
                "kind": _kind(got),
                "trouble": got.trouble,
                "bytes": len(got.body),
                "calls": len(got.calls),
            },
        ),
        severity=Severity.INFO if got.ending is Ending.LEFT or _said_all(got) else None,
        party=_party(got),
        remedy=_REMEDIES.get(_kind(got)),
    )


def _kind(got: Got) -> str:
    if got.ending is Ending.BROKEN:
        return "broke-off" if got.cut else "no-end-event"
    return "client-left" if got.ending is Ending.LEFT else "no-reply"


_REMEDIES = {
    "client-left": "Nothing, where a person stopped it; else raise the client's time limit.",
    "no-end-event": "Ask again; where it happens each time, tell whoever runs the server, or the "
    "proxy before it.",
    "no-reply": "See whether the host can be reached from here, and through which proxy.",
}


def _party(got: Got) -> Party:
    if got.ending is Ending.LEFT:
        return Party.CLIENT
    return Party.NETWORK if got.cut else Party.API


def _said_all(got: Got) -> bool:
    """Whether only the end event is missing."""
    choices = got.reply.choices.values()
    return bool(choices) and all(choice.stop_reason for choice in choices)


def _message(turn: Turn, got: Got, open_: list[str]) -> str:
    during = f", in the middle of the call of {short(open_[-1], 60)}" if open_ else ""
    end = _END[turn.protocol] if got.streamed else "end"
    why = f": {short(got.trouble, 160)}" if got.trouble else ""
    match _kind(got):
        case "client-left":
            before = f"{end} had come" if got.status else "any reply had come"
            return f"The client left before {before}{during}."
        case "no-end-event":
            rest = ", though all that it had to say is there" if _said_all(got) else during
            return f"The stream ended without {end}{rest}."
        case "no-reply":
            return f"No reply came{why}."
    if not got.trouble:
        return f"The reply has no {end}{during}: it broke off, or the recording ended first."
    return f"The reply broke off before its {end}{during}{why}."


CHECK = Check(
    code="stream-cut",
    needs=Part.REPLY,
    severity=Severity.WARNING,
    party=Party.NETWORK,
    title="A reply broke off, or ended without its end event",
    explained="""\
Only `message_stop` (Messages) or `[DONE]` (Chat Completions) says that a stream is complete.
Without it the text may be cut, and the arguments of a tool call may be half there; what a client
does with them differs. Most ask again: see [`request-retried`](#request-retried).

`kind` in the evidence tells the cases apart. `broke-off`: the connection failed, with mitmproxy's
words for it in `trouble`. `no-end-event`: the server ended the stream in good order, but did not
say the end; where the stop reason had come by then, nothing is lost and it is only `info`.
`no-reply`: not even headers came. `client-left`: the client itself hung up, as Claude Code does on
Esc and an SDK at its time limit; that is `info`, too.""",
    example="""\
event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_de

(connection closed)""",
    remedy="Ask again; where it happens often, look at the proxies on the way and at their time "
    "limits.",
    look=look,
)
