from __future__ import annotations

from typing import Any

import pytest

from moontap.rules import FindingRules, Rules
from tests.findings.checks.test_stream_cut import CALL, DONE, END, START
from tests.findings.rig import Ex, chunks, completion, found, message, stream, text, user

WHOLE = stream(START, END)
STREAM = {"stream": True}


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize(
    ("wait", "times", "expected"),
    [
        (59.0, [1, 2], []),
        (60.0, [1, 2], [("first-byte", "info")]),
        (300.0, [1, 2], [("first-byte", "warning")]),
        (1.0, [0, 59_000], []),
        (1.0, [0, 61_000], [("silence", "info")]),
        (1.0, [61_000], [("silence", "info")]),
        (1.0, [0, 30_000, 400_000], [("silence", "warning")]),
        (70.0, [0, 70_000], [("first-byte", "info"), ("silence", "info")]),
    ],
)
def test_how_long(
    chat: bool, wait: float, times: list[int], expected: list[tuple[str, str]]
) -> None:
    reply = chunks(CALL, DONE) if chat else WHOLE
    sizes: list[list[float]] = [[9, time] for time in times]
    one = Ex([user("go")], reply, STREAM, chat, wait=wait, chunks=sizes)
    findings = found("stream-slow", one, one)
    assert [(f.evidence.facts["kind"], f.severity.value) for f in findings] == expected


@pytest.mark.parametrize(
    ("reply", "chat", "ask"),
    [
        (message(text("hi")), False, {}),
        (completion({"role": "assistant", "content": "hi"}), True, {"stream": False}),
    ],
)
def test_what_is_not_streamed_takes_its_time(reply: Any, chat: bool, ask: dict[str, Any]) -> None:
    one = Ex([user("go")], reply, ask, chat, wait=500, chunks=[[9, 500_000]])
    assert found("stream-slow", one) == []


def test_the_rules_say_what_is_slow() -> None:
    one = Ex([user("go")], WHOLE, STREAM, wait=2)
    strict = Rules(findings=FindingRules(first_byte_s=2))
    [finding] = found("stream-slow", one, rules=strict)
    assert finding.message == "2 seconds passed before the reply began."
