"""A reply in the shape of Chat Completions, as Moonshot speaks it.

In: `Reply` and the faults in force. Out: events, the whole JSON object, or an error object. It
never frames or sends anything.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from moontap.standin.events import Event
from moontap.standin.mint import make_uuid
from moontap.standin.reply import Faults, Reply, ReplyCall, argument_pieces, pieces
from moontap.standin.script import FaultKind

DONE = Event("[DONE]")


def events(reply: Reply, faults: Faults, *, usage_on_top: bool) -> list[Event]:
    """All events of the streamed reply. Usage stands in the last chunk's choice, as Moonshot has
    it; with `usage_on_top` also in a chunk of its own, as `stream_options` asks."""
    streams = [
        [_choice(number, delta) for delta in _deltas(reply, calls, number, faults)]
        for number, calls in enumerate(reply.choices)
    ]
    for number, stream in enumerate(streams):
        stream.append(_choice(number, {}, _finish(reply), usage=_usage(reply)))
    out = [_chunk(reply, [choice]) for turn in zip_longest(*streams) for choice in turn if choice]
    if usage_on_top:
        out.append(_chunk(reply, [], usage=_usage(reply)))
    return [*out, DONE]


def whole(reply: Reply) -> dict[str, Any]:
    """The reply to a request without `stream`."""
    choices = []
    for number, calls in enumerate(reply.choices):
        message: dict[str, Any] = {"role": "assistant", "content": reply.text}
        if reply.thinking:
            message["reasoning_content"] = reply.thinking
        if calls:
            message["tool_calls"] = [
                {
                    "index": index,
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for index, call in enumerate(calls)
            ]
        choices.append({"index": number, "message": message, "finish_reason": _finish(reply)})
    return {
        "id": reply.message_id,
        "object": "chat.completion",
        "created": reply.created,
        "model": reply.model,
        "choices": choices,
        "usage": _usage(reply),
    }


def error(message: str, kind: str) -> dict[str, Any]:
    """The protocol's error object."""
    return {"error": {"message": message, "type": kind}}


def error_event(message: str) -> Event:
    """An error in the middle of a stream."""
    return Event(_json(error(message, "server_error")))


def _deltas(
    reply: Reply, calls: Sequence[ReplyCall], choice: int, faults: Faults
) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    out += [{"reasoning_content": p} for p in pieces(reply.thinking, reply.delta_chars)]
    out += [{"content": p} for p in pieces(reply.text, reply.delta_chars)]
    fragments = [_fragments(reply, call, choice, index, faults) for index, call in enumerate(calls)]
    if FaultKind.INTERLEAVED in faults:
        in_turn = [f for turn in zip_longest(*fragments) for f in turn if f]
    else:
        in_turn = [f for call_fragments in fragments for f in call_fragments]
    return out + [{"tool_calls": [fragment]} for fragment in in_turn]


def _fragments(
    reply: Reply, call: ReplyCall, choice: int, index: int, faults: Faults
) -> list[dict[str, Any]]:
    first: dict[str, Any] = {
        "index": index,
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": ""},
    }
    rest: list[dict[str, Any]] = [
        {"index": index, "function": {"arguments": piece}}
        for piece in argument_pieces(call.arguments, reply.delta_chars)
    ]
    if FaultKind.LATE_ID in faults and rest:
        del first["id"]
        rest[0]["id"] = call.id
    for number, fragment in enumerate(rest):
        if FaultKind.ID_EVERY_FRAGMENT in faults:
            other = make_uuid(reply.message_id, choice, index, number)
            fragment["id"] = f"chatcmpl-tool-{other}"
        elif FaultKind.NULL_ID_CONTINUATION in faults:
            fragment.setdefault("id", None)
    return [first, *rest]


def _chunk(reply: Reply, choices: list[dict[str, Any]], **more: Any) -> Event:
    return Event(
        _json(
            {
                "id": reply.message_id,
                "object": "chat.completion.chunk",
                "created": reply.created,
                "model": reply.model,
                "choices": choices,
                **more,
            }
        )
    )


def _choice(
    number: int, delta: dict[str, Any], finish: str | None = None, **more: Any
) -> dict[str, Any]:
    return {"index": number, "delta": delta, "finish_reason": finish, **more}


def _finish(reply: Reply) -> str:
    return "tool_calls" if reply.calls else "stop"


def _usage(reply: Reply) -> dict[str, int]:
    return {
        "prompt_tokens": reply.input_tokens,
        "completion_tokens": reply.output_tokens,
        "total_tokens": reply.input_tokens + reply.output_tokens,
    }


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
