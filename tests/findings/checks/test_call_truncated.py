from __future__ import annotations

from typing import Any

import pytest

from moontap.findings.types import Party
from tests.findings.rig import (
    Ex,
    call,
    called,
    chunks,
    completion,
    found,
    message,
    stream,
    use,
    user,
)

CODE = "call-truncated"
GO = [user("go")]
CUT = {"moontap.incomplete": True}
NEEDS = [{"name": "pwd", "input_schema": {"type": "object", "required": ["a"]}}]
START = {"type": "message_start", "message": {"id": "msg_1"}}
ERROR = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
PING = {"type": "ping"}


def block(*parts: str, index: int = 0, stop: bool = False, **input_: Any) -> list[dict[str, Any]]:
    """The events of a call."""
    start = {"type": "content_block_start", "index": index, "content_block": use(**input_)}
    deltas = [
        {
            "type": "content_block_delta",
            "index": index,
            "delta": {"type": "input_json_delta", "partial_json": part},
        }
        for part in parts
    ]
    end = [{"type": "content_block_stop", "index": index}] if stop else []
    return [start, *deltas, *end]


def ends(reason: str) -> list[dict[str, Any]]:
    return [
        {"type": "message_delta", "delta": {"stop_reason": reason}},
        {"type": "message_stop"},
    ]


def delta(arguments: str | None = None, finish: str | None = None) -> dict[str, Any]:
    """A piece of a Chat Completions stream."""
    entry = {"index": 0, "id": "pwd:0", "function": {"name": "pwd", "arguments": arguments}}
    calls = {} if arguments is None else {"tool_calls": [entry]}
    return {"choices": [{"index": 0, "delta": calls, "finish_reason": finish}]}


def chat_whole(arguments: str, finish: str) -> Ex:
    return Ex(GO, completion(called(call(arguments=arguments)), finish), chat=True)


@pytest.mark.parametrize(
    ("exchange", "says", "party"),
    [
        (
            Ex(GO, stream(START, *block('{"a": "b'), *ends("max_tokens")), {"max_tokens": 64}),
            "reached its limit of 64 tokens within the arguments of pwd",
            Party.CLIENT,
        ),
        (
            Ex(GO, stream(START, *block('{"a": "b', stop=True), *ends("max_tokens"))),
            "reached its limit within",
            Party.API,
        ),
        (
            Ex(GO, stream(START, *block('{"a"'), *ends("model_context_window_exceeded"))),
            "reached its limit within",
            Party.API,
        ),
        (Ex(GO, stream(START, *block(), *ends("max_tokens"))), "reached its limit", Party.API),
        # The `{}` with which a streamed call begins, where the tool cannot be run with that.
        (
            Ex(GO, stream(START, *block(stop=True), *ends("max_tokens")), {"tools": NEEDS}),
            "reached its limit",
            Party.API,
        ),
        (Ex(GO, message(use(), stop="max_tokens"), {"tools": NEEDS}), "its limit", Party.API),
        (chat_whole('{"a": "b', "length"), "reached its limit", Party.API),
        (chat_whole("", "length"), "reached its limit", Party.API),
        (
            Ex(GO, chunks(delta(""), delta('{"a'), delta(finish="length")), chat=True),
            "reached its limit",
            Party.API,
        ),
        (
            Ex(GO, stream(START, *block('{"a": "b')), metadata=CUT),
            "broke off before the arguments of pwd",
            Party.NETWORK,
        ),
        (Ex(GO, stream(START, *block('{"a": "b'))), "broke off", Party.NETWORK),
        (Ex(GO, stream(START, *block())), "broke off", Party.NETWORK),
        (Ex(GO, chunks(delta('{"a'), done=False), chat=True), "broke off", Party.NETWORK),
        (Ex(GO, chunks(delta(""), done=False), chat=True), "broke off", Party.NETWORK),
        (Ex(GO, stream(START, *block('{"a": "b'), ERROR)), "sent an error before", Party.API),
    ],
)
def test_a_call_that_is_not_whole(exchange: Ex, says: str, party: Party) -> None:
    (finding,) = found(CODE, exchange)
    assert says in finding.message
    assert finding.party is party
    assert finding.evidence.facts["tool"] == "pwd"


@pytest.mark.parametrize(
    "exchange",
    [
        Ex(GO, stream(START, *block('{"a": "b"}', stop=True), *ends("tool_use"))),
        Ex(GO, stream(START, *block(stop=True), *ends("tool_use"))),
        # Whole, whatever came after it.
        Ex(GO, stream(START, *block('{"a": "b"}', stop=True), *ends("max_tokens"))),
        Ex(GO, stream(START, *block('{"a": "b"}', stop=True)), metadata=CUT),
        Ex(GO, stream(START, *block('{"a": "b"}'), ERROR)),
        Ex(GO, stream(START, *block(a="b"))),
        Ex(GO, message(use(a="b"), stop="max_tokens"), {"tools": NEEDS}),
        Ex(GO, message(use(), stop="max_tokens")),
        chat_whole('{"a": "b"}', "length"),
        chat_whole("", "tool_calls"),
        Ex(GO, chunks(delta('{"a": 1}'), done=False), chat=True),
        # A missing end of the block, or finish reason, alone cuts nothing.
        Ex(GO, chunks(delta('{"a": 1}')), chat=True),
        Ex(GO, stream(START, *block("{}"), *ends("tool_use"))),
        # Broken, but not cut.
        chat_whole('{"a": "b', "tool_calls"),
        Ex(GO, stream(START, PING), metadata=CUT),
        Ex(GO, message({"type": "text", "text": "and so"}, stop="max_tokens")),
        Ex(GO, None, error="connection closed"),
    ],
)
def test_near_misses(exchange: Ex) -> None:
    assert found(CODE, exchange) == []


def test_only_the_call_that_was_cut() -> None:
    first, second = block('{"a": 1}', stop=True), block('{"a', index=1)
    (finding,) = found(CODE, Ex(GO, stream(START, *first, *second), metadata=CUT))
    assert finding.evidence.index == 1
