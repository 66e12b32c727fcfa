"""Request bodies that the tables of this folder share."""

from __future__ import annotations

from typing import Any


def messages_request(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    tool = {"name": "Bash", "input_schema": {"type": "object"}}
    return {
        "model": "kimi-k3",
        "max_tokens": 100,
        "tools": [tool],
        "messages": [{"role": "user", "content": "go"}, *messages],
        **more,
    }


def chat_request(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    tool = {"type": "function", "function": {"name": "Bash", "parameters": {"type": "object"}}}
    return {
        "model": "kimi-k3",
        "tools": [tool],
        "messages": [{"role": "user", "content": "go"}, *messages],
        **more,
    }


def used(call_id: str, command: str) -> dict[str, Any]:
    """A Messages assistant turn with one Bash call."""
    block = {"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": command}}
    return {"role": "assistant", "content": [block]}


def result(*call_ids: str) -> dict[str, Any]:
    """A Messages user turn with results."""
    blocks = [{"type": "tool_result", "tool_use_id": i, "content": "ok"} for i in call_ids]
    return {"role": "user", "content": blocks}


def called(call_id: Any, arguments: str) -> dict[str, Any]:
    """A Chat assistant turn with one Bash call."""
    function = {"name": "Bash", "arguments": arguments}
    call = {"id": call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def answered(call_id: Any) -> dict[str, Any]:
    """A Chat tool turn."""
    return {"role": "tool", "tool_call_id": call_id, "content": "ok"}
