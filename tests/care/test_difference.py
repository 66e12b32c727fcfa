"""Where two captures part: alignment, counterparts, kinds of difference."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest

from moontap import canonical
from moontap.care.difference import Call, Calls, Conversation, Kind, compare, values


def line(command: Any, result: Any = "ok", tool: str = "Bash", **more: Any) -> dict[str, Any]:
    """A log line, as far as it is compared."""
    made = {
        "session": "s-1",
        "agent": None,
        "tool": tool,
        "status": "ok",
        "id": "Bash_0",
        "upstream_id": "Bash_0",
        "choice": 0,
        "index": 0,
        "arguments": command,
        "result": result,
        "arguments_sha256": canonical.sha256(command),
        "result_sha256": None if result is None else canonical.sha256(result),
    }
    return made | more


def conversation(
    *lines: dict[str, Any] | str, session: str = "s-1", agent: str | None = None
) -> Conversation:
    made = [line(one) if isinstance(one, str) else one for one in lines]
    return Conversation(
        session, agent, tuple(Call(number, one) for number, one in enumerate(made, 1))
    )


def found(
    a: Sequence[Any], b: Sequence[Any], ids: bool = False
) -> list[tuple[Kind, int | None, int | None]]:
    """The kinds of difference, with the calls' numbers."""
    (one,) = compare([conversation(*a)], [conversation(*b)], ids=ids)
    return [
        (each.kind, each.a.number if each.a else None, each.b.number if each.b else None)
        for each in one.differences
    ]


READ = line("x", tool="Read")
LOST = line("pwd", None, status="unanswered")


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (["pwd", "ls"], ["pwd", "ls"], []),
        ([], [], []),
        (["pwd"], ["pwd", "ls"], [(Kind.ONLY_B, None, 2)]),
        (["pwd", "ls"], ["ls"], [(Kind.ONLY_A, 1, None)]),
        (["pwd", "ls"], ["pwd", "id"], [(Kind.ARGUMENTS, 2, 2)]),
        (["pwd", "ls"], ["pwd", READ], [(Kind.ONLY_A, 2, None), (Kind.ONLY_B, None, 2)]),
        (["a", READ, "c"], ["a", "b", "c"], [(Kind.ONLY_A, 2, None), (Kind.ONLY_B, None, 2)]),
        # A result of other arguments is another one anyhow.
        ([line("a", "1")], [line("b", "2")], [(Kind.ARGUMENTS, 1, 1)]),
        # What came in between does not shift the rest.
        (["a", "b", "c"], ["a", READ, "b", "c"], [(Kind.ONLY_B, None, 2)]),
        (["a", "x", "c"], ["a", READ, "y", "c"], [(Kind.ONLY_B, None, 2), (Kind.ARGUMENTS, 2, 3)]),
        (["pwd"], [line("pwd", "/w")], [(Kind.RESULT, 1, 1)]),
        # That there is no result is said by the status.
        (["pwd"], [LOST], [(Kind.STATUS, 1, 1)]),
        (["pwd"], [line("pwd", "no", status="error")], [(Kind.STATUS, 1, 1), (Kind.RESULT, 1, 1)]),
        (["pwd"], [line("pwd", id="Bash_0_t1")], []),
        ([line(1)], [line(1.0)], [(Kind.ARGUMENTS, 1, 1)]),
    ],
)
def test_kinds_of_difference(
    a: list[Any], b: list[Any], expected: list[tuple[Kind, int | None, int | None]]
) -> None:
    assert found(a, b) == expected
    turned = {Kind.ONLY_A: Kind.ONLY_B, Kind.ONLY_B: Kind.ONLY_A}
    mirrored = sorted((turned.get(kind, kind), y or 0, x or 0) for kind, x, y in expected)
    assert sorted((kind, x or 0, y or 0) for kind, x, y in found(b, a)) == mirrored


def test_ids_count_only_where_asked_for() -> None:
    other: list[Any] = [line("pwd", id="Bash_0_t1"), "ls"]
    (one,) = compare([conversation("pwd", "ls")], [conversation(*other)])
    assert (one.differences, one.same, one.other_ids) == ((), 2, 1)
    assert found(["pwd", "ls"], other, ids=True) == [(Kind.ID, 1, 1)]


@pytest.mark.parametrize(
    ("a", "b", "pairs"),
    [
        # By name, whatever they hold.
        (
            [("s-1", None, "x"), ("s-2", None, "y")],
            [("s-2", None, "x"), ("s-1", None, "y")],
            [("s-1", "s-1"), ("s-2", "s-2")],
        ),
        # By what they have in common, where names change from run to run.
        (
            [("s-1", None, "ab"), ("s-2", None, "xy")],
            [("t-1", None, "xz"), ("t-2", None, "ab")],
            [("s-1", "t-2"), ("s-2", "t-1")],
        ),
        # By their order, where that says nothing.
        (
            [("s-1", None, "a"), ("s-2", None, "b")],
            [("t-1", None, "c"), ("t-2", None, "d")],
            [("s-1", "t-1"), ("s-2", "t-2")],
        ),
        ([("s-1", None, "a")], [], [("s-1", None)]),
        ([], [("t-1", None, "a")], [(None, "t-1")]),
        # A sub-agent is no counterpart of a main agent.
        (
            [("s-1", None, "a"), ("s-1", "x", "b")],
            [("t-1", "y", "a"), ("t-2", None, "z")],
            [("s-1", "t-2"), ("s-1", "t-1")],
        ),
        # The best first: the second of A is the one that has them all in common.
        (
            [("s-1", None, "q"), ("s-2", None, "abc")],
            [("t-1", None, "abc")],
            [("s-1", None), ("s-2", "t-1")],
        ),
    ],
)
def test_counterparts(
    a: list[tuple[str, str | None, str]],
    b: list[tuple[str, str | None, str]],
    pairs: list[tuple[str | None, str | None]],
) -> None:
    made = [
        [conversation(*calls, session=name, agent=agent) for name, agent, calls in side]
        for side in (a, b)
    ]
    compared = compare(made[0], made[1])
    assert [(x.a and x.a.session, x.b and x.b.session) for x in compared] == pairs


def test_a_conversation_without_counterpart_is_all_difference() -> None:
    first, second = compare(
        [conversation("a", session="s")],
        [conversation("a", session="t"), conversation("b", "c", session="u")],
    )
    assert first.differences == ()
    assert [each.kind for each in second.differences] == [Kind.ONLY_B] * 2


def test_calls_are_put_as_the_model_made_them() -> None:
    calls = Calls()
    # Certain in the order of their results; and one of an earlier reply comes last, unanswered.
    for place, index, command in ((3, 1, "c"), (3, 0, "b"), (5, 0, "d"), (1, 0, "a")):
        calls.add(line(command, index=index), place)
    calls.add(line("sub", agent="x"), 2)
    calls.add(line("old", choice=None, index=None), 0)
    main, sub = calls.conversations()
    assert [call.line["arguments"] for call in main.calls] == ["old", "a", "b", "c", "d"]
    assert [call.number for call in main.calls] == [1, 2, 3, 4, 5]
    assert (sub.agent, len(sub.calls)) == ("x", 1)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ({"c": "ls"}, {"c": "ls"}, []),
        ({"c": "ls"}, {"c": "pwd"}, [("c", "ls", "pwd")]),
        ({"c": "ls"}, {}, [("c", "ls", ...)]),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3, 4]}}, [("a.b[1]", 2, 3), ("a.b[2]", ..., 4)]),
        ({"a": None}, {}, [("a", None, ...)]),
        (1, True, [("", 1, True)]),
        (1, 1.0, [("", 1, 1.0)]),
        ([1], {"a": 1}, [("", [1], {"a": 1})]),
        (dict.fromkeys("abcdef", 1), dict.fromkeys("abcdef", 2), [(k, 1, 2) for k in "abc"]),
    ],
)
def test_where_values_differ(a: Any, b: Any, expected: list[tuple[str, Any, Any]]) -> None:
    assert values(a, b) == expected


@pytest.mark.parametrize("count", [1_500, 20_000])
def test_an_endless_loop_is_compared_in_time(count: int) -> None:
    loop = ["ls"] * count
    started = time.process_time()
    result = found(["pwd", *loop, "id"], ["date", *loop, "env", *loop])
    assert time.process_time() - started < 5
    assert (Kind.ARGUMENTS, 1, 1) in result
    assert len(result) >= count
