from __future__ import annotations

from typing import Any

import pytest

from moontap.evidence.examine import examine
from moontap.evidence.source import read
from moontap.findings.types import Severity
from moontap.rules import Rules
from tests.findings.rig import Ex, answered, call, called, found, result, said, text, use, user
from tests.samples import dump

CODE = "empty-user-turn"
REMINDER = "<system-reminder>\nthe date has changed\n</system-reminder>"
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aa"}}
BEFORE = [user("go"), said("hm")]


@pytest.mark.parametrize(
    "turn",
    [
        user(""),
        user("  \n"),
        user(),
        user("(no content)"),
        user(text("(no content)")),
        user(text("[No content]")),
        user(text("")),
        user(text(""), text("(no content)")),
        user(text("(no content)"), text("(no content)")),
        user(text(REMINDER), text("(no content)")),
        {"role": "user", "content": None},
        {"role": "user"},
    ],
)
@pytest.mark.parametrize("chat", [False, True])
def test_a_turn_that_says_nothing(turn: dict[str, Any], chat: bool) -> None:
    (finding,) = found(CODE, Ex([*BEFORE, turn], chat=chat))
    assert finding.severity is Severity.WARNING
    assert finding.evidence.message == 2


@pytest.mark.parametrize(
    "turn",
    [
        user("go on"),
        user(text("no content was in that file, look again")),
        user(text(""), IMAGE),
        user(result()),
        user(result(content=""), text("")),
        user(text(REMINDER)),
        user("<local-command-stdout>(no content)</local-command-stdout>"),
        user({"type": "document", "source": {}}),
        user({"type": 8}),
        {"role": "user", "contnet": "go on"},
        {"role": "assistant", "content": "(no content)"},
        {"role": "system", "content": ""},
    ],
)
def test_near_misses(turn: dict[str, Any]) -> None:
    assert found(CODE, Ex([*BEFORE, said(use()), turn])) == []


@pytest.mark.parametrize(
    "turn",
    [
        user({"type": "image_url", "image_url": {"url": "data:,"}}),
        answered(content=""),
        answered(content=None),
        user("go on"),
    ],
)
def test_near_misses_of_chat(turn: dict[str, Any]) -> None:
    assert found(CODE, Ex([*BEFORE, called(call()), turn], chat=True)) == []


def test_each_turn_is_told_once() -> None:
    first = [*BEFORE, user("(no content)")]
    second = [*first, said("once more"), user("(no content)")]
    findings = found(CODE, Ex(first), Ex(first), Ex(second))
    assert [(f.exchange, f.evidence.message) for f in findings] == [(1, 2), (3, 4)]


def test_of_one_request_it_is_said_what_would_show_more() -> None:
    body = {"max_tokens": 9, "messages": [*BEFORE, user(text("(no content)"))]}
    examined = examine(read("body", dump(body)), Rules())
    (finding,) = [one.finding for one in examined.findings if one.finding.code == CODE]
    assert "the usual sign of a client that has lost a call" in finding.remedy
