"""What the checks say of the saved flows, and that they say nothing of sessions that are in order.

The flows are read, not played again: `flows/*.flow` as tests does that, and compares with the
sheets. That each code has a flow and a near miss is with the corpus, in test_corpus.py.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from moontap.capture.diagnosis import Diagnosis
from moontap.capture.reader import FlowFile
from moontap.findings.lines import line
from moontap.findings.types import Severity
from scripts.findings_lib import corpus
from tests.findings import rig
from tests.findings.rig import Ex

TURNS = 150


@cache
def findings(name: str) -> tuple[dict[str, Any], ...]:
    """What a saved flow comes to, as lines of `findings.jsonl`."""
    diagnosis = Diagnosis()
    read = list(diagnosis.flows(FlowFile(corpus.FLOWS / f"{name}.flow")))
    assert not diagnosis.judge.faults
    return tuple(line(finding) for looked in read for finding in looked.findings)


def above_info(lines: tuple[dict[str, Any], ...]) -> list[str]:
    return [
        f"{one['evidence']['exchange']}: {one['code']}: {one['message']}"
        for one in lines
        if Severity(one["severity"]) is not Severity.INFO
    ]


@pytest.mark.parametrize(
    ("name", "exchange", "kind"),
    [
        ("chat-repeats", 2, "sdk-retry"),
        ("sdk-anthropic", 2, "sdk-retry"),
        ("claude-code-broken-stream", 4, "client-retry"),
        ("chat-retry", 3, "network-retry"),
        ("messages-fallback", 3, "fallback"),
        ("chat-repeats", 4, "sent-again"),
        ("chat-repeats", 6, "two-clients"),
    ],
)
def test_requests_that_come_again_are_told_apart(name: str, exchange: int, kind: str) -> None:
    found = [
        one["evidence"]["kind"]
        for one in findings(name)
        if one["code"] == "request-retried" and one["evidence"]["exchange"] == exchange
    ]
    assert found == [kind]


@pytest.mark.parametrize(
    ("name", "exchange", "status", "reason", "place", "ids"),
    [
        ("chat-refusals", 1, 400, "call-missing", (1, 0), ["call_1"]),
        ("chat-refusals", 2, 400, "call-missing", (1, 0), ["call_1"]),
        ("chat-refusals", 3, 400, "id-empty", (1, 0), [""]),
        ("chat-refusals", 4, 400, "result-missing", (1, 0), ["call_1"]),
        ("chat-refusals", 5, 400, "message-empty", (1, None), None),
        ("chat-refusals", 6, 400, "reasoning-missing", (1, None), ["call_1"]),
        ("chat-thinking-dropped", 2, 400, "reasoning-missing", (1, None), ["functions.Bash:0"]),
        ("messages-refusals", 1, 400, "call-missing", (1, 0), ["toolu_1"]),
        ("messages-refusals", 2, 400, "result-missing", (1, 0), ["toolu_1"]),
        ("messages-refusals", 3, 400, "text-empty", (2, None), None),
        ("messages-refusals", 4, 400, "bad-request", (1, 0), ["Bash:0"]),
        ("chat-400", 3, 400, "id-duplicated", (3, 0), ["Bash:0"]),
        ("messages-400", 3, 400, "id-duplicated", (3, 0), ["Bash_0"]),
        ("chat-tool-choice", 1, 400, "tool-choice", (None, None), None),
        ("messages-401", 1, 401, "key-refused", (None, None), None),
        ("chat-turned-away", 1, 403, "not-allowed", (None, None), None),
        ("chat-turned-away", 2, 429, "quota", (None, None), None),
        ("chat-repeats", 1, 429, "rate-limit", (None, None), None),
        ("chat-turned-away", 3, 413, "too-large", (None, None), None),
        ("chat-turned-away", 4, 503, "overloaded", (None, None), None),
        ("messages-retry", 2, 529, "overloaded", (None, None), None),
        ("chat-retry", 2, 500, "server-error", (None, None), None),
        ("messages-504", 2, 504, "gateway-timeout", (None, None), None),
    ],
)
def test_refusals_are_understood_and_what_they_point_at_is_found(
    name: str,
    exchange: int,
    status: int,
    reason: str,
    place: tuple[int | None, int | None],
    ids: list[str] | None,
) -> None:
    (found,) = [
        one["evidence"]
        for one in findings(name)
        if one["code"] == "api-refused" and one["evidence"]["exchange"] == exchange
    ]
    assert (found["status"], found["reason"]) == (status, reason)
    assert (found.get("message"), found.get("block")) == place
    assert found.get("ids") == ids


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        (
            "chat-no-progress",
            [(3, 1, "info"), (5, 1, "warning"), (8, 1, "warning"), (12, 1, "error")],
        ),
        ("chat-cycle", [(3, 2, "info")]),
        ("claude-code-loses-pairs", [(3, 2, "warning"), (5, 2, "warning")]),
    ],
)
def test_loops_are_counted(name: str, counts: list[tuple[int, int, str]]) -> None:
    """By how many times, how many calls the cycle has, and how bad that is."""
    found = [
        (one["evidence"]["count"], len(one["evidence"]["tools"]), one["severity"])
        for one in findings(name)
        if one["code"] == "no-progress"
    ]
    assert found == counts


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("messages-clean", set()),
        ("chat-clean", {"id-unfit"}),
        ("chat-clean-k2", set()),
        ("chat-near-misses", set()),
        ("chat-polling", set()),
        ("sdk-openai", {"id-reused"}),
        ("claude-code-rewritten", {"id-reused"}),
        ("claude-code-sub-agents", {"id-reused"}),
    ],
)
def test_nothing_is_wrong_with_a_session_in_order(name: str, allowed: set[str]) -> None:
    """Where the tap makes ids unique, that upstream's are not is for information."""
    assert above_info(findings(name)) == []
    assert {one["code"] for one in findings(name)} == allowed


@pytest.mark.parametrize("chat", [False, True], ids=["messages", "chat"])
def test_nothing_is_wrong_with_a_long_session_and_its_sub_agent(chat: bool) -> None:
    diagnosis = Diagnosis()
    main, helper = _Session(chat, "main"), _Session(chat, "helper")
    exchanges = [session.turn() for _ in range(TURNS // 2) for session in (main, main, helper)]
    read = diagnosis.flows(rig.flows(*exchanges))
    assert [line(finding) for looked in read for finding in looked.findings] == []
    assert not diagnosis.judge.faults


class _Session:
    """An agent that does all as it should: a thought, one to three calls, a result for each."""

    def __init__(self, chat: bool, name: str) -> None:
        self.chat, self.name, self.turns = chat, name, 0
        self.said: list[dict[str, Any]] = [rig.user(f"Task of {name}.")]

    def turn(self) -> Ex:
        self.turns += 1
        sent = list(self.said)
        # The first one comes again each time, with another result.
        commands = ["git status", f"cat file-{self.turns}", "make test"][: self.turns % 3 + 1]
        calls = [(f"call_{self.name}_{self.turns}_{n}", one) for n, one in enumerate(commands)]
        headers = {"x-claude-code-session-id": "0f3b7a52-9d1e-4c68-8a57-2b6f1d90c4e3"}
        if self.name == "helper":
            headers["x-claude-code-agent-id"] = "a1b2c3"
        reply = self._chat(calls) if self.chat else self._messages(calls)
        function = {"name": "Bash", "parameters": _SCHEMA}
        tools = [
            {"type": "function", "function": function}
            if self.chat
            else {"name": "Bash", "input_schema": _SCHEMA}
        ]
        return Ex(sent, reply, {"tools": tools}, self.chat, request_headers=headers)

    def _result(self, command: str) -> str:
        return f"{command}: result {self.turns}"

    def _messages(self, calls: list[tuple[str, str]]) -> dict[str, Any]:
        thought = {"type": "thinking", "thinking": f"Turn {self.turns}.", "signature": "c2ln"}
        content = [thought, *(rig.use(id_, "Bash", command=command) for id_, command in calls)]
        results = [rig.result(id_, self._result(command)) for id_, command in calls]
        self.said += [rig.said(*content), rig.user(*results)]
        return rig.message(*content, id_=f"msg_{self.name}_{self.turns}")

    def _chat(self, calls: list[tuple[str, str]]) -> dict[str, Any]:
        made = [rig.call(id_, "Bash", json.dumps({"command": command})) for id_, command in calls]
        message = rig.called(*made, reasoning_content=f"Turn {self.turns}.")
        self.said.append(message)
        self.said += [rig.answered(id_, self._result(command)) for id_, command in calls]
        return rig.completion(message) | {"id": f"chatcmpl-{self.name}-{self.turns}"}


_SCHEMA = {
    "type": "object",
    "properties": {"command": {"type": "string"}},
    "required": ["command"],
    "additionalProperties": False,
}
