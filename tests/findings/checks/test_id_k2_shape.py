from __future__ import annotations

from typing import Any

import pytest

from tests.findings.rig import Ex, call, called, chunks, completion, found, message, use, user

K2 = {"model": "kimi-k2.6"}


def chat(id_: Any, name: str = "exec", model: str = "kimi-k2.6") -> Ex:
    return Ex([user("go")], completion(called(call(id_, name))), {"model": model}, chat=True)


@pytest.mark.parametrize(
    ("exchange", "severity"),
    [
        (chat("functionsexec5"), "warning"),
        (chat("functions.exec5"), "warning"),
        (chat("exec_5"), "warning"),
        (chat("exec:five"), "warning"),
        (chat("call_8f3a"), "info"),
        (chat("chatcmpl-tool-dbac1b68"), "info"),
        (chat("functions.other:5"), "warning"),
        (Ex([user("go")], message(use("functionspwd0")), K2), "warning"),
    ],
)
def test_ids_that_are_not_k2s(exchange: Ex, severity: str) -> None:
    (one,) = found("id-k2-shape", exchange)
    assert one.severity == severity


def test_streamed_and_once_a_conversation() -> None:
    delta = {"tool_calls": [{"index": 0, **call("functionsexec5", "exec")}]}
    reply = chunks({"id": "c", "choices": [{"index": 0, "delta": delta}]})
    exchange = Ex([user("go")], reply, K2, chat=True)
    assert len(found("id-k2-shape", exchange, exchange)) == 1


@pytest.mark.parametrize(
    "exchange",
    [
        chat("functions.exec:0"),
        chat("exec:12"),
        chat("functions.mcp__a__b:3", "mcp__a__b"),
        chat("functions.x:3", ""),
        chat(None),
        chat("functionsexec5", model="kimi-k3"),
        chat("exec_0", model="kimi-for-coding"),
    ],
)
def test_near_misses(exchange: Ex) -> None:
    assert found("id-k2-shape", exchange) == []
