"""Which changes of a request's newest turn count."""

from __future__ import annotations

from typing import Any

import pytest

from moontap.guard.newest import Newest, newest
from moontap.rules.progress import ProgressRules
from moontap.wire.protocol import ANTHROPIC, OPENAI, Wire
from tests.findings.rig import answered, call, called, result, said, text, use, user
from tests.samples import dump

REMINDER = text("<system-reminder>\nthe date\n</system-reminder>")
MESSAGES = [user("go"), said(use("a", "Bash", c="ls")), user(result("a", "x"))]
CHAT = [user("go"), called(call("a", "Bash", '{"c":"ls"}')), answered("a", "x")]


def of(wire: Wire, messages: list[Any]) -> Newest:
    request = wire.read_request(dump({"model": "kimi-k3", "messages": messages}))
    return newest(request.messages, ProgressRules())


SAME: list[tuple[Wire, list[Any], list[Any]]] = [
    (ANTHROPIC, MESSAGES, [user("other"), *MESSAGES[1:]]),
    (ANTHROPIC, MESSAGES, [*MESSAGES[:2], user(result("a", "x"), REMINDER)]),
    (ANTHROPIC, MESSAGES, [*MESSAGES[:2], user(result("a", "x", cache_control={"type": "e"}))]),
    (ANTHROPIC, MESSAGES, [*MESSAGES, {"role": "system", "content": "s"}]),
    (ANTHROPIC, MESSAGES, [*MESSAGES[:2], user(result("a", "x"), text("(no content)"))]),
    (ANTHROPIC, [said("x"), user("")], [said("y"), user(text("(no content)"))]),
    (OPENAI, CHAT, [CHAT[0], called(call("a", "Bash", '{"c": "ls"}')), CHAT[2]]),
]
CHANGED: list[tuple[Wire, list[Any], list[Any]]] = [
    (ANTHROPIC, MESSAGES, [*MESSAGES[:2], user(result("a", "y"))]),
    (ANTHROPIC, MESSAGES, [MESSAGES[0], said(use("a", "Bash", c="pwd")), MESSAGES[2]]),
    (ANTHROPIC, MESSAGES, [*MESSAGES[:2], user(result("a", "x"), text("try pwd"))]),
    (ANTHROPIC, MESSAGES, [*MESSAGES[:2], user(result("a", "x"), REMINDER, text("hi"))]),
    (ANTHROPIC, MESSAGES, [*MESSAGES, user("try pwd")]),
    (OPENAI, CHAT, [*CHAT[:2], answered("a", "y")]),
    (OPENAI, CHAT, [CHAT[0], called(call("a", "Bash", '{"c":"pwd"}')), CHAT[2]]),
    (OPENAI, CHAT, [*CHAT, user("try pwd")]),
]


@pytest.mark.parametrize(("wire", "one", "other"), SAME)
def test_it_says_the_same(wire: Wire, one: list[Any], other: list[Any]) -> None:
    assert of(wire, one) == of(wire, other)


@pytest.mark.parametrize(("wire", "one", "other"), CHANGED)
def test_it_says_something_else(wire: Wire, one: list[Any], other: list[Any]) -> None:
    assert of(wire, one) != of(wire, other)
