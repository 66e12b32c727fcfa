"""An error status in place of a reply: what it means, and what of the request it points at."""

from collections.abc import Iterator

from moontap.findings import refusals
from moontap.findings.check import Check
from moontap.findings.places import Place, hint_of, named
from moontap.findings.refusals import Error, Reason, error_of, ids_in, reason_of
from moontap.findings.turn import Got, Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity
from moontap.report.text import short
from moontap.wire.types import Protocol


def look(turn: Turn) -> Iterator[Found]:
    """Once a conversation for each reason, and each place that it points at."""
    got = turn.got
    if got is None or not (got.is_refusal or _is_bare_error(got)):
        return
    error = error_of(got)
    text = f"{error.kind}: {error.text}" if error.kind else error.text
    reason = reason_of(got.status, text)
    ids = ids_in(reason, text)
    place = _place(turn, reason, error, ids)
    ids = tuple(filter(None, place.ids)) if place and place.ids else ids
    yield Found(
        _message(got, error, reason, ids, place),
        about=(reason.code, got.status, place and (place.message, place.block)),
        evidence=Evidence(
            message=place.message if place else None,
            block=place.block if place else None,
            ids=(place.ids if place else None) or ids,
            excerpt=short(error.text, 200),
            facts={
                "status": got.status or None,
                "reason": reason.code,
                "type": error.kind or None,
                "form": _form(turn, got, error),
                "request_id": got.request_id,
            },
        ),
        severity=reason.severity,
        party=reason.party,
        remedy=reason.remedy,
    )


def _is_bare_error(got: Got) -> bool:
    """Whether there is an error body and nobody knows its status."""
    return not got.status and not got.streamed and got.reply.error is not None


def _place(turn: Turn, reason: Reason, error: Error, ids: tuple[str, ...]) -> Place | None:
    if turn.sent is None:
        return None
    hint, request = hint_of(error.text, ids), turn.sent.request
    place = named(request, hint)
    if place and place.block is not None:
        return place
    found = reason.place(request, hint) if reason.place else None
    # A text often names a message alone, and what it means stands in one block of it.
    return found if place is None or (found and found.message == place.message) else place


def _message(
    got: Got, error: Error, reason: Reason, ids: tuple[str, ...], place: Place | None
) -> str:
    shown = ", ".join(short(id_, 60) or '""' for id_ in ids[:3])
    sentence = reason.sentence.replace("({id})", f"({shown})" if shown else "")
    sentence = " ".join(sentence.split()).replace(" ,", ",")
    status = f" with {got.status}" if got.status else ""
    page = " (a page of HTML)" if error.page else ""
    where = f"; it is in message {place.message}" if place else ""
    said = f', "{short(error.text, 120)}"' if reason.code in _QUOTED and error.text else ""
    return f"{reason.by} refused the request{status}{page}: {sentence}{where}{said}."


_QUOTED = ("bad-request", "server-error", "not-allowed", "not-there", "guard", "replay")


def _form(turn: Turn, got: Got, error: Error) -> str:
    """In which form the error came: a Messages client may not know how to read another one."""
    if error.page:
        return "html"
    if got.reply.error is None:
        return "text"
    messages = b'"error"' in (head := b"".join(got.body[:2000].split())) and (
        b'"type":"error"' in head
    )
    return Protocol.ANTHROPIC.value if messages else Protocol.OPENAI.value


def _reasons() -> str:
    """The table of reasons, for people."""
    rows = [f"| `{code}` | {meaning} |" for code, meaning in refusals.meanings().items()]
    return "\n".join(["| `reason` | what it means |", "|---|---|", *rows])


CHECK = Check(
    code="api-refused",
    needs=Part.ANSWER,
    severity=Severity.ERROR,
    party=Party.API,
    title="The API refused the request",
    explained=f"""\
An error status came in place of a reply. `reason` in the evidence says which, and the message and
block that it points at were looked up in the request (both count from 0).

{_reasons()}

A 400 comes again with every later turn of the conversation, for the history stays: mend the history
or begin anew. `overloaded`, `rate-limit`, `server-error` and `gateway-timeout` pass, and are
warnings. `form` says how the error was written: the 401 of Moonshot's Messages endpoint comes as
`openai-chat`, so that Anthropic's SDK shows it without its text, and the 504 is a page of HTML.
`guard` and `replay` are moontap's own answers, met in a log or behind a second tap.""",
    example="""\
HTTP/1.1 400 Bad Request

{"error":{"type":"invalid_request_error","message":"tool call id Bash_0 is duplicated"}}""",
    remedy="Read what it says; moontap lint looks through the request.",
    look=look,
)
