from __future__ import annotations

from typing import Any

import pytest

from tests.findings.checks.test_guard_stopped import LOOP, chats, messages, stopped
from tests.findings.rig import Ex, completion, found, message, text

MARKS: dict[str, Any] = {"moontap.reminded": [[0, 0, b""]], "moontap.repeats": 3}


@pytest.mark.parametrize("chat", [False, True])
def test_it_says_once_which_tool_it_was(chat: bool) -> None:
    exchanges, history = chats() if chat else messages()
    reply = completion({"role": "assistant", "content": "x"}) if chat else message(text("x"))
    last = Ex(history, reply, chat=chat, metadata=MARKS)
    (finding,) = found("guard-reminded", *exchanges, last)
    assert (finding.exchange, finding.severity.value) == (4, "info")
    assert finding.message == (
        "moontap reminded the model: pwd was called 3 times in a row to no avail."
    )
    assert finding.evidence.facts == {"tools": ["pwd"], "count": 3}


def test_near_misses() -> None:
    exchanges, history = messages()
    assert found("guard-reminded", *exchanges, Ex(history, message(text("x")))) == []
    assert found("guard-reminded", *exchanges, stopped(history, "blocked_no_progress", LOOP)) == []
