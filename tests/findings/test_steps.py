"""Which calls of a turn count, and what starts the count again."""

from __future__ import annotations

from typing import Any

import pytest

from moontap.capture.diagnosis import Diagnosis
from moontap.findings.conversation import Last
from moontap.findings.progress import Step
from moontap.findings.steps import says_nothing, speaks, steps_of
from moontap.rules import ProgressRules, Rules
from moontap.wire.types import Message, Result
from tests.findings.rig import (
    Ex,
    answered,
    call,
    called,
    completion,
    flows,
    message,
    result,
    said,
    stream,
    text,
    use,
    user,
)


@pytest.mark.parametrize(
    ("value", "nothing"),
    [
        ("", True),
        (" \n", True),
        ("(no content)", True),
        ("\n(No Content) ", True),
        ("[no content]", True),
        ("(empty)", True),
        ("no content here", False),
        ("(no content)" + " " * 200, False),
        ("ok", False),
    ],
)
def test_what_says_nothing(value: str, nothing: bool) -> None:
    assert says_nothing(value) is nothing


@pytest.mark.parametrize(
    ("role", "value", "results", "expected"),
    [
        ("user", "go on", (), True),
        ("user", "(no content)", (), False),
        ("user", "", (), False),
        ("user", "<system-reminder>todo</system-reminder>", (), False),
        ("user", "<system-reminder>todo</system-reminder>\nstop", (), True),
        ("user", "<system-reminder>todo</system-reminder>\n(no content)", (), False),
        # What is typed while tools run, Claude Code sends beside their results.
        ("user", "see?", (Result("a", b'""', False, 0),), True),
        ("user", "", (Result("a", b'""', False, 0),), False),
        ("user", "<system-reminder>x</system-reminder>", (Result("a", b'""', False, 0),), False),
        ("assistant", "go on", (), False),
        ("tool", "go on", (), False),
    ],
)
def test_who_speaks(role: str, value: str, results: tuple[Result, ...], expected: bool) -> None:
    assert speaks(Message(role, (), results, value)) is expected


def shown(*exchanges: Ex, rules: Rules | None = None) -> list[str]:
    """The steps of the last exchange, as letters: `+` with a result, `-` without, `.` for new."""
    diagnosis = Diagnosis(rules)
    last: Last | None = None
    groups: list[list[Step]] = []
    for flow in flows(*exchanges):
        turn = diagnosis.flow(flow).turn
        assert turn is not None
        groups = steps_of(turn, last)
        last = turn.before.last
    return [
        "".join(s.tool + ("-" if s.result is None else "+") for s in group) or "."
        for group in groups
    ]


GO = user("go")
BLOCK = {"type": "content_block_start", "index": 0, "content_block": use("c", "c")}


def pairs(*names: str) -> list[Any]:
    calls, results = [use(n, n) for n in names], [result(n, "1") for n in names]
    return [said(*calls), user(*results)]


def run(*names: str) -> list[Ex]:
    """A program's run: a call in each reply."""
    ends = range(len(names))
    replies = [message(use(name, name)) for name in names]
    made = [Ex([GO, *(m for n in names[:at] for m in pairs(n))], replies[at]) for at in ends]
    return [*made, Ex([GO, *(m for n in names for m in pairs(n))], message(text("done")))]


def two_choices() -> dict[str, Any]:
    reply = completion(called(call("a", "a")))
    other = completion(called(call("b", "b")))["choices"][0]
    reply["choices"].append({**other, "index": 1})
    return reply


@pytest.mark.parametrize(
    ("exchanges", "expected"),
    [
        ([Ex([GO])], ["."]),
        ([Ex([GO], message(use("a", "a"))), Ex([GO, *pairs("a")])], ["a+"]),
        ([Ex([GO], message(use("a", "a"), use("b", "b"))), Ex([GO, *pairs("a", "b")])], ["a+b+"]),
        # A history that the tap never saw begin.
        ([Ex([GO, *pairs("a"), *pairs("b")])], [".", "a+", "b+"]),
        ([Ex([GO, *pairs("a"), said("so?"), user("yes"), *pairs("b")])], [".", "a+", ".", "b+"]),
        # Dropped by the client.
        (
            [
                Ex([GO, *pairs("a")], message(text("x"), use("a", "b"))),
                Ex([GO, *pairs("a"), said(text("x")), user("(no content)")]),
            ],
            ["b-"],
        ),
        # Left without a result.
        (
            [Ex([GO], message(use("a", "a"))), Ex([GO, said(use("a", "a")), *pairs("b")])],
            ["a-", "b+"],
        ),
        # Of a reply that broke off.
        (
            [
                Ex([GO, *pairs("a")], stream(BLOCK)),
                Ex([GO, *pairs("a"), said("x"), user("(no content)")]),
            ],
            [],
        ),
        # The same request again.
        ([Ex([GO], message(use("a", "a"))), Ex([GO])], ["a-"]),
        ([Ex([GO], message(use("a", "a"))), Ex([user("other")])], ["."]),
        # Back to where it was before.
        ([Ex([GO, *pairs("a")], message(text("x"))), Ex([GO], message(text("x")))], ["."]),
        # Another run of the same words, as far as the first one and then further.
        ([*run("a"), *run("a")[:1]], ["."]),
        ([*run("a"), *run("a")], ["a+"]),
        ([*run("a", "b"), *run("a", "b")[:2]], ["a+"]),
        ([*run("a", "b"), *run("a", "b", "c")], ["c+"]),
        # Wanted for the data in it.
        (
            [
                Ex([GO, *pairs("a")], message(use("b", "b")), {"tool_choice": {"type": "any"}}),
                Ex([GO, *pairs("a"), said("x"), user("next")]),
            ],
            ["."],
        ),
        # Chat Completions, and of two choices the second one's calls.
        (
            [
                Ex([GO], completion(called(call("a", "a"))), chat=True),
                Ex([GO, called(call("a", "a")), answered("a")], chat=True),
            ],
            ["a+"],
        ),
        (
            [
                Ex([GO], two_choices(), chat=True),
                Ex([GO, {"role": "assistant", "content": "hm"}, user("so?")], chat=True),
            ],
            ["a-", "."],
        ),
    ],
)
def test_the_steps_of_a_turn(exchanges: list[Ex], expected: list[str]) -> None:
    assert shown(*exchanges) == expected


def test_exempt_tools_are_no_steps() -> None:
    rules = Rules(progress=ProgressRules(exempt=frozenset({"a*"})))
    assert shown(Ex([GO, *pairs("ab"), *pairs("b")]), rules=rules) == [".", "b+"]
