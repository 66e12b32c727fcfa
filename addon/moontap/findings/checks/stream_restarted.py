"""A stream that began anew before it had ended."""

import re
from collections.abc import Iterator
from itertools import pairwise

from moontap.findings.check import Check
from moontap.findings.turn import Got, Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity
from moontap.wire.types import Protocol

_CHUNK_ID = re.compile(rb'data: ?\{"id": ?"([^"]*)"')


def look(turn: Turn) -> Iterator[Found]:
    """Once a conversation."""
    got = turn.got
    if got is None or got.is_refusal or not got.reply.restarts:
        return
    chat = turn.protocol is Protocol.OPENAI
    if chat and _each_its_own(got):
        return
    ended = "message_stop" in got.reply.doubled or "[DONE]" in got.reply.doubled
    if ended:
        return  # two whole replies, one after the other: `stream-doubled`
    what = "another message id" if chat else "another message_start"
    times = f"{got.reply.restarts} times" if got.reply.restarts > 1 else "once"
    yield Found(
        f"The stream began anew {times} before its end ({what}): text and calls may stand twice.",
        evidence=Evidence(
            ids=tuple(call.id for call in got.calls),
            facts={"restarts": got.reply.restarts, "calls": len(got.calls)},
        ),
    )


def _each_its_own(got: Got) -> bool:
    """Whether a server gives every chunk an id of its own: then none of them begins anew."""
    ids = _CHUNK_ID.findall(got.body)
    changes: int = sum(one != other for one, other in pairwise(ids))
    return 2 * (changes + 1) > len(ids)


CHECK = Check(
    code="stream-restarted",
    needs=Part.EVENTS,
    severity=Severity.WARNING,
    party=Party.API,
    title="A stream began anew in the middle",
    explained="""\
A second `message_start` (Messages), or chunks with another message id (Chat Completions), came
before the first reply had ended: a server, or a proxy before it, asked its model again and sent
both answers down one stream. Claude Code hands on every block as it stops, so a call from before
the restart is run as well as the one after it.""",
    example="""\
data: {"type":"message_start","message":{"id":"msg_a1",…}}
data: {"type":"content_block_start","index":0,…}
data: {"type":"message_start","message":{"id":"msg_b2",…}}
data: {"type":"content_block_start","index":0,…}""",
    remedy="Tell whoever runs the server or the proxy; until then, ask without streaming.",
    look=look,
)
