"""A reader that remembers beginnings gives what the protocol's own reader gives."""

import json
from dataclasses import replace
from typing import Any

import pytest

from moontap.wire.history import SMALL, HistoryReader
from moontap.wire.protocol import ANTHROPIC, OPENAI, Wire
from moontap.wire.types import Request


def messages_body(turns: int, **more: Any) -> bytes:
    """A Messages request with this many calls and results of some 20 KB each."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for n in range(turns):
        use = {"type": "tool_use", "id": f"Bash_{n}", "name": "Bash", "input": {"n": n}}
        result = {"type": "tool_result", "tool_use_id": f"Bash_{n}", "content": "é\n" * 7000}
        messages += [
            {"role": "assistant", "content": [{"type": "text", "text": f"t{n}"}, use]},
            {"role": "user", "content": [result]},
        ]
    return json.dumps({"model": "kimi-k3", "messages": messages, **more}).encode()


def chat_body(turns: int, **more: Any) -> bytes:
    """The same as Chat Completions."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for n in range(turns):
        function = {"name": "Bash", "arguments": json.dumps({"n": n})}
        call = {"id": f"Bash:{n}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"Bash:{n}", "content": "x" * 20_000},
        ]
    return json.dumps({"model": "kimi-k3", "messages": messages, **more}).encode()


SEQUENCES: dict[str, tuple[Wire, list[bytes]]] = {
    "growing": (ANTHROPIC, [messages_body(n, stream=True) for n in range(1, 30)]),
    "growing, chat": (OPENAI, [chat_body(n, stream=True) for n in range(1, 30)]),
    "settings behind the messages change": (
        ANTHROPIC,
        [messages_body(20, stream=True), messages_body(22, metadata={"user_id": "u"})],
    ),
    "shrinking": (ANTHROPIC, [messages_body(n) for n in (25, 12, 26)]),
    "an early message changes": (
        ANTHROPIC,
        [messages_body(20), messages_body(20).replace(b'"t3"', b'"T3"'), messages_body(21)],
    ),
    "two conversations in turn": (
        OPENAI,
        [body for n in range(10, 20) for body in (chat_body(n), chat_body(n, user="b"))],
    ),
    "the same body as another protocol": (OPENAI, [messages_body(12), messages_body(13)]),
    "messages twice in one object": (
        ANTHROPIC,
        [messages_body(20), messages_body(20)[:-1] + b',"messages":[{"role":"user"}]}'],
    ),
    **{
        f"the second time {second.decode()}": (
            OPENAI,
            [chat_body(20), chat_body(20)[:-1] + b',"messages":' + second + b"}", chat_body(21)],
        )
        for second in (b"[]", b"[[]]", b"[null]", b'[{"role":""}]')
    },
    "an unreadable message behind": (
        ANTHROPIC,
        [
            messages_body(20),
            messages_body(22).replace(b'"name": "Bash", "input": {"n": 21}', b'"name": 5'),
        ],
    ),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_equal_to_reading_whole(name: str) -> None:
    wire, bodies = SEQUENCES[name]
    reader = HistoryReader()
    for body in bodies:
        assert reader.read(wire, body) == wire.read_request(body)


TOOLS = [{"name": "Bash", "input_schema": {"type": "object"}}]


@pytest.mark.parametrize(
    ("wire", "bodies"),
    [
        (ANTHROPIC, [messages_body(n, tools=TOOLS, max_tokens=9) for n in (20, 21, 28)]),
        (OPENAI, [chat_body(n, tools=TOOLS, tool_choice="auto") for n in (20, 21, 28)]),
    ],
)
@pytest.mark.parametrize("first", [False, True], ids=["behind the history", "before it"])
def test_what_is_asked_for_is_read_on_either_side_of_the_history(
    wire: Wire, bodies: list[bytes], first: bool
) -> None:
    reader = HistoryReader()
    for body in bodies:
        if first:
            members = json.loads(body)
            history = members.pop("messages")
            body = json.dumps({**members, "messages": history}).encode()
        asked = reader.read(wire, body).asked
        assert json.loads(asked.tools) == TOOLS
        assert asked == wire.read_request(body).asked


def test_reads_only_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = HistoryReader()
    reader.read(ANTHROPIC, messages_body(30))
    read: list[int] = []

    def counted(body: bytes) -> Request:
        read.append(len(body))
        return ANTHROPIC.read_request(body)

    wire = replace(ANTHROPIC, read_request=counted)
    body = messages_body(31)
    assert len(reader.read(wire, body).messages) == 63
    assert len(read) == 1
    assert read[0] < len(body) / 4


def test_what_is_not_of_the_protocol_is_said_each_time() -> None:
    reader = HistoryReader()
    good = messages_body(20)
    reader.read(ANTHROPIC, good)
    for bad in (good[:-1], good + b"x", b"x" * SMALL):
        with pytest.raises(ValueError, match="not a Messages request"):
            reader.read(ANTHROPIC, bad)


def test_memory_is_bounded() -> None:
    reader = HistoryReader(limit=1_000_000)
    for n in range(20):
        reader.read(
            ANTHROPIC, messages_body(12, metadata={"user_id": str(n)}).replace(b"go", b"g%d" % n)
        )
    assert 0 < reader.kept <= 1_000_000
