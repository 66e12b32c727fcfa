from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from moontap.findings.check import Check
from moontap.findings.judge import Judge
from moontap.findings.lines import line
from moontap.findings.turn import Sent, Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity
from moontap.pairing import pair
from moontap.rules import Rules
from moontap.rules.findings import FindingRules
from moontap.wire.types import Message, Protocol, Request


def turn(number: int = 1, conversation: int = 1, parts: Part = Part.HISTORY) -> Turn:
    return Turn(
        number=number,
        conversation=conversation,
        protocol=Protocol.OPENAI,
        session="s",
        agent=None,
        model="kimi-k3",
        parts=parts,
        rules=Rules(),
        flow=f"flow-{number}",
        at=1_764_000_000.0,
    )


def check(code: str, look: Callable[[Turn], Iterable[Found]], needs: Part = Part.HISTORY) -> Check:
    return Check(code, needs, Severity.WARNING, Party.API, "", "", "", "do this", look)


def always(code: str = "one", **found: Any) -> Check:
    return check(code, lambda _: [replace(Found("saw it"), **found)])


def judge(*checks: Check, **findings: Any) -> Judge:
    return Judge(Rules(findings=FindingRules(**findings)), checks)


def codes(judge: Judge, *turns: Turn) -> list[list[str]]:
    return [[finding.code for finding in judge.look(one)] for one in turns]


def test_each_thing_once_in_its_conversation() -> None:
    seen = judge(
        check("each", lambda t: [Found("x", about=t.number)]), check("same", lambda t: [Found("x")])
    )
    turns = [turn(1), turn(2), turn(2), turn(3, conversation=2)]
    assert codes(seen, *turns) == [["each", "same"], ["each"], [], ["each", "same"]]


def test_twice_in_one_turn_is_once_too() -> None:
    assert codes(judge(check("a", lambda _: [Found("x"), Found("y")])), turn()) == [["a"]]


def test_once_more_where_the_severity_rises() -> None:
    order = [Severity.WARNING, Severity.INFO, Severity.ERROR, Severity.ERROR]
    rising = judge(check("a", lambda t: [Found("x", severity=order[t.number])]))
    said = [[f.severity for f in rising.look(turn(number))] for number in range(4)]
    assert said == [[Severity.WARNING], [], [Severity.ERROR], []]


@pytest.mark.parametrize(
    ("found", "rules", "expected"),
    [
        ({}, {}, (Severity.WARNING, Party.API, "do this")),
        (
            {"severity": Severity.ERROR, "party": Party.TOOL, "remedy": "do that"},
            {},
            (Severity.ERROR, Party.TOOL, "do that"),
        ),
        (
            {"severity": Severity.ERROR},
            {"severity": {"one": Severity.INFO, "other": Severity.ERROR}},
            (Severity.INFO, Party.API, "do this"),
        ),
    ],
)
def test_the_rules_go_before_what_was_found_and_that_before_the_check(
    found: dict[str, Any],
    rules: dict[str, Any],
    expected: tuple[Severity, Party, str],
) -> None:
    (one,) = judge(always(**found), **rules).look(turn())
    assert (one.severity, one.party, one.remedy) == expected


def test_with_a_severity_of_the_rules_nothing_rises() -> None:
    order = [Severity.INFO, Severity.ERROR]
    looked = check("a", lambda t: [Found("x", severity=order[t.number])])
    fixed = judge(looked, severity={"a": Severity.WARNING})
    assert codes(fixed, turn(0), turn(1)) == [["a"], []]


def test_a_check_that_is_off_does_not_run() -> None:
    def fails(_: Turn) -> Iterable[Found]:
        raise AssertionError

    off = judge(check("off", fails), always("on"), off=frozenset({"off"}))
    assert codes(off, turn()) == [["on"]]
    assert off.faults == {}


def test_a_check_without_what_it_needs_does_not_run() -> None:
    needs = Part.HISTORY | Part.TIMES
    looks = judge(check("times", lambda _: [Found("x")], needs), always("history"))
    assert codes(looks, turn(), turn(2, 2, needs)) == [["history"], ["times", "history"]]


def test_a_check_that_fails_costs_no_other() -> None:
    def fails(one: Turn) -> Iterable[Found]:
        yield Found("before it failed", about=one.number)
        raise KeyError("odd evidence")

    looks = judge(check("bad", fails), always("good"))
    assert codes(looks, turn(1), turn(2)) == [["bad", "good"], ["bad"]]
    assert list(looks.faults) == ["bad"]
    assert "odd evidence" in looks.faults["bad"]


def test_checks_see_the_request_taken_in_and_the_reply_not() -> None:
    seen: list[tuple[int, bool]] = []

    def looks_on(one: Turn) -> Iterable[Found]:
        seen.append((one.before.exchanges, one.before.last is None))
        return ()

    looks = judge(check("a", looks_on))
    for number in (1, 2):
        message = Message("user", (), (), f"{number}")
        request = Request("kimi-k3", False, None, (message,))
        looks.look(replace(turn(number), sent=Sent(request, 0, pair([message]))))
    assert seen == [(1, True), (2, False)]


def test_the_conversation_that_was_quiet_the_longest_is_forgotten() -> None:
    looks = judge(always())
    first = [codes(looks, turn(n, conversation=n)) for n in range(1, 513)]
    assert first == [[["one"]]] * 512
    assert codes(looks, turn(1, 1), turn(600, 600), turn(1, 1), turn(2, 2)) == [
        [],
        ["one"],
        [],
        ["one"],
    ]


def test_a_finding_says_where_it_was_found() -> None:
    evidence = Evidence(message=3, ids=("a", None), excerpt="so", facts={"tool": "pwd"})
    (one,) = judge(always(evidence=evidence)).look(turn(7, 2))
    assert line(one) == {
        "v": 1,
        "code": "one",
        "severity": "warning",
        "party": "api",
        "message": "saw it",
        "remedy": "do this",
        "evidence": {
            "exchange": 7,
            "message": 3,
            "ids": ["a", None],
            "excerpt": "so",
            "tool": "pwd",
        },
        "session": "s",
        "flow": "flow-7",
        "at": "2025-11-24T16:00:00.000Z",
        "link": "docs/findings.md#one",
    }
