"""A compressed body whose headers do not say so."""

from collections.abc import Iterator

from moontap.findings.check import Check
from moontap.findings.turn import Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity


def look(turn: Turn) -> Iterator[Found]:
    """Once a conversation."""
    got = turn.got
    if got is None or not got.unnamed:
        return
    yield Found(
        f"The reply is compressed with {got.unnamed}, and no content-encoding header says so: "
        "a client reads noise.",
        about=got.unnamed,
        evidence=Evidence(facts={"encoding": got.unnamed, "content_type": got.kind or None}),
    )


CHECK = Check(
    code="encoding-unnamed",
    needs=Part.ANSWER,
    severity=Severity.WARNING,
    party=Party.API,
    title="A reply is compressed and does not say so",
    explained="""\
The body begins with the mark of a compressed file, and the headers name no `content-encoding`.
HTTP clients hand such a body on as it is; to the SDK it is no JSON and no event, so the reply looks
empty or broken. Proxies that drop the header and keep the body do this.""",
    example="""\
HTTP/1.1 200 OK
content-type: text/event-stream

1f 8b 08 00 …""",
    remedy="Mend the proxy that drops the header, or have the client ask for no compression "
    "(accept-encoding: identity).",
    look=look,
)
