"""A reply without a word in it."""

from collections.abc import Iterator

from moontap.findings.check import Check
from moontap.findings.turn import Turn
from moontap.findings.types import Ending, Evidence, Found, Part, Party, Severity


def look(turn: Turn) -> Iterator[Found]:
    """At most one a reply."""
    got = turn.got
    if got is None or got.ending is not Ending.EMPTY:
        return
    yield Found(
        f"The server answered {got.status} and sent nothing.",
        about=turn.number,
        evidence=Evidence(facts={"status": got.status, "request_id": got.request_id}),
    )


CHECK = Check(
    code="reply-empty",
    needs=Part.REPLY | Part.ANSWER,
    severity=Severity.WARNING,
    party=Party.API,
    title="The reply is empty",
    explained="""\
The status says that all went well, and the body holds nothing: no event, no JSON. SDKs raise an
error or give back an empty message; Claude Code asks the same again without streaming, which shows
as [`request-retried`](#request-retried).""",
    example="""\
HTTP/1.1 200 OK
content-type: text/event-stream

(end)""",
    remedy="Ask again; where it goes on, send the request id to the provider.",
    look=look,
)
