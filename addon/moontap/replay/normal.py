"""The normal form of a message, of tools and of a system prompt: what of them counts.

JSON text of either protocol in, plain values out. Pure. Members that only say how a client sends
the same thing (cache marks, signatures, ids, nulls) are left out; texts go through `Texts`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from moontap import canonical
from moontap.replay.texts import Texts
from moontap.wire import jsontext, types
from moontap.wire.types import Protocol

SYSTEM = ("system", "developer")
"""Roles of messages that are a system prompt."""

CALL, RESULT = "tool call", "tool result"

_MARKS = ("cache_control",)


class Part(NamedTuple):
    """One block of a message.

    kind: `text`, CALL, RESULT, or a block's own type. value: what counts of it.
    id: of the call it makes or answers; which one that is, only the whole conversation says.
    """

    kind: str
    value: object
    id: str | None = None


class Message(NamedTuple):
    """What counts of one message; no parts: nothing of it does."""

    role: str
    parts: tuple[Part, ...]


def message(protocol: Protocol, raw: bytes, texts: Texts) -> Message:
    """The normal form of one message. Raises ValueError where it is not JSON."""
    value = jsontext.loads(raw)
    if not isinstance(value, dict):
        return Message("", (Part("message", texts.value(value)),))
    role = value.get("role")
    role = role if isinstance(role, str) else ""
    read = _messages if protocol is Protocol.ANTHROPIC else _chat
    return Message(role, tuple(read(value, texts)))


def shape(message: Message) -> types.Message:
    """What pairing needs of a message."""
    calls = (types.Call(part.id, "", b"", 0) for part in message.parts if part.kind == CALL)
    results = (
        types.Result(part.id, b"", False, 0) for part in message.parts if part.kind == RESULT
    )
    return types.Message(message.role, tuple(calls), tuple(results), "")


def tools(raw: bytes, texts: Texts) -> list[object]:
    """The tools of a request in the order of their names. Raises ValueError."""
    value = jsontext.loads(raw) if raw else None
    if not isinstance(value, list):
        return [texts.value(value)] if value else []
    counted = [texts.value(_counted(tool) if isinstance(tool, dict) else tool) for tool in value]
    return sorted(counted, key=lambda tool: (tool_name(tool), canonical.encode(tool)))


def tool_name(tool: object) -> str:
    """The name of a tool, in either protocol's form."""
    if not isinstance(tool, dict):
        return ""
    inner = tool.get("function")
    name = (inner if isinstance(inner, dict) else tool).get("name")
    return name if isinstance(name, str) else ""


def system(raw: bytes, texts: Texts) -> list[Part]:
    """What a Messages request's `system` says. Raises ValueError."""
    return list(_blocks(jsontext.loads(raw) if raw else None, texts))


def other(raw: bytes, texts: Texts) -> object:
    """Any other member's value. Raises ValueError."""
    return texts.value(jsontext.loads(raw))


def _messages(value: Mapping[str, Any], texts: Texts) -> Iterator[Part]:
    yield from _blocks(value.get("content"), texts)


def _chat(value: Mapping[str, Any], texts: Texts) -> Iterator[Part]:
    content = list(_blocks(value.get("content"), texts))
    if value.get("role") == "tool":
        yield Part(
            RESULT,
            [False, *_plain(content)],
            jsontext.string(value["tool_call_id"]) if "tool_call_id" in value else None,
        )
        return
    if thinking := value.get("reasoning_content"):
        yield Part("thinking", texts.value(thinking))
    yield from content
    calls = value.get("tool_calls")
    if isinstance(calls, list):
        for call in calls:
            yield _chat_call(call, texts)
    elif calls is not None:
        yield Part("tool_calls", texts.value(calls))
    rest = {
        name: texts.value(one)
        for name, one in _counted(value).items()
        if name not in ("role", "content", "reasoning_content", "tool_calls") and one != []
    }
    if rest:
        yield Part("members", rest)


def _chat_call(call: object, texts: Texts) -> Part:
    if not isinstance(call, dict):
        return Part(CALL, texts.value(call))
    id_ = jsontext.string(call.get("id"))
    function = call.get("function")
    if not isinstance(function, dict):
        return Part(CALL, texts.value(_counted(call, "id", "index")), id_)
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        arguments = canonical.parse(arguments.encode("utf-8", "surrogatepass"))
    return Part(CALL, [function.get("name"), texts.value(arguments)], id_)


def _blocks(content: object, texts: Texts) -> Iterator[Part]:
    """The blocks of a content: a string, a list, nothing, or what no protocol knows."""
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if content is not None and not isinstance(content, list):
        yield Part("content", texts.value(content))
        return
    for block in content or ():
        part = _block(block, texts)
        if part is not None:
            yield part


def _block(block: object, texts: Texts) -> Part | None:
    if not isinstance(block, dict):
        return Part("block", texts.value(block))
    counted = _counted(block)
    kind = jsontext.string(counted.pop("type", None)) or "block"
    match kind:
        case "text" if counted.keys() <= {"text", "citations"}:
            text = texts.value(counted.get("text", ""))
            return Part(kind, text) if text else None
        case "tool_use":
            call = [counted.get("name"), texts.value(counted.get("input"))]
            return Part(CALL, call, jsontext.string(block.get("id")))
        case "tool_result":
            content = list(_blocks(block.get("content"), texts))
            id_ = jsontext.string(block.get("tool_use_id"))
            return Part(RESULT, [bool(block.get("is_error")), *_plain(content)], id_)
        case "thinking":
            return Part(kind, texts.value(counted.get("thinking")))
    return Part(kind, texts.value(counted))


def _plain(parts: list[Part]) -> list[object]:
    """The parts of a result's content as values: a text is itself."""
    return [part.value if part.kind == "text" else [part.kind, part.value] for part in parts]


def _counted(members: Mapping[str, Any], *more: str) -> dict[str, Any]:
    """Members without nulls and marks. more: what else does not count here."""
    return {
        name: value
        for name, value in members.items()
        if value is not None and name not in _MARKS and name not in more
    }
