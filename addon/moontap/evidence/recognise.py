"""What an input is, told by what it holds and never by its name.

A source in, its kind and its text out. Never writes.
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from moontap.evidence import gateway, lines, partial, protocols
from moontap.evidence.damage import Damage
from moontap.evidence.kinds import ACCEPTED, Kind
from moontap.evidence.nearly import wrong_request
from moontap.evidence.source import HEAD, Source, Unknown, Unusable
from moontap.redact.flow import Redactor
from moontap.report.text import short
from moontap.wire import jsontext
from moontap.wire.protocol import ANTHROPIC, OPENAI, Wire

_RECORD = re.compile(rb"[1-9][0-9]{0,11}:[0-9]{1,6}:[a-z_]+[;:]")
_WITHIN = re.compile(rb"[1-9][0-9]{0,11}:9:websocket;")
# Not every log is one: Elastic's write `{"log": {"level": …}}`.
_HAR = re.compile(
    rb'\s*+\{\s*+"log"\s*+:\s*+\{\s*+"(?:version|creator|browser|pages|entries|comment)"'
)
_DATA = re.compile(rb"^data:[ \t]*+([^\r\n]++)", re.M)
_LOG = re.compile(rb"^\d{4}-\d\d-\d\dT[\d:.]+Z \[(?:DEBUG|INFO|WARN|ERROR)\] ", re.M)
_HTML = re.compile(rb"\s*+<(?:!doctype\s+html|html|head|body|title)\b", re.I)
_OBJECT = re.compile(rb'\{\s*+(?:"|\Z)')
_SAMPLE = 60  # lines of a JSONL file that tell what it is

_OF_TRANSCRIPT = frozenset(
    (
        "user",
        "assistant",
        "system",
        "summary",
        "attachment",
        "progress",
        "result",
        "api-request",
        "api-request-blob",
        "api-request-shape",
        "queue-operation",
        "last-prompt",
        "file-history-snapshot",
    )
)
_ROLES = frozenset(("user", "assistant", "tool", "system", "developer"))
_BY_LINE = (Kind.TRANSCRIPT, Kind.KIMI_CONTEXT, Kind.KIMI_WIRE)
_EVENTS = (
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
)
# What may stand beside `error` where that is a text of its own, as gateways write it.
_OF_ERROR = frozenset(
    (
        *("error", "message", "msg", "detail", "details", "reason", "error_description"),
        *("status", "statusCode", "status_code", "code", "type", "path", "timestamp"),
        *("request_id", "requestId", "success"),
    )
)
_TOLD_BY_NOTHING = (
    "nothing in it tells Chat Completions and Messages apart; taken for Chat Completions"
)
_INSTEAD = {
    "pairs": "is a pairs.jsonl, which holds what was made of the traffic: give the traffic.flow "
    "beside it, or the folder (`moontap pairs` shows it)",
    "findings": "is a findings.jsonl, which holds what was found already: give the traffic.flow "
    "beside it, or the folder (`moontap explain` tells it in order)",
    "run": "is a run.json: give the folder that it is in",
}


@dataclass(slots=True)
class Known:
    """An input that is known. text: in UTF-8, masked, JSON mended; empty for flows. value: a JSON
    document, decoded. wire: the protocol, where it has one. note: why it was taken for it, where
    that is a guess."""

    kind: Kind
    text: bytes = b""
    value: Any = None
    wire: Wire | None = None
    damage: list[Damage] = field(default_factory=list)
    note: str = ""


class _Instead(Exception):
    """It is of ours, and something else is to be given instead: the sentence about it."""


def is_flows(head: bytes) -> bool:
    """Whether a file that begins so is a flow file, by its first record."""
    return bool(_RECORD.match(head))


def recognise(source: Source, redactor: Redactor) -> Known:
    """What a source is. Raises Unusable, as a rule Unknown, where nothing can be told from it."""
    head = source.raw[:HEAD]
    if is_flows(head):
        return Known(Kind.FLOWS)
    if _HAR.match(head.removeprefix(b"\xef\xbb\xbf")):
        return Known(Kind.HAR)
    text = source.text(redactor)
    try:
        known = _document(text) or _lines(text)
    except _Instead as error:
        raise Unusable(f"{source.name} {error}") from None
    except partial.Absurd as error:
        raise Unusable(f"{source.name}: looks like JSON, but {error}") from None
    if known and known.kind is Kind.HAR:  # not as it lies there: read what was made of it
        source.path, source.raw = None, text
    if not known and _WITHIN.search(head):  # its beginning is damaged
        return Known(Kind.FLOWS)
    known = known or _plain(text)
    if known:
        _mask(known, redactor)
        source.notes += [known.note] if known.note else []
        return known
    raise Unknown(f"{source.name}: not known; it begins with {_beginning(text)}. {_accepted()}")


def _mask(known: Known, redactor: Redactor) -> None:
    """Mask by structure as well: behind JSON escapes, cut up by a stream, by the rules' paths."""
    if known.kind in _BY_LINE:
        known.text = b"\n".join(map(redactor.mask_body, known.text.split(b"\n")))
    elif known.kind is not Kind.DEBUG_LOG:
        streamed = known.kind in (Kind.MESSAGES_STREAM, Kind.CHAT_STREAM)
        masked = redactor.mask_body(known.text, streamed=streamed)
        if masked != known.text and known.value is not None:
            known.value = jsontext.loads(masked)
        known.text = masked


def _accepted() -> str:
    return f"What can be read: {ACCEPTED}"


def _beginning(text: bytes) -> str:
    return repr(short(text[:200].decode("utf-8", "replace").strip(), 40))


def _document(text: bytes) -> Known | None:
    """One JSON document, perhaps damaged."""
    begins = text.lstrip()[:1]
    if begins not in (b"{", b"["):
        return None
    first, _, rest = text.strip().partition(b"\n")
    if rest and begins == b"{" and first.rstrip()[-1:] == b"}" and rest.lstrip()[:1] == b"{":
        return None  # an object a line
    try:
        mended, value, damage = partial.whole(text)
    except partial.Absurd:
        raise
    except ValueError:
        return None
    known = _of_array(value, text) if isinstance(value, list) else _of_object(value, text)
    if known and known.kind in _BY_LINE:  # one record, over several lines
        mended = jsontext.encode(value).encode("utf-8", "surrogatepass")
    if known:
        known.text, known.value, known.damage = mended, value, damage
    return known


def _of_array(value: list[Any], text: bytes) -> Known | None:
    if not all(isinstance(one, dict) for one in value):
        return None
    if value and not any(str(one.get("role")) in _ROLES for one in value):
        return None
    wire = protocols.of_history(value, text)
    kind = Kind.MESSAGES_HISTORY if wire is ANTHROPIC else Kind.CHAT_HISTORY
    return Known(kind, wire=wire, note="" if wire else _TOLD_BY_NOTHING)


def _of_object(value: Any, text: bytes) -> Known | None:
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("messages"), list):
        wire = protocols.of_request(value, text)
        kind = Kind.MESSAGES_REQUEST if wire is ANTHROPIC else Kind.CHAT_REQUEST
        return Known(kind, wire=wire or OPENAI, note="" if wire else _TOLD_BY_NOTHING)
    if isinstance(value.get("log"), dict) and "entries" in value["log"]:
        return Known(Kind.HAR)
    if _is_messages_reply(value):
        return Known(Kind.MESSAGES_REPLY, wire=ANTHROPIC)
    if kept := _record_kind(value):
        return Known(kept)
    if ours := _instead(value):
        raise _Instead(_INSTEAD[ours])
    if _is_event(value):
        return None  # a stream of one line
    if value.get("object") == "chat.completion" or _has_choices(value):
        return Known(Kind.CHAT_REPLY)
    if _is_error(value):
        return Known(Kind.ERROR)
    if wrong := wrong_request(value):
        raise _Instead(wrong)
    return None


def _is_messages_reply(value: dict[str, Any]) -> bool:
    """`type` may be what a cut has taken; a message of a history has neither id nor model."""
    if "stop_reason" in value and "content" in value:
        return True
    if value.get("role") != "assistant":
        return False
    kind = value.get("type")
    named = "id" in value or "model" in value
    return kind == "message" or (kind is None and named and isinstance(value.get("content"), list))


def _has_choices(value: dict[str, Any]) -> bool:
    choices = value.get("choices")
    if not isinstance(choices, list):
        return False
    if not choices:
        return any(name in value for name in ("id", "object", "model", "usage"))
    first = choices[0]
    return isinstance(first, dict) and ("message" in first or "finish_reason" in first)


def _is_error(value: dict[str, Any]) -> bool:
    """An error body: `error` is an object, or a text with nothing beside it but its like."""
    error = value.get("error")
    if value.get("type") == "error" and value.keys() <= {"type", "request_id"}:
        return True  # a cut has taken the rest
    if isinstance(error, dict):
        return bool(error.keys() & {"message", "type", "code", "status"})
    return isinstance(error, str) and bool(error) and value.keys() <= _OF_ERROR


def _is_event(value: dict[str, Any]) -> bool:
    """An event's data without the `data:` before it."""
    choices = value.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    return (
        value.get("type") in _EVENTS
        or value.get("object") == "chat.completion.chunk"
        or (isinstance(choice, dict) and "delta" in choice)
    )


def _is_ping(value: dict[str, Any]) -> bool:
    """Beside other events: a webhook's looks much the same."""
    return value == {"type": "ping"}


def _lines(text: bytes) -> Known | None:
    """A JSON object a line."""
    votes: Counter[Kind | str] = Counter()
    parsed = 0
    start = 0
    while parsed < _SAMPLE and start < len(text):
        end = text.find(b"\n", start)
        end = len(text) if end < 0 else end
        line, start = text[start:end].strip(b" \t\r\0"), end + 1
        if line[:1] != b"{":
            continue
        record = next(lines.records(line, []), None)
        if record is None:
            continue
        parsed += 1
        found = _record_kind(record.value) or _instead(record.value)
        if not found and _is_event(record.value):
            found = "events"
        if found:
            votes[found] += 1
    if not votes:
        return None
    found = votes.most_common(1)[0][0]
    if found == "events":
        framed = b"\n".join(
            b"data: " + line.strip() + b"\n" if line.strip() else b"" for line in text.split(b"\n")
        )
        return _stream(framed)
    if not isinstance(found, Kind):
        raise _Instead(_INSTEAD[found])
    return Known(found, text)


def _record_kind(value: dict[str, Any]) -> Kind | None:
    kind, message = jsontext.string(value.get("type")), value.get("message")
    if (
        isinstance(message, dict)
        and isinstance(message.get("payload"), dict)
        and isinstance(message.get("type"), str)
    ):
        return Kind.KIMI_WIRE
    if kind == "metadata" and "protocol_version" in value:
        return Kind.KIMI_WIRE
    if kind in _OF_TRANSCRIPT and _is_of_transcript(kind, value):
        return Kind.TRANSCRIPT
    role = jsontext.string(value.get("role"))
    if role in ("_checkpoint", "_usage", "_system_prompt"):
        return Kind.KIMI_CONTEXT
    if role in _ROLES and value.get("type") is None:
        return Kind.KIMI_CONTEXT if "content" in value or "tool_calls" in value else None
    return None


def _is_of_transcript(kind: str, value: dict[str, Any]) -> bool:
    """Audit and application logs have types and sessions, too."""
    if kind in ("user", "assistant"):
        message = value.get("message")
        return isinstance(message, dict) and ("role" in message or "content" in message)
    if kind in ("system", "result"):
        return "subtype" in value and ("session_id" in value or "sessionId" in value)
    return any(name in value for name in ("sessionId", "leafUuid", "snapshot"))


def _instead(value: dict[str, Any]) -> str | None:
    """What of ours it is, that holds no evidence itself."""
    if "arguments_sha256" in value and "status" in value:
        return "pairs"
    if {"code", "severity", "party"} <= value.keys():
        return "findings"
    if value.get("v") == 1 and "mitmproxy" in str(value.get("versions", value))[:2000]:
        return "run"
    return None


def _plain(text: bytes) -> Known | None:
    head = text[:HEAD]
    if _LOG.search(head):
        return Known(Kind.DEBUG_LOG, text)
    if _holds_events(head):
        return _stream(text)
    if _HTML.match(head) and gateway.status(head):
        return Known(Kind.ERROR, text)
    return None


def _holds_events(head: bytes) -> bool:
    """Whether a text is an event stream of one of the protocols: YAML and notes have lines that
    begin with `data:`, `id:` and `:` as well."""
    cut = other = False
    for found in islice(_DATA.finditer(head), _SAMPLE):
        data = found[1].strip()
        if data == b"[DONE]":
            return True
        if not _OBJECT.match(data):
            continue
        record = next(lines.records(data, []), None)
        if record is None:
            cut = True  # it may break off, or go on in another line
        elif _is_event(record.value) or _is_ping(record.value) or _is_error(record.value):
            return True
        else:
            other = True
    return cut and not other


def _stream(text: bytes) -> Known:
    wire = protocols.of_stream(text)
    kind = Kind.MESSAGES_STREAM if wire is ANTHROPIC else Kind.CHAT_STREAM
    return Known(kind, text, wire=wire)
