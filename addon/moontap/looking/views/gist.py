"""What one event of a stream says, in a few words.

An event's data in, as upstream sent it and as the client got it, a `Gist` out. Pure, never raises;
what it does not know it calls so.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from moontap.looking.views.usage import usage_words
from moontap.report.text import plain, short
from moontap.wire import jsontext
from moontap.wire.types import Protocol

_LONG = 60  # characters of a name or id
_PIECE = 24  # of a text beside others
_BLANK = re.compile(r"\s")
_DELTAS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
    "signature_delta": "signature",
}
_TEXTS = ("content", "reasoning_content", "refusal")
_KNOWN = frozenset(("role", "tool_calls", *_TEXTS))


class Gist(NamedTuple):
    """what: the kind and the place. text: a piece of a longer text. runs: it can be one of many
    that are alike, and then `what` tells whether they are."""

    what: str
    text: str = ""
    runs: bool = False


class Gists:
    """The events of one stream, in order."""

    def __init__(self, protocol: Protocol) -> None:
        self._read = _messages if protocol is Protocol.ANTHROPIC else self._chat
        self._id: object = None

    def of(self, data: bytes, client: bytes | None = None) -> Gist:
        """The gist of an event's data. client: the same as the client got it, where it differs."""
        event = _object(data)
        if event is not None:
            return self._read(event, _object(client) or {} if client else event)
        if data.strip() == b"[DONE]":
            return Gist("[DONE]")
        return Gist("no JSON object", data.decode("utf-8", "backslashreplace"), True)

    def _chat(self, chunk: Mapping[str, Any], client: Mapping[str, Any]) -> Gist:
        parts: list[Gist] = []
        if chunk.get("error") is not None:
            parts.append(Gist(f"error {_error(chunk['error'])}"))
        theirs = _list(client.get("choices"))
        for position, entry in enumerate(_list(chunk.get("choices"))):
            other = theirs[position] if position < len(theirs) else None
            number = _mapping(entry).get("index", position)
            said = _choice(_mapping(entry), _mapping(other))
            if number != 0:
                before = f"choice {_short(number)}: "
                said = (part._replace(what=before + part.what) for part in said)
            parts += said
        if isinstance(chunk.get("usage"), dict):
            parts.append(Gist(f"usage {usage_words(chunk['usage'])}"))
        if isinstance(chunk.get("id"), str) and chunk["id"] != self._id:
            self._id = chunk["id"]
            model = f"{_short(chunk['model'])}, " if isinstance(chunk.get("model"), str) else ""
            parts.append(Gist(f"{model}id {_short(self._id)}"))
        if not parts:
            known = "choices" in chunk or "id" in chunk
            return Gist("chunk without content" if known else f"unknown {_words(chunk)}", "", True)
        if len(parts) == 1:
            return parts[0]
        return Gist(", ".join(_with_text(part) for part in parts))


def quoted(text: str, most: int) -> str:
    """A text in quotes, in one line; of a long one the first and the last words."""
    if len(text) > most:
        tail = most // 3
        text = f"{text[: most - tail - 3]} … {text[len(text) - tail :]}"
    return f'"{plain(_BLANK.sub(" ", text))}"'


def _messages(event: Mapping[str, Any], client: Mapping[str, Any]) -> Gist:
    kind, index = event.get("type"), event.get("index", "-")
    match kind:
        case "content_block_delta":
            delta = _mapping(event.get("delta"))
            name = delta.get("type")
            text = delta.get(_DELTAS.get(name, "")) if isinstance(name, str) else None
            if isinstance(text, str):
                return Gist(f"{name} [{_short(index)}]", text, True)
            return Gist(f"content_block_delta [{_short(index)}] {_words(delta)}")
        case "content_block_start":
            block = _mapping(event.get("content_block"))
            return Gist(f"{kind} [{_short(index)}] {_block(block, client.get('content_block'))}")
        case "content_block_stop":
            return Gist(f"{kind} [{_short(index)}]")
        case "message_start":
            return Gist(f"{kind} {_message(_mapping(event.get('message')), client)}".rstrip())
        case "message_delta":
            reason = _mapping(event.get("delta")).get("stop_reason")
            said = [f"stop_reason {_short(reason)}"] if reason is not None else []
            said += _usage(event.get("usage"))
            return Gist(f"{kind} {', '.join(said)}".rstrip())
        case "message_stop":
            return Gist("message_stop")
        case "ping":
            return Gist("ping", "", True)
        case "error":
            return Gist(f"error {_error(event.get('error'))}")
        case None if "error" in event:
            return Gist(f"error {_error(event['error'])}")
    return Gist(f"unknown {_short(kind)}", _words(event))


def _message(message: Mapping[str, Any], client: Mapping[str, Any]) -> str:
    said = [_short(message["model"])] if isinstance(message.get("model"), str) else []
    others = _list(_mapping(client.get("message")).get("content"))
    for position, block in enumerate(_list(message.get("content"))):
        other = others[position] if position < len(others) else None
        said.append(_block(_mapping(block), other))
    id_ = [f"id {_short(message['id'])}"] if isinstance(message.get("id"), str) else []
    return ", ".join([*said, *_usage(message.get("usage")), *id_])


def _block(block: Mapping[str, Any], client: object) -> str:
    said = [_short(block.get("type", "(no type)"))]
    if "name" in block:
        said.append(_short(block["name"]))
    if "id" in block:
        said.append(f"id {_ids(block['id'], _mapping(client).get('id'))}")
    for name in ("input", "text", "thinking"):
        if block.get(name):
            said.append(f"{name} {quoted(_words(block[name]), _PIECE)}")
    return " ".join(said)


def _choice(entry: Mapping[str, Any], client: Mapping[str, Any]) -> Iterator[Gist]:
    delta = _mapping(entry.get("delta", entry.get("message")))
    if isinstance(delta.get("role"), str):
        yield Gist(f"role {_short(delta['role'])}")
    for name in _TEXTS:
        text = delta.get(name)
        if isinstance(text, str) and (text or len(delta) == 1):
            yield Gist(name, text, True)
    others = _list(_mapping(client.get("delta", client.get("message"))).get("tool_calls"))
    for position, call in enumerate(_list(delta.get("tool_calls"))):
        other = others[position] if position < len(others) else None
        yield _call(_mapping(call), _mapping(other))
    for name in delta:
        if name not in _KNOWN and delta[name] is not None:
            yield Gist(f"{_short(name)} {quoted(_words(delta[name]), _PIECE)}")
    if isinstance(entry.get("finish_reason"), str):
        yield Gist(f"finish_reason {_short(entry['finish_reason'])}")
    if isinstance(entry.get("usage"), dict):
        yield Gist(f"usage {usage_words(entry['usage'])}")


def _call(call: Mapping[str, Any], client: Mapping[str, Any]) -> Gist:
    said = [f"tool_calls[{_short(call.get('index', '-'))}]"]
    function = _mapping(call.get("function"))
    if function.get("name"):
        said.append(_short(function["name"]))
    if "id" in call:
        said.append(f"id {_ids(call['id'], client.get('id'))}")
    arguments = function.get("arguments")
    if not arguments:
        return Gist(" ".join(said))
    text = arguments if isinstance(arguments, str) else _words(arguments)
    return Gist(" ".join([*said, "arguments"]), text, True)


def _ids(sent: object, got: object) -> str:
    return _id(sent) if got == sent or got is None else f"{_id(sent)} -> {_id(got)}"


def _id(value: object) -> str:
    return _short(value) if value else '""' if value == "" else _words(value)


def _usage(usage: object) -> list[str]:
    words = usage_words(usage) if isinstance(usage, dict) else ""
    return [words] if words else []


def _error(error: object) -> str:
    of = _mapping(error)
    said = [_short(of[name]) for name in ("type", "code") if isinstance(of.get(name), str)]
    if isinstance(of.get("message"), str):
        said.append(quoted(of["message"], _LONG))
    return " ".join(said) or _words(error)


def _with_text(part: Gist) -> str:
    return f"{part.what} {quoted(part.text, _PIECE)}" if part.runs else part.what


def _words(value: object) -> str:
    """A value as JSON, cut short."""
    text = value if isinstance(value, str) else jsontext.encode(value)
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"


def _short(value: object) -> str:
    if type(value) is int:
        return str(value)
    return short("null" if value is None else value, _LONG)


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        value = jsontext.loads(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
