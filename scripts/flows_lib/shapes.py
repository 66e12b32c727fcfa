"""Streamed replies by hand, event by event, for what neither the stand-in nor a client makes.

Plain values in, the bytes of events out. Shares nothing with the tap.
"""

import json
from collections.abc import Sequence
from typing import Any

MESSAGE_ID = "chatcmpl-6f1f3a52-0c6e-4bb1-8a43-6d7f4ab7f9c{}"
CREATED = 1_700_000_000


def compact(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def event(name: str, value: Any) -> bytes:
    """An event of a Messages stream."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), compact(value))


def message_start(number: int = 1) -> bytes:
    message: dict[str, Any] = {
        "id": MESSAGE_ID.format(number),
        "type": "message",
        "role": "assistant",
        "model": "kimi-k3",
        "content": [],
        "stop_reason": None,
        "usage": {"input_tokens": 9, "output_tokens": 0},
    }
    return event("message_start", {"type": "message_start", "message": message})


def block_start(index: int | None, block: dict[str, Any]) -> bytes:
    head: dict[str, Any] = {"type": "content_block_start"}
    if index is not None:
        head["index"] = index
    return event("content_block_start", {**head, "content_block": block})


def block_delta(index: int | None, delta: dict[str, Any]) -> bytes:
    head: dict[str, Any] = {"type": "content_block_delta"}
    if index is not None:
        head["index"] = index
    return event("content_block_delta", {**head, "delta": delta})


def block_stop(index: int | None) -> bytes:
    head: dict[str, Any] = {"type": "content_block_stop"}
    if index is not None:
        head["index"] = index
    return event("content_block_stop", head)


def text_block(index: int, *pieces: str) -> list[bytes]:
    deltas = [block_delta(index, {"type": "text_delta", "text": piece}) for piece in pieces]
    return [block_start(index, {"type": "text", "text": ""}), *deltas, block_stop(index)]


def tool_start(index: int | None, id_: Any, name: str = "Bash", **more: Any) -> bytes:
    block = {"type": "tool_use", "id": id_, "name": name, "input": {}}
    return block_start(index, {**block, **more})


def tool_json(index: int | None, piece: str) -> bytes:
    return block_delta(index, {"type": "input_json_delta", "partial_json": piece})


def tool_block(index: int | None, id_: Any, command: str, name: str = "Bash") -> list[bytes]:
    text = compact({"command": command}).decode()
    half = len(text) // 2
    return [
        tool_start(index, id_, name),
        tool_json(index, text[:half]),
        tool_json(index, text[half:]),
        block_stop(index),
    ]


def message_end(reason: str = "tool_use") -> list[bytes]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    usage = {"output_tokens": 5}
    return [
        event("message_delta", {"type": "message_delta", "delta": delta, "usage": usage}),
        event("message_stop", {"type": "message_stop"}),
    ]


def message(number: int, *blocks: Sequence[bytes], reason: str = "tool_use") -> list[bytes]:
    """A whole Messages stream: its blocks between a start and an end."""
    middle = [one for block in blocks for one in block]
    return [message_start(number), *middle, *message_end(reason)]


def said(number: int, text: str = "All done.") -> list[bytes]:
    """A Messages stream that ends the task."""
    return message(number, text_block(0, text), reason="end_turn")


def chunk(number: int, *choices: dict[str, Any], **more: Any) -> bytes:
    """An event of a Chat Completions stream."""
    head = {
        "id": MESSAGE_ID.format(number),
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": "kimi-k3",
    }
    return b"data: %s\n\n" % compact({**head, "choices": list(choices), **more})


def delta(number: int, finish: str | None = None, **parts: Any) -> bytes:
    return chunk(number, {"index": 0, "delta": parts, "finish_reason": finish})


def tool_delta(number: int, **call: Any) -> bytes:
    return delta(number, tool_calls=[call])


DONE = b"data: [DONE]\n\n"


def chat(number: int, *parts: bytes, finish: str = "tool_calls") -> list[bytes]:
    """A whole Chat Completions stream."""
    return [delta(number, role="assistant", content=""), *parts, delta(number, finish), DONE]


def chat_call(number: int, index: int, id_: Any, command: str, name: str = "Bash") -> list[bytes]:
    text = compact({"command": command}).decode()
    function = {"name": name, "arguments": ""}
    return [
        tool_delta(number, index=index, id=id_, type="function", function=function),
        tool_delta(number, index=index, function={"arguments": text}),
    ]


def chat_said(number: int, text: str = "All done.") -> list[bytes]:
    """A Chat Completions stream that ends the task."""
    return chat(number, delta(number, content=text), finish="stop")


def function_call(id_: Any, name: str, arguments: str) -> dict[str, Any]:
    """A call as a whole message of Chat Completions has it."""
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def completion(number: int, message: dict[str, Any]) -> dict[str, Any]:
    """A whole reply of Chat Completions; without calls it ends the task."""
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    head = {"id": MESSAGE_ID.format(number), "object": "chat.completion"}
    return {**head, "created": CREATED, "model": "kimi-k3", "choices": [choice]}


def crlf(events: Sequence[bytes]) -> list[bytes]:
    return [one.replace(b"\n", b"\r\n") for one in events]


def cut(events: Sequence[bytes], *sizes: int) -> list[bytes]:
    """The same bytes in pieces of these sizes, in turn, wherever that cuts them."""
    body, pieces, turn = b"".join(events), [], 0
    while body:
        size = sizes[turn % len(sizes)]
        pieces.append(body[:size])
        body, turn = body[size:], turn + 1
    return pieces
