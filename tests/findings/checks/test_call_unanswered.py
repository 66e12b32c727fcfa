from __future__ import annotations

from typing import Any

import pytest

from tests.findings.rig import (
    Ex,
    answered,
    call,
    called,
    completion,
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
CALLED = Ex(GO, message(use("a"), use("b")))
ONE = [*GO, BOTH, user(result("a"))]


@pytest.mark.parametrize(
    ("name", "exchanges", "expected"),
    [
        ("one of two", [CALLED, Ex(ONE)], [(2, "b")]),
        ("said once", [CALLED, Ex(ONE), Ex([*ONE, said("done"), user("more")])], [(2, "b")]),
        ("none of two", [Ex([*GO, BOTH, user("never mind")])], [(1, "a"), (1, "b")]),
        ("a history seen late", [Ex([*ONE, said("done"), user("more")])], [(1, "b")]),
        (
            "the last message, then no result for it",
            [
                Ex([*GO, said(use("a"))], message(text("hm"))),
                Ex([*GO, said(use("a")), user("so?")]),
            ],
            [(2, "a")],
        ),
        (
            "the last message, a result in the next request",
            [Ex([*GO, said(use("a"))]), Ex([*GO, said(use("a")), user(result("a"))])],
            [],
        ),
        (
            "Chat",
            [
                Ex(GO, completion(called(call("a"), call("b"))), chat=True),
                Ex([*GO, called(call("a"), call("b")), answered("a"), user("no")], chat=True),
            ],
            [(2, "b")],
        ),
        (
            "the second of two with one id",
            [Ex([*GO, said(use("a"), use("a")), user(result("a"))])],
            [(1, "a")],
        ),
    ],
)
def test_calls_without_a_result(
    name: str, exchanges: list[Ex], expected: list[tuple[int, str]]
) -> None:
    findings = found("call-unanswered", *exchanges)
    assert [(f.exchange, f.evidence.ids[0]) for f in findings] == expected
    assert all((f.severity, f.party) == ("error", "client") for f in findings)


@pytest.mark.parametrize(
    ("name", "exchanges"),
    [
        ("answered", [CALLED, Ex([*GO, BOTH, user(result("a"), result("b"))])]),
        ("in another order", [CALLED, Ex([*GO, BOTH, user(result("b"), result("a"))])]),
        ("over two messages", [Ex([*GO, BOTH, user(result("a")), user(result("b"))])]),
        ("an error is a result", [Ex([*GO, said(use("a")), user(result("a", is_error=True))])]),
        ("nothing follows yet", [Ex([*GO, BOTH])]),
        ("the run ends", [CALLED]),
        ("dropped, which has a code of its own", [CALLED, Ex([*GO, said("hm"), user("well")])]),
        (
            "its result is there, before it",
            [Ex([*GO, user(result("a")), said(use("a")), user("x")])],
        ),
        (
            "reused ids, each answered",
            [Ex([*GO, *[said(use("a")), user(result("a"))] * 3], message(text("ok")))],
        ),
        (
            "Chat",
            [Ex([*GO, called(call("a"), call("b")), answered("b"), answered("a")], chat=True)],
        ),
    ],
)
def test_near_misses(name: str, exchanges: list[Ex]) -> None:
    assert found("call-unanswered", *exchanges) == []


@pytest.mark.parametrize(
    ("chat", "messages", "says"),
    [
        (0, [said(use("ls_0")), user(result("ls_1"))], "names `ls_1`. Give that result the id of"),
        (0, [said(use("ls_0")), user(result(None))], "message 2 names no call at all. Give that"),
        (1, [called(call("a")), answered("b")], "The call `a` of pwd in message 1 has no result:"),
        (
            1,
            [called(call("a"), call("b")), answered("a"), answered("c")],
            "in message 3 names `c`.",
        ),
        (0, [said(use(None, "ls")), user(result("x"))], "The call of ls that has no id in message"),
        # Nothing tells which of the two it was meant for; nor that it was meant for any.
        (0, [said(use("a"), use("b")), user(result("c"))], "and 1 message came after it."),
        (0, [said(use("a")), user("no"), user(result("b"))], "and 2 messages came after it."),
    ],
)
def test_a_result_that_names_another_call(chat: int, messages: list[Any], says: str) -> None:
    for one in found("call-unanswered", Ex([*GO, *messages], chat=bool(chat))):
        assert says in f"{one.message} {one.remedy}"
