"""What an input is taken for: the near misses, each with the kind that it is or that it is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moontap.evidence.gateway import status
from moontap.evidence.kinds import Kind
from moontap.evidence.recognise import recognise
from moontap.evidence.source import Unknown, read
from moontap.redact.flow import Redactor
from tests.evidence import documents
from tests.evidence.documents import called, use
from tests.samples import dump

USER = {"role": "user", "content": "hi"}
SYSTEM = {"role": "system", "content": "be nice"}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "x"}


def kind(data: bytes) -> tuple[Kind | None, str]:
    """What it is taken for, and the note about that."""
    try:
        source = read("evidence", data)
        return recognise(source, Redactor()).kind, "; ".join(source.notes)
    except Unknown:
        return None, ""


@pytest.mark.parametrize(
    ("body", "expected", "guessed"),
    [
        ({"max_tokens": 9, "messages": [SYSTEM, USER]}, Kind.CHAT_REQUEST, False),
        (
            {"max_tokens": 9, "messages": [{**SYSTEM, "role": "developer"}]},
            Kind.CHAT_REQUEST,
            False,
        ),
        ({"metadata": {"a": "b"}, "messages": [USER]}, Kind.CHAT_REQUEST, False),
        ({"store": True, "max_tokens": 9, "messages": [USER]}, Kind.CHAT_REQUEST, False),
        ({"max_tokens": 9, "tool_choice": "auto", "messages": [USER]}, Kind.CHAT_REQUEST, False),
        ({"metadata": {"user_id": "u"}, "messages": [USER]}, Kind.MESSAGES_REQUEST, False),
        ({"system": "be nice", "messages": [USER]}, Kind.MESSAGES_REQUEST, False),
        ({"tool_choice": {"type": "any"}, "messages": [USER]}, Kind.MESSAGES_REQUEST, False),
        # Both have these: then it is said that it is a guess.
        ({"max_tokens": 9, "messages": [USER]}, Kind.CHAT_REQUEST, True),
        ({"temperature": 1, "stream": True, "messages": [USER]}, Kind.CHAT_REQUEST, True),
        ([USER], Kind.CHAT_HISTORY, True),
        ([SYSTEM, USER], Kind.CHAT_HISTORY, False),
        ([USER, {"role": "user", "content": [RESULT]}], Kind.MESSAGES_HISTORY, False),
    ],
)
def test_the_protocol_of_a_request(body: Any, expected: Kind, guessed: bool) -> None:
    found, note = kind(dump(body))
    assert found is expected
    assert ("nothing in it tells" in note) is bool(guessed)


MESSAGES = [USER, {"role": "assistant", "content": [use("a", "ls")]}]
CHAT = [USER, {"role": "assistant", "content": None, "tool_calls": [called("a", "ls")]}]
REPLY = {"model": "k", "id": "msg_1", "role": "assistant", "content": [use("a", "ls")]}


@pytest.mark.parametrize(
    ("body", "end", "expected"),
    [
        ({"messages": MESSAGES, "max_tokens": 9}, b'"ls"', Kind.MESSAGES_REQUEST),
        ({"messages": CHAT, "max_tokens": 9}, b'"arguments"', Kind.CHAT_REQUEST),
        (MESSAGES, b'"ls"', Kind.MESSAGES_HISTORY),
        (CHAT, b'"arguments"', Kind.CHAT_HISTORY),
        ({**REPLY, "stop_reason": "tool_use", "type": "message"}, b'"tool_use","ty', None),
        (REPLY, b'"ls"', Kind.MESSAGES_REPLY),
        ({"type": "message", "role": "assistant", **REPLY}, b'"content"', Kind.MESSAGES_REPLY),
        (documents.ERROR, b"duplicated", Kind.ERROR),
    ],
)
def test_what_is_cut_is_still_told(body: Any, end: bytes, expected: Kind | None) -> None:
    text = dump(body)
    cut = text[: text.rindex(end) + 2] if end in text else text[:-5]
    assert kind(cut)[0] is (expected or Kind.MESSAGES_REPLY)


@pytest.mark.parametrize(
    "text",
    [
        "id: foo\nname: bar\n",
        "id: 5\n---\n# Hello\n",
        "data:\n  a: b\n  c: d\n",
        "data: [1, 2]\nevent: push\n",
        "data: {a: b}\n",
        "event: push\nbranches: [main]\n",
        "retry: later please\n",
        ":-) hello world\nthis is a note\n",
        # An event stream, of another API.
        'event: response.created\ndata: {"type":"response.created","response":{}}\n\n',
        "<!doctype html><title>My blog</title><p>404 things</p>",
        "<html><head><title>404 recipes for the summer</title></head></html>",
        "<html><head><title>The Forbidden City</title></head></html>",
        "<html><body>hello</body></html>",
    ],
)
def test_texts_that_only_begin_like_evidence(text: str) -> None:
    assert kind(text.encode())[0] is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('data: {"id":"c","choices":[{"index":0,"delta":{}}]}\n\n', Kind.CHAT_STREAM),
        ("data: [DONE]\n\n", Kind.CHAT_STREAM),
        ('id: 7\ndata: {"id":"c","choices":[{"index":0,"del', Kind.CHAT_STREAM),
        ('event: message_start\ndata: {"type":"message_start","message":{', Kind.MESSAGES_STREAM),
        ('event: ping\ndata: {"type": "ping"}\n\n', Kind.MESSAGES_STREAM),
        ('event: error\ndata: {"type":"error","error":{"type":"x"}}\n\n', None),
        (': keep-alive\n\ndata: {"error":{"message":"x"}}\n\n', Kind.CHAT_STREAM),
    ],
)
def test_event_streams(text: str, expected: Kind | None) -> None:
    found = kind(text.encode())[0]
    assert found is expected if expected else found in (Kind.MESSAGES_STREAM, Kind.CHAT_STREAM)


@pytest.mark.parametrize(
    "value",
    [
        {"error": "off", "port": 80},
        {"error": None, "name": "x"},
        {"name": "x", "version": "1", "error": None},
        {"type": "message", "user": "U1", "text": "hi", "ts": "1"},
        {"type": "message", "properties": {}},
        {"choices": [{"value": 1}]},
        {"question": "q", "choices": ["a", "b"]},
        {"type": "ping"},
        {"type": "ping", "zen": "x"},
        {"log": {"level": "info"}, "message": "x"},
        [{"content": "x", "author": "y"}],
        [{"type": "message", "user": "U1", "text": "hi", "content": "x"}],
        {"model": "kimi-k3", "input": [USER]},
    ],
)
def test_json_that_is_none_of_it(value: Any) -> None:
    assert kind(dump(value))[0] is None
    assert kind(json.dumps(value, indent=2).encode())[0] is None


@pytest.mark.parametrize(
    "record",
    [
        {"type": "user", "session_id": "s", "action": "login"},
        {"type": "system", "session_id": "s", "action": "boot"},
        {"type": "progress", "message": {"pct": 1}},
        {"message": {"payload": {"a": 1}}, "topic": "x"},
        {"log": {"level": "info"}, "message": "x"},
        {"type": "ping"},
    ],
)
def test_logs_of_other_programs(record: Any) -> None:
    assert kind(dump(record) + b"\n" + dump(record) + b"\n")[0] is None


@pytest.mark.parametrize(
    "value",
    [
        {"error": {"message": "x", "type": "y"}},
        {"error": "Unauthorized"},
        {"error": "Bad Gateway", "status": 502, "path": "/v1/messages", "timestamp": "t"},
        {"type": "error", "error": {"type": "overloaded_error", "message": "x"}},
    ],
)
def test_error_bodies(value: Any) -> None:
    assert kind(dump(value))[0] is Kind.ERROR


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<html><head><title>502 Bad Gateway</title></head>", 502),
        ("<html><body><h1>504 Gateway Time-out</h1>", 504),
        ("<!DOCTYPE html><title>api.moonshot.cn | 524: A timeout occurred</title>", 524),
        ("<html><title>HTTP Status 404 \u2013 Not Found</title>", 404),
        ("<html><title>503 Service Temporarily Unavailable</title>", 503),
        ("<html><title>Error 413</title>", 413),
        ("<html><title>502</title>", 502),
        ("<html><title>Forbidden</title>", 403),
        ("<html><title>About Area 404 films</title>", None),
        ("<html><title>200 OK</title>", None),
        ("<html>" + "\n" * 9 + "<title>" * 9, None),
    ],
)
def test_the_status_of_a_page(page: str, expected: int | None) -> None:
    assert status(page.encode()) == expected
    assert kind(page.encode())[0] is (Kind.ERROR if expected else None)
