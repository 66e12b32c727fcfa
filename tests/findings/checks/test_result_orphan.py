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
    use,
    user,
)

GO = [user("go")]
DROPPED = [Ex(GO, message(use("a", "Bash"))), Ex([*GO, said("hm"), user(result("a"))])]


@pytest.mark.parametrize(
    ("name", "exchanges", "expected"),
    [
        ("after a summary", [Ex([user("summary"), user(result("x"))])], [(1, "x", None)]),
        (
            "Chat",
            [Ex([*GO, called(call("a")), answered("a"), answered("x")], chat=True)],
            [(3, "x", None)],
        ),
        ("its call was delivered", DROPPED, [(2, "a", "Bash")]),
        (
            "a call with another id",
            [Ex([*GO, said(use("a")), user(result("b"))])],
            [(2, "b", None)],
        ),
        (
            "said again in the next request",
            [Ex([*GO, user(result("x"))]), Ex([*GO, user(result("x")), said("hm"), user("y")])],
            [(1, "x", None)],
        ),
        (
            "an old id, another result",
            [Ex([*GO, said(use("a")), user(result("a", "1")), said("hm"), user(result("a", "2"))])],
            [(4, "a", None)],
        ),
    ],
)
def test_results_without_a_call(
    name: str, exchanges: list[Ex], expected: list[tuple[int, str, str | None]]
) -> None:
    findings = found("result-orphan", *exchanges)
    assert [
        (f.evidence.message, f.evidence.ids[0], f.evidence.facts["tool"]) for f in findings
    ] == expected


@pytest.mark.parametrize(
    ("name", "exchanges"),
    [
        ("answered", [Ex([*GO, said(use("a")), user(result("a"))])]),
        ("a second result", [Ex([*GO, said(use("a")), user(result("a"), result("a", "2"))])]),
        ("before its call", [Ex([*GO, user(result("a")), said(use("a")), user("x")])]),
        ("without an id", [Ex([*GO, user(result(""))])]),
        ("late", [Ex([*GO, said(use("a")), user("wait"), said("hm"), user(result("a"))])]),
        (
            "reused ids",
            [
                Ex(GO, completion(called(call("a"))), chat=True),
                Ex([*GO, *[called(call("a")), answered("a")] * 2], chat=True),
            ],
        ),
    ],
)
def test_near_misses(name: str, exchanges: list[Ex]) -> None:
    assert found("result-orphan", *exchanges) == []


@pytest.mark.parametrize(
    ("chat", "messages", "says"),
    [
        (0, [said(use("ls_0", "ls")), user(result("ls_1"))], "is the call `ls_0` of ls in message"),
        (1, [called(call("a")), answered("b")], "Give the result the id of its call, `a`."),
        (
            1,
            [called(call("a"), call("b")), answered("c"), answered("d")],
            "the one that waits for a result is the call `",
        ),
        (0, [said(use(None, "ls")), user(result("x"))], "is the call of ls that has no id in mes"),
        (0, [said(use("a"), use("b")), user(result("c"))], "that no message before it has. Cut"),
        (0, [said(use("a")), user("no"), user(result("b"))], "that no message before it has. Cut"),
    ],
)
def test_the_call_that_waits_is_named(chat: int, messages: list[Any], says: str) -> None:
    findings = found("result-orphan", Ex([*GO, *messages], chat=bool(chat)))
    assert findings
    for one in findings:
        assert says in f"{one.message} {one.remedy}"
