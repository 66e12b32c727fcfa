from __future__ import annotations

from typing import Any

import pytest

from tests.findings.rig import Ex, chunks, completion, found, message, stream, text, use, user

START = {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": []}}
BLOCK = {"type": "content_block_start", "index": 0, "content_block": use(name="Bash")}
HALF = {"type": "input_json_delta", "partial_json": '{"comm'}
DELTA = {"type": "content_block_delta", "index": 0, "delta": HALF}
STOP = {"type": "content_block_stop", "index": 0}
REASON = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}
END = {"type": "message_stop"}
ERROR = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


CALL = chunk(
    {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "Bash", "arguments": '{"comm'}}]}
)
DONE = chunk({}, "tool_calls")

LEFT = "Client disconnected."
RESET = "stream reset by client (CANCEL)"
CLOSED = "peer closed connection without sending complete message body"


@pytest.mark.parametrize(
    ("reply", "chat", "error", "expected"),
    [
        (stream(START, BLOCK, DELTA), False, CLOSED, ("broke-off", "warning", "network")),
        (stream(START, BLOCK, DELTA), False, None, ("no-end-event", "warning", "api")),
        (stream(START, BLOCK, DELTA), False, LEFT, ("client-left", "info", "client")),
        (stream(START, BLOCK, DELTA), False, RESET, ("client-left", "info", "client")),
        (stream(START, BLOCK, STOP, REASON), False, None, ("no-end-event", "info", "api")),
        (chunks(CALL, done=False), True, CLOSED, ("broke-off", "warning", "network")),
        (chunks(CALL, done=False), True, None, ("no-end-event", "warning", "api")),
        (chunks(CALL, DONE, done=False), True, None, ("no-end-event", "info", "api")),
        (chunks(CALL, done=False), True, LEFT, ("client-left", "info", "client")),
        (b'{"id":"msg_1","content":[', False, CLOSED, ("broke-off", "warning", "network")),
        (None, False, "connection refused", ("no-reply", "warning", "network")),
        (None, True, LEFT, ("client-left", "info", "client")),
    ],
)
def test_how_it_ended(
    reply: bytes | None, chat: bool, error: str | None, expected: tuple[str, str, str]
) -> None:
    [finding] = found("stream-cut", Ex([user("go")], reply, chat=chat, error=error))
    kind = finding.evidence.facts["kind"]
    assert (kind, finding.severity.value, finding.party.value) == expected
    assert finding.remedy


@pytest.mark.parametrize(
    ("reply", "chat", "error"),
    [
        (stream(START, BLOCK, STOP, REASON, END), False, None),
        # Clients hang up as soon as the end event has come.
        (stream(START, BLOCK, STOP, REASON, END), False, LEFT),
        (chunks(CALL, DONE), True, LEFT),
        (chunks(CALL, DONE), True, None),
        (message(text("hi")), False, None),
        (completion({"role": "assistant", "content": "hi"}), True, None),
        (stream(START, ERROR), False, None),  # stream-error
        (b"", False, None),  # reply-empty
    ],
)
def test_what_is_whole(reply: Any, chat: bool, error: str | None) -> None:
    assert found("stream-cut", Ex([user("go")], reply, chat=chat, error=error)) == []


def test_a_refusal_that_broke_off_is_a_refusal() -> None:
    one = Ex([user("go")], b'{"error":{"mess', status=500, error=CLOSED)
    assert found("stream-cut", one) == []


def test_the_call_in_the_middle_of_which_it_broke_off() -> None:
    [finding] = found("stream-cut", Ex([user("go")], stream(START, BLOCK, DELTA), error=CLOSED))
    assert "before its message_stop, in the middle of the call of Bash: peer" in finding.message
    assert finding.evidence.ids == ("pwd_0",)
    assert finding.evidence.excerpt.endswith('"partial_json": "{\\"comm"}}')


def test_each_reply_is_a_thing_of_its_own() -> None:
    one = Ex([user("go")], stream(START), error=CLOSED)
    assert [f.exchange for f in found("stream-cut", one, one)] == [1, 2]


def test_a_recording_that_ended_first() -> None:
    one = Ex([user("go")], stream(START), metadata={"moontap.incomplete": True})
    [finding] = found("stream-cut", one)
    assert "or the recording ended first" in finding.message
