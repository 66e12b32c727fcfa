"""An error where a reply was promised: after HTTP 200."""

from collections.abc import Iterator

from moontap.findings.check import Check
from moontap.findings.refusals import error_of, known
from moontap.findings.turn import Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity
from moontap.report.text import short


def look(turn: Turn) -> Iterator[Found]:
    """At most one a reply."""
    got = turn.got
    if got is None or got.is_refusal or got.reply.error is None:
        return
    if not got.status and not got.streamed:
        return  # an error body of which the status is not known: `api-refused`
    error = error_of(got)
    reason = known(got.status, error.text)
    what = reason.sentence if reason else "see what it says"
    quoted = f' "{short(error.text, 120)}"' if error.text else ""
    after = "in the middle of the stream" if got.streamed else "in place of a reply, with HTTP 200"
    yield Found(
        f"The server sent an error {after},{quoted}: {what}.",
        about=(reason.code if reason else None, error.kind),
        evidence=Evidence(
            excerpt=short(error.text, 200),
            facts={
                "reason": reason.code if reason else "unknown",
                "type": error.kind or None,
                "calls": len(got.calls),
                "request_id": got.request_id,
            },
        ),
        remedy=reason.remedy if reason else None,
        party=reason.party if reason else None,
    )


CHECK = Check(
    code="stream-error",
    needs=Part.REPLY,
    severity=Severity.WARNING,
    party=Party.API,
    title="The server sent an error after it had begun to answer",
    explained="""\
The status was 200, and then came an error: an `error` event, or a chunk with an `error` member. A
status cannot be taken back once a stream has begun, so this is how overload and time limits show.
What came before it is not a whole reply. Not every client looks for it: some take what came as all
there is.""",
    example="""\
HTTP/1.1 200 OK

event: error
data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}""",
    remedy="Ask again after a pause; where it goes on, send the request id to the provider.",
    look=look,
)
