"""Events that came twice where each comes once."""

from collections import Counter
from collections.abc import Iterator

from moontap.findings.check import Check
from moontap.findings.turn import Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity


def look(turn: Turn) -> Iterator[Found]:
    """Once a conversation for each kind of event."""
    got = turn.got
    if got is None or got.is_refusal:
        return
    for kind, count in sorted(Counter(got.reply.doubled).items()):
        yield Found(
            f"The stream says {kind} again where it had been said ({count} too many).",
            about=kind,
            evidence=Evidence(excerpt=kind, facts={"event": kind, "count": count}),
        )


CHECK = Check(
    code="stream-doubled",
    needs=Part.EVENTS,
    severity=Severity.WARNING,
    party=Party.API,
    title="A stream says the same end twice",
    explained="""\
A block was stopped twice, or the whole message was: two `content_block_stop` for one index, two
`message_stop`, two `[DONE]`. Kimi's Messages endpoint has been seen to do this. Clients differ:
some pass over it, some raise an error for a block that they no longer know, some hand the block on
twice, and a call is run twice.""",
    example="""\
data: {"type":"content_block_stop","index":1}

data: {"type":"content_block_stop","index":1}""",
    remedy="See whether the client copes (a call run twice, an unknown block); if not, ask without "
    "streaming, and tell the provider.",
    look=look,
)
