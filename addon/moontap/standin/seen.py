"""What the stand-in model sees of a request: its history by occurrence, and what it may call.

In: the decoded JSON of a Messages or Chat Completions request. Out: `Seen`. It never looks at
ids except to join a result to its call, and passes over anything it does not know.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Protocol(StrEnum):
    """The two ways to talk to the model, by the names the pair log uses."""

    MESSAGES = "anthropic-messages"
    CHAT = "openai-chat"


class RequestError(ValueError):
    """A body that is no request of its protocol; the text is for the client."""


@dataclass(slots=True)
class SeenCall:
    """A call in the history. `arguments` is parsed; where it is not JSON, the raw string."""

    id: Any
    name: str
    arguments: Any
    answered: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """`calls` in order of appearance; `opening` is the user's text before the first reply."""

    protocol: Protocol
    model: str
    stream: bool
    usage_on_top: bool
    opening: str
    tools: frozenset[str]
    calls: tuple[SeenCall, ...]
    input_tokens: int


def read(protocol: Protocol, body: Any) -> Seen:
    """Reads a request body. `RequestError` where it has no list of messages."""
    if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
        raise RequestError("messages: a list is required")
    messages = [m for m in body["messages"] if isinstance(m, dict)]
    find = _messages_calls if protocol is Protocol.MESSAGES else _chat_calls
    options = body.get("stream_options")
    return Seen(
        protocol=protocol,
        model=str(body.get("model") or ""),
        stream=body.get("stream") is True,
        usage_on_top=isinstance(options, dict) and options.get("include_usage") is True,
        opening=_opening(messages),
        tools=frozenset(_tool_names(body.get("tools"))),
        calls=tuple(_joined(find(messages))),
        input_tokens=count_tokens(body),
    )


def count_tokens(body: Any) -> int:
    """A repeatable estimate: four characters of the JSON a token, at least one."""
    return max(1, len(json.dumps(body, ensure_ascii=False)) // 4)


def parsed(arguments: str) -> Any:
    """The JSON value of an argument string; the string itself where it does not parse."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


# A history is a run of turns: the calls of one assistant message, or the id of one result.
_Turn = list[SeenCall] | tuple[Any]


def _joined(turns: Iterator[_Turn]) -> list[SeenCall]:
    groups: list[list[SeenCall]] = []
    for turn in turns:
        if isinstance(turn, list):
            groups.append(turn)
            continue
        (wanted,) = turn
        for group in reversed(groups):
            open_call = next((c for c in group if c.id == wanted and not c.answered), None)
            if open_call:
                open_call.answered = True
                break
    return [call for group in groups for call in group]


def _messages_calls(messages: list[dict[str, Any]]) -> Iterator[_Turn]:
    for message in messages:
        blocks = _blocks(message.get("content"))
        if message.get("role") == "assistant":
            yield [
                SeenCall(b.get("id"), str(b.get("name")), b.get("input", {}))
                for b in blocks
                if b.get("type") == "tool_use"
            ]
            continue
        for block in blocks:
            if block.get("type") == "tool_result":
                yield (block.get("tool_use_id"),)


def _chat_calls(messages: list[dict[str, Any]]) -> Iterator[_Turn]:
    for message in messages:
        if message.get("role") == "assistant":
            calls = message.get("tool_calls")
            yield [_chat_call(c) for c in calls if isinstance(c, dict)] if calls else []
        elif message.get("role") == "tool":
            yield (message.get("tool_call_id"),)


def _chat_call(call: Mapping[str, Any]) -> SeenCall:
    function = call.get("function")
    if not isinstance(function, dict):
        function = {}
    arguments = function.get("arguments")
    value = parsed(arguments) if isinstance(arguments, str) else arguments
    return SeenCall(call.get("id"), str(function.get("name")), value)


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(b.get("text") or "") for b in _blocks(content))


def _opening(messages: list[dict[str, Any]]) -> str:
    texts: list[str] = []
    for message in messages:
        if message.get("role") == "assistant":
            break
        if message.get("role") == "user":
            texts.append(_text(message.get("content")))
    return "\n".join(texts)


def _tool_names(tools: Any) -> Iterator[str]:
    for tool in _blocks(tools):
        function = tool.get("function")
        name = function.get("name") if isinstance(function, dict) else tool.get("name")
        if isinstance(name, str):
            yield name
