"""What an input is, told by what it holds and never by its name.

A source in, its kind and its text out. Never writes.
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from moontap.evidence import lines, partial, protocols
from moontap.evidence.damage import Damage
from moontap.evidence.kinds import ACCEPTED, Kind
from moontap.evidence.source import HEAD, Source, Unknown, Unusable
from moontap.redact.flow import Redactor
from moontap.report.text import short
from moontap.wire import jsontext
from moontap.wire.protocol import ANTHROPIC, Wire

_RECORD = re.compile(rb"[1-9][0-9]{0,11}:[0-9]{1,6}:[a-z_]+[;:]")
_WITHIN = re.compile(rb"[1-9][0-9]{0,11}:9:websocket;")
_HAR = re.compile(rb'\s*+\{\s*+"log"\s*+:\s*+\{')
_STREAM = re.compile(rb"^(?:data|event): ?\S", re.M)
_FIELD = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:data|event|id|retry)?:")
_LOG = re.compile(rb"^\d{4}-\d\d-\d\dT[\d:.]+Z \[(?:DEBUG|INFO|WARN|ERROR)\] ", re.M)
_HTML = re.compile(rb"\s*<(?:!doctype\s+html|html|head|body|title)\b", re.I)
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
    "ping",
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
    document, decoded. wire: the protocol, where it has one."""

    kind: Kind
    text: bytes = b""
    value: Any = None
    wire: Wire | None = None
    damage: list[Damage] = field(default_factory=list)


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
    if known and known.kind is Kind.HAR:  # not as it lies there: read what was made of it
        source.path, source.raw = None, text
    if not known and _WITHIN.search(head):  # its beginning is damaged
        return Known(Kind.FLOWS)
    known = known or _plain(text)
    if known:
        _mask(known, redactor)
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
    except ValueError:
        return None
    known = _of_array(value) if isinstance(value, list) else _of_object(value)
    if known and known.kind in _BY_LINE:  # one record, over several lines
        mended = jsontext.encode(value).encode("utf-8", "surrogatepass")
    if known:
        known.text, known.value, known.damage = mended, value, damage
    return known


def _of_array(value: list[Any]) -> Known | None:
    if not all(isinstance(one, dict) for one in value):
        return None
    if value and not any(str(one.get("role")) in _ROLES or "content" in one for one in value):
        return None
    wire = protocols.of_history(value)
    kind = Kind.MESSAGES_HISTORY if wire is ANTHROPIC else Kind.CHAT_HISTORY
    return Known(kind, wire=wire)


def _of_object(value: Any) -> Known | None:
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("messages"), list):
        wire = protocols.of_request(value)
        kind = Kind.MESSAGES_REQUEST if wire is ANTHROPIC else Kind.CHAT_REQUEST
        return Known(kind, wire=wire)
    if isinstance(value.get("log"), dict) and "entries" in value["log"]:
        return Known(Kind.HAR)
    if kept := _record_kind(value):
        return Known(kept)
    if ours := _instead(value):
        raise _Instead(_INSTEAD[ours])
    if _is_event(value):
        return None  # a stream of one line
    if isinstance(value.get("choices"), list) or value.get("object") == "chat.completion":
        return Known(Kind.CHAT_REPLY)
    if value.get("type") == "message" or ("stop_reason" in value and "content" in value):
        return Known(Kind.MESSAGES_REPLY, wire=ANTHROPIC)
    if value.get("type") == "error" or "error" in value:
        return Known(Kind.ERROR)
    return None


def _is_event(value: dict[str, Any]) -> bool:
    """An event's data without the `data:` before it."""
    choices = value.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    return (
        value.get("type") in _EVENTS
        or value.get("object") == "chat.completion.chunk"
        or (isinstance(choice, dict) and "delta" in choice)
    )


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
    if isinstance(message, dict) and isinstance(message.get("payload"), dict):
        return Kind.KIMI_WIRE
    if kind == "metadata" and "protocol_version" in value:
        return Kind.KIMI_WIRE
    if kind in _OF_TRANSCRIPT and (
        "sessionId" in value
        or "session_id" in value
        or "leafUuid" in value
        or "snapshot" in value
        or isinstance(message, dict)
    ):
        return Kind.TRANSCRIPT
    role = jsontext.string(value.get("role"))
    if role in ("_checkpoint", "_usage", "_system_prompt"):
        return Kind.KIMI_CONTEXT
    if role in _ROLES and value.get("type") is None:
        return Kind.KIMI_CONTEXT if "content" in value or "tool_calls" in value else None
    return None


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
    if _FIELD.match(head) or len(_STREAM.findall(head)) > 1:
        return _stream(text)
    if _HTML.match(head):
        return Known(Kind.ERROR, text)
    return None


def _stream(text: bytes) -> Known:
    wire = protocols.of_stream(text)
    kind = Kind.MESSAGES_STREAM if wire is ANTHROPIC else Kind.CHAT_STREAM
    return Known(kind, text, wire=wire)
