"""A message of a request that is not in the form of the protocol: words and members misspelled."""

import re
from collections.abc import Iterator

from moontap.findings.check import Check
from moontap.findings.echoes import was_delivered
from moontap.findings.excerpts import excerpt
from moontap.findings.turn import Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity
from moontap.report.text import many
from moontap.wire.types import Fault, Message, Odd, Protocol

_INDEX = re.compile(r"\[\d+\]")
_APIS = {Protocol.ANTHROPIC: "the Messages API", Protocol.OPENAI: "Chat Completions"}
_OTHER = {Protocol.ANTHROPIC: Protocol.OPENAI, Protocol.OPENAI: Protocol.ANTHROPIC}


def look(turn: Turn) -> Iterator[Found]:
    """Once for each thing that is odd: a client that writes it so, does so every time."""
    first: dict[tuple[str, Fault, str], tuple[int, Odd]] = {}
    count: dict[tuple[str, Fault, str], int] = {}
    for position, message in turn.sent.fresh if turn.sent else ():
        for odd in message.odd:
            if not _came_so(turn, position, message, odd):
                about = (_INDEX.sub("", odd.path), odd.fault, odd.said)
                first.setdefault(about, (position, odd))
                count[about] = count.get(about, 0) + 1
    for about, (position, odd) in first.items():
        severity = _severity(turn, odd)
        if severity is not None:
            yield _found(turn, about, position, odd, count[about] - 1, severity)


def _came_so(turn: Turn, position: int, message: Message, odd: Odd) -> bool:
    """Whether it is a call's, and a reply delivered it like that: the client only says it again.
    But for arguments in Chat Completions, which come as a string."""
    if turn.protocol is Protocol.OPENAI and odd.path.endswith(".arguments"):
        return False
    calls = (call for call in message.calls if call.block == odd.block)
    return any(was_delivered(turn, position, call) for call in calls)


def _severity(turn: Turn, odd: Odd) -> Severity | None:
    """What the API took it knows how to read, save for what is plainly a slip: that it left out."""
    if turn.got is None or not 200 <= turn.got.status < 300:
        return Severity.ERROR
    if odd.fault in (Fault.WORD, Fault.MISSING):
        return Severity.WARNING if odd.meant else None
    return Severity.INFO


def _found(
    turn: Turn,
    about: tuple[str, Fault, str],
    position: int,
    odd: Odd,
    more: int,
    severity: Severity,
) -> Found:
    place = f"messages[{position}]" + (f".{odd.path}" if odd.path else "")
    guess = f" Did you mean `{odd.meant}`?" if odd.fault is Fault.WORD and odd.meant else ""
    others = f" (and {many(more, 'place')} like it)" if more else ""
    return Found(
        f"`{place}` {_says(turn.protocol, odd)}{others}.{guess}",
        about=about,
        evidence=Evidence(
            message=position,
            block=odd.block,
            facts={
                "path": place,
                "fault": odd.fault.value,
                "said": excerpt(odd.said, limit=80),
                "meant": odd.meant,
                "more": more,
            },
        ),
        severity=severity,
    )


def _says(protocol: Protocol, odd: Odd) -> str:
    api, said = _APIS[protocol], excerpt(odd.said, limit=48)
    match odd.fault:
        case Fault.WORD:
            return f"is `{said}`, which {api} does not know"
        case Fault.MISSING:
            there = f"; `{said}` stands there instead" if said else ""
            return f"is missing{there}"
        case Fault.FOREIGN:
            return f"is `{said}`, a block of {_APIS[_OTHER[protocol]]}, in a request of {api}"
    return f"is {said} where {odd.meant} belongs"


CHECK = Check(
    code="message-malformed",
    needs=Part.HISTORY,
    severity=Severity.ERROR,
    party=Party.CLIENT,
    title="A message is not in the form of the protocol",
    explained="""\
A role that does not exist (`assistnat`), a message without role or content, a member or a type
that is a slip away from a known one (`contnet`, `tool_resutl`), a call without a name, arguments as
an object where Chat Completions has them as a string of JSON, a result that names its call by the
other protocol's member. Whoever wrote the request wrote it so: a program of one's own, a proxy that
translates, a body made by hand.

It is no validation. A type that is like no known one may be of a newer version of the protocol, and
passes; what stands beside the history is not looked at. Where the API answered all the same, a slip
is told as `warning`, since what is misspelled was most likely left out, and another form as `info`.
What a reply delivered like that, and the client only says again, is not meant.""",
    example="""\
{"role": "assistnat", "content": "On it."}
{"role": "user", "contnet": "go on"}
{"role": "assistant", "tool_calls": [{"id": "ls:0", "type": "function",
 "function": {"name": "ls", "arguments": {"path": "."}}}]}             <- no string""",
    remedy="Correct it where the request is made; docs/lint.md says what of the form is looked at.",
    look=look,
)
