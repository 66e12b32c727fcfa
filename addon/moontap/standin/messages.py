"""A reply in the shape of the Anthropic Messages API, as Moonshot speaks it.

In: `Reply` and the faults in force. Out: events, the whole JSON object, or an error object. It
never frames or sends anything.
"""

from __future__ import annotations

import json
from typing import Any

from moontap.standin.events import Event
from moontap.standin.reply import Faults, Reply, ReplyCall, argument_pieces, pieces
from moontap.standin.script import FaultKind
from moontap.standin.seen import parsed

SIGNATURE = "c3RhbmQtaW4="


def events(reply: Reply, faults: Faults) -> list[Event]:
    """All events of the streamed reply, from `message_start` to `message_stop`."""
    start = _message(reply, [], None)
    start["usage"] = {"input_tokens": reply.input_tokens, "output_tokens": 0}
    out = [_event("message_start", message=start)]
    index = 0
    if reply.thinking:
        deltas = [
            {"type": "thinking_delta", "thinking": p}
            for p in pieces(reply.thinking, reply.delta_chars)
        ]
        deltas.append({"type": "signature_delta", "signature": SIGNATURE})
        block = {"type": "thinking", "thinking": "", "signature": ""}
        out += [_start(index, block), *_deltas(index, deltas), _stop(index)]
        index += 1
    if reply.text:
        deltas = [{"type": "text_delta", "text": p} for p in pieces(reply.text, reply.delta_chars)]
        out += [_start(index, {"type": "text", "text": ""}), *_deltas(index, deltas), _stop(index)]
        index += 1
    out += _tool_events(reply.calls, index, reply.delta_chars, faults)
    out.append(
        _event(
            "message_delta",
            delta={"stop_reason": _stop_reason(reply), "stop_sequence": None},
            usage={"output_tokens": reply.output_tokens},
        )
    )
    out.append(_event("message_stop"))
    return out


def whole(reply: Reply) -> dict[str, Any]:
    """The reply to a request without `stream`."""
    content: list[dict[str, Any]] = []
    if reply.thinking:
        content.append({"type": "thinking", "thinking": reply.thinking, "signature": SIGNATURE})
    if reply.text:
        content.append({"type": "text", "text": reply.text})
    for call in reply.calls:
        given = parsed(call.arguments)
        content.append({"type": "tool_use", "id": call.id, "name": call.name, "input": given})
    return _message(reply, content, _stop_reason(reply))


def error(message: str, kind: str) -> dict[str, Any]:
    """The protocol's error object."""
    return {"type": "error", "error": {"type": kind, "message": message}}


def error_event(message: str) -> Event:
    """An error in the middle of a stream."""
    return Event(_json(error(message, "overloaded_error")), "error")


def _tool_events(
    calls: tuple[ReplyCall, ...], first: int, size: int, faults: Faults
) -> list[Event]:
    blocks: list[tuple[Event, list[Event], list[Event]]] = []
    for index, call in enumerate(calls, first):
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        fragments = ["", *argument_pieces(call.arguments, size)]
        deltas = [{"type": "input_json_delta", "partial_json": f} for f in fragments]
        stops = [_stop(index)] * (2 if FaultKind.DOUBLE_STOP in faults else 1)
        blocks.append((_start(index, block), _deltas(index, deltas), stops))
    if FaultKind.INTERLEAVED not in faults:
        return [e for start, deltas, stops in blocks for e in (start, *deltas, *stops)]
    out = [start for start, _, _ in blocks]
    for turn in range(max((len(deltas) for _, deltas, _ in blocks), default=0)):
        out += [deltas[turn] for _, deltas, _ in blocks if turn < len(deltas)]
    return out + [stop for _, _, stops in blocks for stop in stops]


def _message(reply: Reply, content: list[dict[str, Any]], stop: str | None) -> dict[str, Any]:
    return {
        "id": reply.message_id,
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": reply.input_tokens, "output_tokens": reply.output_tokens},
    }


def _stop_reason(reply: Reply) -> str:
    return "tool_use" if reply.calls else "end_turn"


def _start(index: int, block: dict[str, Any]) -> Event:
    return _event("content_block_start", index=index, content_block=block)


def _deltas(index: int, deltas: list[dict[str, str]]) -> list[Event]:
    return [_event("content_block_delta", index=index, delta=delta) for delta in deltas]


def _stop(index: int) -> Event:
    return _event("content_block_stop", index=index)


def _event(name: str, **fields: Any) -> Event:
    return Event(_json({"type": name, **fields}), name)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
