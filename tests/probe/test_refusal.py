"""Why it could not be asked: each cause has its own line with a remedy, safe for a terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from moontap.probe.ask import Answer
from moontap.probe.dialect import CHAT, MESSAGES, Dialect
from moontap.probe.refusal import refused, stalled, unreachable, without_call
from moontap.probe.report import line
from moontap.probe.rounds import Round


def error(message: str) -> bytes:
    return json.dumps({"error": {"message": message, "type": "x"}}).encode()


@pytest.mark.parametrize(
    ("status", "body", "said", "final"),
    [
        (400, error("no tools"), '400 "no tools": it does not take such a request', False),
        (401, error("bad key"), '401 "bad key": it does not take the key', True),
        (403, b"", "403: it does not let this key or this program in", True),
        (404, error("no model"), '404 "no model": nothing is there: check --base-url', False),
        (429, error("slow"), '429 "slow": too many requests, or no balance', False),
        (302, b"", "302: the request was not taken", False),
        (
            500,
            b'{"type":"error","error":{"message":"oops"}}',
            '500 "oops": the server is in',
            False,
        ),
        (504, b"<html>Gateway Time-out</html>", "504: the server is in trouble", False),
        (418, b"[1]", "418: the request was not taken", False),
        (400, error("\x1b[2J\n" + "x" * 999), '400 "\\x1b[2J\\nxxx', False),
        (400, b"[" * 100_000, "400: it does not", False),
    ],
)
def test_a_status(status: int, body: bytes, said: str, final: bool) -> None:
    refusal = refused(Answer(status, body), str)
    assert str(refusal).startswith(said)
    assert str(refusal).isprintable()
    assert len(str(refusal)) < 400
    assert refusal.final is final


def chat(message: Mapping[str, object], finish: str = "stop") -> bytes:
    return json.dumps(
        {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": finish}]}
    ).encode()


CALLED = {"content": "", "tool_calls": [{"id": "a", "function": {"name": "pwd"}}]}
NAMELESS = {"content": "", "tool_calls": [{"id": "", "function": {"name": "pwd"}}]}
BEGUN = b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"I"}}]}\n\n'
EVENT = b'event: error\ndata: {"type":"error","error":{"message":"overloaded"}}\n\n'


@pytest.mark.parametrize(
    ("dialect", "answer", "said"),
    [
        (CHAT, Answer(200, chat(CALLED)), None),
        (CHAT, Answer(200, chat({"content": "No."})), 'the model called no tool but said "No."'),
        (CHAT, Answer(200, chat({"content": ""}, "length")), "no tool call within 2,048 tokens"),
        (CHAT, Answer(200, chat(NAMELESS)), "a tool call without an id"),
        (CHAT, Answer(200, chat(CALLED), cut=True), "the reply broke off before its end"),
        (CHAT, Answer(200, BEGUN), "the reply broke off before its end"),
        (CHAT, Answer(200, b"", cut=True), "the reply broke off before its end"),
        (CHAT, Answer(200, b" \n"), "an empty reply"),
        (CHAT, Answer(200, b"<html>hello</html>"), "a reply that is not of this protocol"),
        (MESSAGES, Answer(200, EVENT), 'an error in the reply, "overloaded"'),
        (MESSAGES, Answer(200, b"{}"), "the model called no tool"),
    ],
)
def test_a_reply_without_a_call(dialect: Dialect, answer: Answer, said: str | None) -> None:
    refusal = without_call(answer, dialect.read(answer.body), str)
    assert (str(refusal) if refusal else "").startswith(said or "")
    assert (refusal is None) is (said is None)


def test_no_answer_at_all_ends_it() -> None:
    assert unreachable("http://x", "refused", False, str).final
    assert "HTTPS_PROXY is not used" in str(unreachable("http://x", "refused", True, str))
    assert stalled(120).final
    assert "120 s" in str(stalled(120))


KEY = "Q@-made-up-0123456789-0123456789-0123456789"


def without_key(text: str) -> str:
    return text.replace(KEY, "***")


@pytest.mark.parametrize("before", [0, 100, 140, 155, 159])
def test_half_a_key_is_never_shown(before: int) -> None:
    """What a server says is cut, and a key that was cut is no longer found."""
    text = "x" * before + KEY
    event = b"event: error\ndata: " + error(text).replace(b"{", b'{"type":"error",', 1) + b"\n\n"
    said = [
        refused(Answer(401, error(text)), without_key),
        without_call(Answer(200, event), MESSAGES.read(event), without_key),
        without_call(Answer(200, b"x"), CHAT.read(chat({"content": text})), without_key),
        unreachable("http://x", text, False, without_key),
        line(Round(1, text, (text,)), without_key),
    ]
    for one in said:
        assert "x" * min(before, 60) in str(one)
        assert "Q" not in str(one)
