"""Bodies of requests and responses, and bare histories.

One document in, one turn out, of the parts that it holds. Pure.
"""

from collections.abc import Iterator

from moontap.evidence import gateway
from moontap.evidence.kinds import Kind
from moontap.evidence.place import Lines, Place
from moontap.evidence.recognise import Known
from moontap.evidence.telling import Answer, Teller, Told
from moontap.findings.types import Part
from moontap.rules import Rules
from moontap.wire.protocol import ANTHROPIC, OPENAI, read_stream

_REQUESTS = (Kind.MESSAGES_REQUEST, Kind.CHAT_REQUEST)
_HISTORIES = (Kind.MESSAGES_HISTORY, Kind.CHAT_HISTORY)
_STREAMS = (Kind.MESSAGES_STREAM, Kind.CHAT_STREAM)
_STATUS_OF = {
    "authentication_error": 401,
    "invalid_authentication_error": 401,
    "incorrect_api_key_error": 401,
    "permission_error": 403,
    "permission_denied_error": 403,
    "not_found_error": 404,
    "resource_not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_reached_error": 429,
    "exceeded_current_quota_error": 429,
    "engine_overloaded_error": 429,
    "api_error": 500,
    "server_error": 500,
    "overloaded_error": 529,
}
_LIKELY = 400


def turns(known: Known, rules: Rules) -> Iterator[Told]:
    """The turn of a document."""
    wire = known.wire or OPENAI
    text, teller = known.text, Teller(wire, rules)
    if known.kind in (*_REQUESTS, *_HISTORIES):
        is_array = known.kind in _HISTORIES
        body = b'{"messages":%s}' % text if is_array else text
        request = wire.read_request(body)
        parts = Part.HISTORY if is_array else Part.HISTORY | Part.TOOLS
        lines = Lines(text, is_array)
        place = Place(messages=lambda: lines.messages, ids=lines.of)
        yield Told(teller.exchange(request, None, parts, size=len(body)), place)
    elif known.kind in _STREAMS:
        reply = read_stream(wire, text)
        answer = Answer(reply, streamed=True, kind="text/event-stream", read_body=lambda: text)
        turn = teller.exchange(None, answer, Part.REPLY | Part.EVENTS)
        yield Told(turn, Place(start=text.rstrip().count(b"\n") + 1, ids=Lines(text).of))
    elif known.kind is Kind.ERROR:
        yield _error(known, rules)
    else:
        reply = wire.reader().whole(text)
        answer = Answer(reply, kind="application/json", read_body=lambda: text)
        yield Told(teller.exchange(None, answer, Part.REPLY), Place(start=1, ids=Lines(text).of))


def status_of(known: Known) -> int:
    """The status that an error body came with, told by its type or, in HTML, by its title."""
    if not isinstance(known.value, dict):
        return gateway.status(known.text) or 502
    error = known.value.get("error")
    error = error if isinstance(error, dict) else {}
    code = error.get("code")
    if isinstance(code, int) and 400 <= code <= 599:
        return code
    kinds = (str(error.get("type")), str(code))
    return next((_STATUS_OF[kind] for kind in kinds if kind in _STATUS_OF), _LIKELY)


def _error(known: Known, rules: Rules) -> Told:
    text = known.text
    is_json = isinstance(known.value, dict)
    is_messages = is_json and known.value.get("type") == "error"
    wire = ANTHROPIC if is_messages else OPENAI
    answer = Answer(
        wire.reader().whole(text),
        status=status_of(known),
        kind="application/json" if is_json else "text/html",
        read_body=lambda: text,
    )
    return Told(Teller(wire, rules).exchange(None, answer, Part.ANSWER), Place(start=1))
