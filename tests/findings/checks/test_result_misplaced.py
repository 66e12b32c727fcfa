from __future__ import annotations

from typing import Any

import pytest

from tests.findings.rig import (
    Ex,
    answered,
    call,
    called,
    found,
    message,
    result,
    said,
    text,
    use,
    user,
)

GO = [user("go")]
BOTH = said(use("a"), use("b"))
CHAT = called(call("a"), call("b"))
SYSTEM = {"role": "system", "content": "a reminder"}


@pytest.mark.parametrize(
    ("name", "messages", "chat", "expected"),
    [
        ("split", [BOTH, user(result("a")), user(result("b"))], False, [("split", 3)]),
        (
            "not the next",
            [said(use("a")), user("wait"), user(result("a"))],
            False,
            [("not-next", 3)],
        ),
        (
            "after another reply",
            [said(use("a")), user("wait"), said("hm"), user(result("a"))],
            False,
            [("not-next", 4)],
        ),
        ("behind text", [said(use("a")), user(text("x"), result("a"))], False, [("after-text", 2)]),
        (
            "text between two results",
            [BOTH, user(result("a"), text("x"), result("b"))],
            False,
            [("after-text", 2)],
        ),
        (
            "before its call",
            [user(result("a")), said(use("a")), user("x")],
            False,
            [("before-its-call", 1)],
        ),
        (
            "Chat: a person",
            [CHAT, answered("a"), user("?"), answered("b")],
            True,
            [("not-next", 4)],
        ),
        (
            "Chat: a system message",
            [CHAT, SYSTEM, answered("a"), answered("b")],
            True,
            [("not-next", 3)],
        ),
        (
            "Chat: before its call",
            [answered("a"), called(call("a")), user("x")],
            True,
            [("before-its-call", 1)],
        ),
    ],
)
def test_results_in_the_wrong_place(
    name: str, messages: list[Any], chat: bool, expected: list[tuple[str, int]]
) -> None:
    findings = found("result-misplaced", Ex([*GO, *messages], chat=chat))
    assert [(f.evidence.facts["way"], f.evidence.message) for f in findings] == expected


@pytest.mark.parametrize(
    ("name", "messages", "chat"),
    [
        ("in another order", [BOTH, user(result("b"), result("a"))], False),
        ("text behind", [BOTH, user(result("a"), result("b"), text("x"))], False),
        ("a system message between", [said(use("a")), SYSTEM, user(result("a"))], False),
        ("Chat", [CHAT, answered("b"), answered("a"), user("x")], True),
        ("Chat: no result", [CHAT, user("x")], True),
        ("an orphan behind text", [user(text("x"), text("y")), user(result("z"))], False),
        (
            "reused ids",
            [said(use("a")), user(result("a")), said(use("a")), user(result("a"))],
            False,
        ),
    ],
)
def test_near_misses(name: str, messages: list[Any], chat: bool) -> None:
    assert found("result-misplaced", Ex([*GO, *messages], chat=chat)) == []


def test_once_a_conversation_for_each_way() -> None:
    turn = [BOTH, user(result("a")), user(result("b"))]
    exchanges = [Ex([*GO, *turn * n], message(use("a"), use("b"))) for n in range(1, 4)]
    assert [f.exchange for f in found("result-misplaced", *exchanges)] == [1]
