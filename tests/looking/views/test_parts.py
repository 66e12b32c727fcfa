from __future__ import annotations

from typing import Any

import pytest

from moontap.looking.views.parts import (
    CallAt,
    Other,
    Part,
    ResultAt,
    Text,
    Thinking,
    parts_of,
    said_in,
)
from tests.looking.views.asked import assistant, calls, chat, messages, result, tool, use, user
from tests.samples import dump

PNG = {"type": "base64", "media_type": "image/png", "data": "A" * 400}
THOUGHT = {"type": "thinking", "thinking": "hm…", "signature": "s"}


def _parts(shown: Any, message: Any) -> list[Part]:
    return list(parts_of(shown.wire.protocol, dump(message), shown.request.messages[0]))


@pytest.mark.parametrize(
    ("message", "parts"),
    [
        (user("go"), [Text("go")]),
        (user(), []),
        ({"role": "user", "content": None}, []),
        ({"role": "user", "content": ["bare"]}, [Text("bare")]),
        ({"role": "user", "content": {"a": 1}}, [Other("content", b'{"a": 1}')]),
        ({"role": "user", "content": [5]}, [Other("block", b"5")]),
        ("no object", [Other("not a message", b'"no object"')]),
        (
            assistant(THOUGHT, "one", use("a"), "two", use("b")),
            [Thinking('"hm…"'.encode(), 5), Text("one"), CallAt(0), Text("two"), CallAt(1)],
        ),
        (user(result("a"), "and", result("b")), [ResultAt(0), Text("and"), ResultAt(1)]),
        (
            user({"type": "redacted_thinking", "data": "x"}),
            [Other("redacted_thinking", b'{"type": "redacted_thinking", "data": "x"}')],
        ),
        (
            user({"type": "hologram"}, "x"),
            [Other("hologram", b'{"type": "hologram"}'), Text("x")],
        ),
        (
            {"role": "user", "content": "x", "cache": True, "none": None},
            [Text("x"), Other("cache", b"true")],
        ),
    ],
)
def test_messages(message: Any, parts: list[Part]) -> None:
    assert _parts(messages([message]), message) == parts


@pytest.mark.parametrize(
    ("message", "parts"),
    [
        (user("go", "on"), [Text("go"), Text("on")]),
        (tool("a", "ok"), [ResultAt(0)]),
        (calls(("a", "{}"), ("b", "{}"), content="hm"), [Text("hm"), CallAt(0), CallAt(1)]),
        (calls(("a", "{}"), reasoning_content="hm"), [Thinking(b'"hm"', 2), CallAt(0)]),
        (calls(("a", "{}"), content=None, reasoning_content=None), [CallAt(0)]),
        (
            {"role": "assistant", "function_call": {"name": "Bash"}},
            [Other("function_call", b'{"name": "Bash"}')],
        ),
        ({"role": "assistant", "tool_calls": "?"}, [Other("tool_calls", b'"?"')]),
        # What is a call in the other protocol is none here.
        (
            calls(("a", "{}"), content=[use("b")]),
            [Other("tool_use", dump(use("b"))), CallAt(0)],
        ),
    ],
)
def test_chat_completions(message: Any, parts: list[Part]) -> None:
    assert _parts(chat([message]), message) == parts


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({"type": "image", "source": PNG}, "300 bytes"),
        ({"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}, "https://x/y.png"),
        ({"type": "document", "source": {**PNG, "data": "QUJD"}}, "3 bytes"),
        ({"type": "document", "source": {**PNG, "data": "QUI="}}, "2 bytes"),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}, "3 bytes"),
        ({"type": "image_url", "image_url": "https://x/y.png"}, "https://x/y.png"),
        ({"type": "input_audio", "input_audio": {"data": "QUJD"}}, "3 bytes"),
        ({"type": "image", "source": {"type": "file", "file_id": "f"}}, None),
        ({"type": "image", "source": 5}, None),
    ],
)
def test_a_picture_says_how_large_it_is(block: dict[str, Any], said: str | None) -> None:
    (part,) = _parts(messages([user(block)]), user(block))
    assert isinstance(part, Other)
    assert (part.name, part.said) == (block["type"], said)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", ""),
        ("two\nlines", "two\nlines"),
        (None, ""),
        ([], ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        ([{"type": "image", "source": PNG}], "[image, 300 bytes]"),
        (
            [{"type": "tool_reference", "tool_name": "Read"}],
            '[tool_reference: {"type": "tool_reference", "tool_name": "Read"}]',
        ),
        ([{"type": "hologram", "data": "x" * 200}], "[hologram, 232 bytes of JSON]"),
        ({"a": 1}, '{"a": 1}'),
        ([5, "x"], "[block: 5]\nx"),
    ],
)
def test_what_a_result_says(content: Any, said: str) -> None:
    assert said_in(dump(content)) == said


def test_all_of_what_a_result_says() -> None:
    block = {"type": "hologram", "data": "x" * 200}
    assert said_in(dump([block]), whole=True) == f"[hologram: {dump(block).decode()}]"


def test_a_result_without_content() -> None:
    assert said_in(b"") == ""


def test_half_a_surrogate_pair() -> None:
    assert said_in(rb'"cut \ud83d"') in ("cut \ud83d", "cut \ufffd")
    (part,) = parts_of(
        messages([user("x")]).wire.protocol,
        rb'{"role":"user","content":"cut \ud83d"}',
        messages([user("x")]).request.messages[0],
    )
    assert isinstance(part, Text)
    assert part.text.startswith("cut ")
