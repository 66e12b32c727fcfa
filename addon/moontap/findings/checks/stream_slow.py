"""A reply that began late, or fell silent."""

from collections.abc import Iterator

from moontap.findings.check import Check
from moontap.findings.turn import Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity

_MUCH = 5
"""This many times the limit, and clients and proxies begin to give up."""


def look(turn: Turn) -> Iterator[Found]:
    """Once a conversation for each of the two, and once more where it is much worse."""
    got, rules = turn.got, turn.rules.findings
    if got is None:
        return
    asked = turn.sent is None or turn.sent.request.stream
    late, silent = got.first_byte_s, got.silence_s
    # What is not streamed comes when it is complete: that it takes long is no sign of anything.
    if asked and late is not None and late >= rules.first_byte_s:
        yield _found("first-byte", "passed before the reply began", late, rules.first_byte_s)
    if got.streamed and silent is not None and silent >= rules.silence_s:
        yield _found("silence", "passed within the reply without a byte", silent, rules.silence_s)


def _found(kind: str, what: str, seconds: float, limit: float) -> Found:
    return Found(
        f"{seconds:.0f} seconds {what}.",
        about=kind,
        evidence=Evidence(facts={"kind": kind, "seconds": round(seconds, 1), "limit": limit}),
        severity=Severity.WARNING if seconds >= _MUCH * limit else Severity.INFO,
    )


CHECK = Check(
    code="stream-slow",
    needs=Part.TIMES,
    severity=Severity.INFO,
    party=Party.API,
    title="The reply began late, or fell silent",
    explained="""\
Nothing came for a long time: from the end of the request to the first headers of a stream
(`first-byte`), or between two pieces of it and up to its end (`silence`). The limits are
`findings.first_byte_s` and `findings.silence_s` in the rules, both 60 seconds; from five times that
on it is a warning. Long contexts and long thinking take their time, and a server that sends a
`ping` now and then is not silent. Proxies on the way often give up after 60 to 300 seconds.""",
    example="""\
POST /anthropic/v1/messages     12:00:00
HTTP/1.1 200 OK                 12:01:31""",
    remedy="Raise the time limits of the client and of the proxies on the way, or send a shorter "
    "context.",
    look=look,
)
