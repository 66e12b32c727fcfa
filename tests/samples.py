"""Requests and replies of both protocols, as bytes: what the tests of the whole tap send about."""

import json
from collections.abc import Sequence
from typing import Any

MESSAGES = "/anthropic/v1/messages"
CHAT = "/v1/chat/completions"

type Pair = tuple[str, str, str]
"""A tool call of a history: id, command, result."""


def dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def messages_request(
    history: Sequence[Pair] = (), *, opening: str = "go", stream: bool = True, **more: Any
) -> bytes:
    said: list[Any] = [{"role": "user", "content": opening}]
    for id_, command, result in history:
        use = {"type": "tool_use", "id": id_, "name": "Bash", "input": {"command": command}}
        answer = {"type": "tool_result", "tool_use_id": id_, "content": result}
        said += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [answer]}]
    return dump({"model": "kimi-k3", "stream": stream, "messages": said, **more})


def chat_request(
    history: Sequence[Pair] = (), *, opening: str = "go", stream: bool = True, **more: Any
) -> bytes:
    said: list[Any] = [{"role": "user", "content": opening}]
    for id_, command, result in history:
        function = {"name": "Bash", "arguments": json.dumps({"command": command})}
        call = {"id": id_, "type": "function", "function": function}
        said += [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": id_, "content": result},
        ]
    return dump({"model": "kimi-k3", "stream": stream, "messages": said, **more})


def messages_events(
    *ids: str, message_id: str | None = "msg_a1", command: str = "pwd"
) -> list[bytes]:
    """The events of a streamed reply that calls Bash once for each id."""
    message: dict[str, Any] = {"type": "message", "role": "assistant", "content": []}
    if message_id:
        message["id"] = message_id
    said: list[Any] = [{"type": "message_start", "message": message}, {"type": "ping"}]
    for index, id_ in enumerate(ids):
        block = {"type": "tool_use", "id": id_, "name": "Bash", "input": {}}
        delta = {"type": "input_json_delta", "partial_json": dump({"command": command}).decode()}
        said += [
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    said += [
        {"type": "message_delta", "delta": {"stop_reason": "tool_use" if ids else "end_turn"}},
        {"type": "message_stop"},
    ]
    return [b"event: %s\ndata: %s\n\n" % (one["type"].encode(), dump(one)) for one in said]


def chat_events(*ids: str, message_id: str | None = "cmpl-x1", command: str = "pwd") -> list[bytes]:
    """The same for Chat Completions."""
    head: dict[str, Any] = {"id": message_id} if message_id else {}
    deltas: list[Any] = [{"role": "assistant", "content": ""}]
    for index, id_ in enumerate(ids):
        function = {"name": "Bash", "arguments": ""}
        call = {"index": index, "id": id_, "type": "function", "function": function}
        more = {"index": index, "function": {"arguments": dump({"command": command}).decode()}}
        deltas += [{"tool_calls": [call]}, {"tool_calls": [more]}]
    chunks = [{**head, "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    finish = "tool_calls" if ids else "stop"
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    return [*(b"data: %s\n\n" % dump(chunk) for chunk in chunks), b"data: [DONE]\n\n"]


def messages_whole(*ids: str, command: str = "pwd") -> bytes:
    content = [
        {"type": "tool_use", "id": id_, "name": "Bash", "input": {"command": command}}
        for id_ in ids
    ]
    return dump({"id": "msg_a1", "type": "message", "role": "assistant", "content": content})


def chat_whole(*ids: str, command: str = "pwd") -> bytes:
    function = {"name": "Bash", "arguments": dump({"command": command}).decode()}
    calls = [{"id": id_, "type": "function", "function": function} for id_ in ids]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    return dump({"id": "cmpl-x1", "choices": [{"index": 0, "message": message}]})
