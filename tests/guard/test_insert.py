"""A text put behind the newest user turn: where it stands, and that every other byte stays."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from moontap.guard.insert import insert
from moontap.rewrite import unheal
from moontap.wire.types import Protocol

A, O = Protocol.ANTHROPIC, Protocol.OPENAI  # noqa: E741  (columns of a table)
NOTE = 'note "1"\n</x> é 🙂'
BLOCK = {"type": "text", "text": NOTE}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "ok"}
CACHED = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
TOOL = {"role": "tool", "tool_call_id": "a", "content": "ok"}
CALLED = {"role": "assistant", "content": None, "tool_calls": [{"id": "a"}]}

# The protocol, the last messages, and what they become.
CASES: dict[str, tuple[Protocol, list[Any], list[Any]]] = {
    "string": (
        A,
        [user := {"role": "user", "content": "go"}],
        [{**user, "content": f"go\n\n{NOTE}"}],
    ),
    "empty string": (A, [{**user, "content": ""}], [{**user, "content": NOTE}]),
    "blocks": (A, [{**user, "content": [RESULT]}], [{**user, "content": [RESULT, BLOCK]}]),
    "behind a cache mark": (
        A,
        [{**user, "content": [RESULT, CACHED]}],
        [{**user, "content": [RESULT, CACHED, BLOCK]}],
    ),
    "no blocks": (A, [{**user, "content": []}], [{**user, "content": [BLOCK]}]),
    "null": (A, [{**user, "content": None}], [{**user, "content": NOTE}]),
    "a system message at the end": (
        A,
        [{**user, "content": [RESULT]}, {"role": "system", "content": "s"}],
        [{**user, "content": [RESULT, BLOCK]}, {"role": "system", "content": "s"}],
    ),
    "a developer message at the end": (
        O,
        [{**user, "content": [RESULT]}, {"role": "developer", "content": "s"}],
        [{**user, "content": [RESULT, BLOCK]}, {"role": "developer", "content": "s"}],
    ),
    "escapes at the end of a string": (
        A,
        [{**user, "content": 'a\\"'}],
        [{**user, "content": f'a\\"\n\n{NOTE}'}],
    ),
    "chat, string": (O, [user], [{**user, "content": f"go\n\n{NOTE}"}]),
    "chat, parts": (
        O,
        [{**user, "content": [{"type": "text", "text": "x"}]}],
        [{**user, "content": [{"type": "text", "text": "x"}, BLOCK]}],
    ),
    "chat, tools": (
        O,
        [CALLED, TOOL, TOOL],
        [CALLED, TOOL, TOOL, {"role": "user", "content": NOTE}],
    ),
    "chat, a system message behind tools": (
        O,
        [CALLED, TOOL, {"role": "system", "content": "s"}],
        [CALLED, TOOL, {"role": "user", "content": NOTE}, {"role": "system", "content": "s"}],
    ),
}
SPELLINGS: dict[str, Callable[[Any], str]] = {
    "compact": lambda body: json.dumps(body, separators=(",", ":"), ensure_ascii=False),
    "pretty": lambda body: json.dumps(body, indent=2, ensure_ascii=False) + "\n",
    "escaped": json.dumps,
    "half an emoji": lambda body: json.dumps({"system": "\ud83d", **body}),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("case", CASES)
def test_where_it_stands(case: str, spelling: str) -> None:
    protocol, last, wanted = CASES[case]
    older = [{"role": "user", "content": [RESULT]}, {"role": "assistant", "content": "old"}]
    request = {"model": "m", "messages": [*older, *last], "tools": [{"name": "messages"}]}
    body = SPELLINGS[spelling](request).encode("utf-8", "surrogatepass")
    new, edits = insert(protocol, body, NOTE)
    read = json.loads(new)
    assert read["messages"] == [*older, *wanted]
    read["messages"] = request["messages"]
    assert read == json.loads(body)
    assert unheal(new, edits) == body
    ((at, length, old),) = edits
    assert body.startswith(new[:at])
    assert body.endswith(new[at + length :])
    assert old in (b"", b"null")


ONE = b'{"role":"user","content":"x"}'
NO_PLACE: list[tuple[Protocol, Any, str]] = [
    (A, {"messages": []}, "no list of messages"),
    (A, {"messages": "x"}, "no list of messages"),
    (A, [1], "no list of messages"),
    (A, {"messages": [user, {"role": "assistant", "content": "I"}]}, "role 'assistant'"),
    (A, {"messages": [{"role": "system", "content": "s"}]}, "no user message"),
    (A, {"messages": [{"role": "user"}]}, "has no content"),
    (A, {"messages": [{"role": "user", "content": 5}]}, "is no text"),
    (A, {"messages": [TOOL]}, "role 'tool'"),
    (O, {"messages": [{"content": "x"}]}, "role None"),
    (O, {"messages": [user, {"role": "assistant", "content": "I"}]}, "role 'assistant'"),
]


@pytest.mark.parametrize(("protocol", "body", "reason"), NO_PLACE)
def test_where_there_is_no_place(protocol: Protocol, body: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        insert(protocol, json.dumps(body).encode(), NOTE)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "no list of messages"),
        (b"\xff", "no list of messages"),
        (b'{"messages":[{"role":"user","content":"x"}', "no list of messages"),
        (b'{"messages":[{"role":"u"}],"messages":[{"role":"user"}]}', "does not stand at byte"),
        # Decoders take the last one, and the first holds the same bytes.
        (b'{"messages":[%s],"a":"[","messages":[%s]}' % (ONE, ONE), "stands twice"),
        (b'{"messages":[%s],"messages":[%s]}' % (ONE, ONE), "stands twice"),
        (b'{"messages":[%s],"\\u006dessages":[%s]}' % (ONE, ONE), "stands twice"),
        (b'{"messages":[%s,%s],"messages":[%s]}' % (ONE, ONE, ONE), "']' expected"),
        (b'{"messages":[%s],"temperature":NaN}' % ONE, "no list of messages"),
        ('{"messages":[]}'.encode("utf-16"), "no list of messages"),
    ],
)
def test_what_is_no_request(body: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        insert(A, body, NOTE)
