from __future__ import annotations

import pytest

from tests.findings.rig import Ex, answered, call, called, found, result, said, use, user

GO = [user("go")]
ONE = [*GO, said(use("a"))]


@pytest.mark.parametrize(
    ("name", "exchanges", "expected"),
    [
        ("in one message", [Ex([*ONE, user(result("a"), result("a", "2"))])], [(1, 1, 2)]),
        ("in the next", [Ex([*ONE, user(result("a")), user(result("a", "2"))])], [(1, 1, 3)]),
        ("three are one finding", [Ex([*ONE, user(*[result("a")] * 3)])], [(1, 1, 2)]),
        (
            "Chat",
            [Ex([*GO, called(call("a")), answered("a"), answered("a", "2")], chat=True)],
            [(1, 1, 3)],
        ),
        (
            "added later",
            [Ex([*ONE, user(result("a"))]), Ex([*ONE, user(result("a")), user(result("a"))])],
            [(2, 1, 3)],
        ),
        (
            "the old result once more",
            [Ex([*ONE, user(result("a")), said("hm"), user(result("a"))])],
            [(1, 1, 4)],
        ),
    ],
)
def test_calls_with_several_results(
    name: str, exchanges: list[Ex], expected: list[tuple[int, int, int]]
) -> None:
    findings = found("result-duplicated", *exchanges)
    assert [
        (f.exchange, f.evidence.facts["call_message"], f.evidence.message) for f in findings
    ] == expected


@pytest.mark.parametrize(
    ("name", "messages"),
    [
        ("one each", [*GO, said(use("a"), use("b")), user(result("a"), result("b"))]),
        ("one each, one id", [*GO, said(use("a"), use("a")), user(result("a"), result("a"))]),
        ("the same id and result in each turn", [*GO, *[said(use("a")), user(result("a"))] * 3]),
        ("an orphan", [*GO, user(result("x"))]),
        ("an orphan twice", [*GO, user(result("x")), user(result("x"))]),
        ("without ids", [*GO, said(use("")), user(result(""), result(""))]),
    ],
)
def test_near_misses(name: str, messages: list[object]) -> None:
    assert found("result-duplicated", Ex(messages)) == []
