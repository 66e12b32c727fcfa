from __future__ import annotations

from typing import Any

import pytest

from moontap.findings.types import Severity
from tests.findings.rig import (
    Ex,
    call,
    called,
    chunks,
    completion,
    found,
    message,
    stream,
    text,
    use,
    user,
)

CODE = "stop-reason-contradicts"
GO = [user("go")]
FUNCTION = {"type": "function", "function": {"name": "pwd"}}
SAID = {"role": "assistant", "content": "done"}


def chat(reply: dict[str, Any] | bytes, **ask: Any) -> Ex:
    return Ex(GO, reply, ask, chat=True)


def streamed(finish: str | None, *, done: bool = True) -> bytes:
    entry = {"index": 0, **call()}
    return chunks(
        {"choices": [{"index": 0, "delta": {"tool_calls": [entry]}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
        done=done,
    )


@pytest.mark.parametrize(
    ("exchange", "says"),
    [
        (Ex(GO, message(text("done"), stop="tool_use")), "ends with `tool_use`, and there is no"),
        (Ex(GO, message(use(), stop="end_turn")), "holds a call, and ends with `end_turn`"),
        (Ex(GO, message(use(), use("b"), stop="end_turn")), "holds 2 calls"),
        (chat(completion(SAID, "tool_calls")), "ends with `tool_calls`, and there is no call"),
        (chat(completion(called(call()), "stop")), "holds a call, and ends with `stop`"),
        (chat(streamed("stop")), "holds a call, and ends with `stop`"),
        (chat(streamed("stop"), tool_choice="auto"), "holds a call"),
    ],
)
def test_a_contradiction(exchange: Ex, says: str) -> None:
    (finding,) = found(CODE, exchange)
    assert finding.severity is Severity.WARNING
    assert says in finding.message


@pytest.mark.parametrize(
    "exchange",
    [
        Ex(GO, message(use())),
        Ex(GO, message(text("done"))),
        Ex(GO, message(text("done"), stop="pause_turn")),
        Ex(GO, message(use(), stop="max_tokens")),
        Ex(GO, message(text("d"), stop="stop_sequence")),
        chat(completion(called(call()))),
        chat(completion(SAID)),
        chat(completion(called(call()), "length")),
        chat(completion({"role": "assistant", "function_call": {}}, "function_call")),
        chat(streamed("tool_calls")),
        # OpenAI itself does so where a certain tool, or some call, was demanded.
        chat(completion(called(call()), "stop"), tool_choice="required"),
        chat(streamed("stop"), tool_choice="required"),
        chat(completion(called(call()), "stop"), tool_choice=FUNCTION),
        # No stop reason, no end, or events that could not be read: nothing is known.
        chat(streamed(None)),
        chat(streamed("stop", done=False)),
        chat(b'data: {"tool_calls": broken\n\n' + streamed("stop")),
        Ex(GO, message(text("x"), stop="tool_use"), metadata={"moontap.incomplete": True}),
        Ex(GO, {"type": "error", "error": {"message": "no"}}, status=500),
        Ex(GO, stream({"type": "message_delta", "delta": {"stop_reason": "tool_use"}})),
    ],
)
def test_near_misses(exchange: Ex) -> None:
    assert found(CODE, exchange) == []


def test_each_choice_by_itself() -> None:
    choices = [
        {"index": 0, "message": called(call()), "finish_reason": "tool_calls"},
        {"index": 1, "message": SAID, "finish_reason": "tool_calls"},
    ]
    (finding,) = found(CODE, chat({"id": "cmpl-1", "choices": choices}))
    assert finding.evidence.choice == 1
