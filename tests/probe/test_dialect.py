"""The requests of a probe: what a model needs back of its own reply is in the next one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moontap.probe.dialect import CHAT, MESSAGES, RESULT, TOOL, Dialect
from moontap.tapping.upstream import parse
from moontap.wire.types import Request


def events(*data: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in data)


MESSAGES_WHOLE = json.dumps(
    {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "pwd_0", "name": "pwd", "input": {}},
        ],
        "stop_reason": "tool_use",
    }
).encode()
MESSAGES_STREAM = events(
    {"type": "message_start", "message": {"id": "m1", "role": "assistant", "content": []}},
    {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "thinking", "thinking": "", "signature": ""},
    },
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "thinking_delta", "thinking": "hm"},
    },
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "signature_delta", "signature": "c2ln"},
    },
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "text_delta", "text": "I look."},
    },
    {
        "type": "content_block_start",
        "index": 2,
        "content_block": {"type": "tool_use", "id": "pwd_0", "name": "pwd", "input": {}},
    },
    {"type": "content_block_stop", "index": 2},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    {"type": "message_stop"},
)
CALL = {"id": "pwd:0", "type": "function", "function": {"name": "pwd", "arguments": "{}"}}
CHAT_WHOLE = json.dumps(
    {
        "id": "c1",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "I look.",
                    "reasoning_content": "hm",
                    "tool_calls": [CALL],
                },
                "finish_reason": "tool_calls",
            }
        ],
    }
).encode()


def delta(**said: Any) -> dict[str, Any]:
    return {"id": "c1", "choices": [{"index": 0, "delta": said, "finish_reason": None}]}


CHAT_STREAM = (
    events(
        delta(role="assistant", content=""),
        delta(reasoning_content="hm"),
        delta(content="I look."),
        delta(tool_calls=[{"index": 0, **CALL}]),
    )
    + b"data: [DONE]\n\n"
)
MESSAGES_SAID = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "pwd_0", "name": "pwd", "input": {}},
    ],
}
CHAT_SAID = {
    "role": "assistant",
    "content": "I look.",
    "reasoning_content": "hm",
    "tool_calls": [CALL],
}


@pytest.mark.parametrize(
    ("dialect", "body", "message"),
    [
        (MESSAGES, MESSAGES_WHOLE, MESSAGES_SAID),
        (MESSAGES, MESSAGES_STREAM, MESSAGES_SAID),
        (CHAT, CHAT_WHOLE, CHAT_SAID),
        (CHAT, CHAT_STREAM, CHAT_SAID),
    ],
    ids=["messages whole", "messages streamed", "chat whole", "chat streamed"],
)
def test_the_reply_goes_back_as_it_came(
    dialect: Dialect, body: bytes, message: dict[str, Any]
) -> None:
    said = dialect.read(body)
    assert said.message == message
    assert said.reply.complete
    second = dialect.second("kimi-k3", True, said)
    assert second["messages"][1] == message


def read(dialect: Dialect, body: dict[str, Any]) -> Request:
    return dialect.wire.read_request(json.dumps(body).encode())


@pytest.mark.parametrize(
    ("dialect", "reply"), [(MESSAGES, MESSAGES_WHOLE), (CHAT, CHAT_WHOLE)], ids=["messages", "chat"]
)
@pytest.mark.parametrize("streamed", [True, False])
def test_the_rounds(dialect: Dialect, reply: bytes, streamed: bool) -> None:
    said = dialect.read(reply)
    first = read(dialect, dialect.first("kimi-k3", streamed))
    second = read(dialect, dialect.second("kimi-k3", streamed, said))
    third = read(dialect, dialect.compacted("kimi-k3", streamed))
    assert (first.model, first.stream) == ("kimi-k3", streamed)
    assert [first.call_ids, second.call_ids, third.call_ids] == [[], said.ids, []]
    results = [result for message in second.messages for result in message.results]
    assert [result.id for result in results] == said.ids
    assert json.loads(results[0].content) == RESULT
    # Rounds 1 and 2 are one conversation, whichever way it comes; the third is no repetition.
    assert second.opening == first.opening != third.opening
    assert TOOL in third.opening


def test_streamed_and_whole_are_told_apart_by_who_reads_the_capture() -> None:
    openings = {
        read(dialect, make("kimi-k3", streamed)).opening
        for dialect in (MESSAGES, CHAT)
        for make in (dialect.first, dialect.compacted)
        for streamed in (True, False)
    }
    assert len(openings) == 4


@pytest.mark.parametrize(
    ("url", "messages", "chat"),
    [
        ("http://127.0.0.1:1", "/anthropic/v1/messages", "/v1/chat/completions"),
        ("http://127.0.0.1:1/v1", "/anthropic/v1/messages", "/v1/chat/completions"),
        ("http://127.0.0.1:1/anthropic", "/anthropic/v1/messages", "/v1/chat/completions"),
        ("https://api.kimi.com", "/coding/v1/messages", "/coding/v1/chat/completions"),
        ("https://api.kimi.com/coding/v1/", "/coding/v1/messages", "/coding/v1/chat/completions"),
    ],
)
def test_the_paths(url: str, messages: str, chat: str) -> None:
    assert (MESSAGES.path(parse(url)), CHAT.path(parse(url))) == (messages, chat)
