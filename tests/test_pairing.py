from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moontap.pairing import Place, pair
from moontap.wire.types import Call, Message, Result


def history(text: str) -> list[Message]:
    """A history in short: `a b` calls, `=a` results, one message a comma; `-` is an id of None."""
    messages = []
    for part in text.split(","):
        ids = [None if word.strip("=") == "-" else word.strip("=") for word in part.split()]
        results = part.lstrip().startswith("=")
        messages.append(
            Message(
                "user" if results else "assistant",
                () if results else tuple(Call(id_, "f", b"{}", n) for n, id_ in enumerate(ids)),
                tuple(Result(id_, b'""', False, n) for n, id_ in enumerate(ids)) if results else (),
                "",
            )
        )
    return messages


@pytest.mark.parametrize(
    ("text", "answers", "orphans"),
    [
        pytest.param("", {}, [], id="empty"),
        pytest.param("a,=a", {(0, 0): (1, 0)}, [], id="one pair"),
        pytest.param("a b,=b =a", {(0, 0): (1, 1), (0, 1): (1, 0)}, [], id="parallel, other order"),
        pytest.param("a,=a,a,=a", {(0, 0): (1, 0), (2, 0): (3, 0)}, [], id="reused"),
        pytest.param("a a,=a =a", {(0, 0): (1, 0), (0, 1): (1, 1)}, [], id="twice in a message"),
        pytest.param("a a,=a", {(0, 0): (1, 0)}, [], id="the first of a message first"),
        pytest.param("a,a,=a", {(1, 0): (2, 0)}, [], id="the latest message first"),
        pytest.param("a,a,=a,=a", {(1, 0): (2, 0), (0, 0): (3, 0)}, [], id="then the one before"),
        pytest.param(
            "a a,a a,=a =a =a",
            {(1, 0): (2, 0), (1, 1): (2, 1), (0, 0): (2, 2)},
            [],
            id="both rules",
        ),
        pytest.param("a,=b", {}, [(1, 0)], id="another id"),
        pytest.param("=a,a", {}, [(0, 0)], id="a result before its call"),
        pytest.param("a,=a =a", {(0, 0): (1, 0)}, [(1, 1)], id="answered twice"),
        pytest.param("a,x,=y,=a", {(0, 0): (3, 0)}, [(2, 0)], id="answered late"),
        pytest.param("- -,=-", {(0, 0): (1, 0)}, [], id="no ids"),
        pytest.param(
            "a b a,=a =b =a =b",
            {(0, 0): (1, 0), (0, 1): (1, 1), (0, 2): (1, 2)},
            [(1, 3)],
            id="mixed",
        ),
    ],
)
def test_pair(text: str, answers: dict[Place, Place], orphans: list[Place]) -> None:
    pairing = pair(history(text))
    assert pairing.answers == answers
    assert pairing.orphans == orphans


def test_a_result_in_the_message_of_its_call_came_before_it() -> None:
    message = Message("user", (Call("a", "f", b"", 1),), (Result("a", b"", False, 0),), "")
    assert pair([message]).orphans == [(0, 0)]
    assert pair([message, message]).answers == {(0, 0): (1, 0)}


def by_the_rule(messages: list[Message]) -> tuple[dict[Place, Place], list[Place]]:
    """The rule word by word, with no regard to cost."""
    answers: dict[Place, Place] = {}
    orphans: list[Place] = []
    for position, message in enumerate(messages):
        for number, result in enumerate(message.results):
            for before in reversed(range(position)):
                calls = enumerate(messages[before].calls)
                free = [n for n, c in calls if c.id == result.id and (before, n) not in answers]
                if free:
                    answers[before, free[0]] = (position, number)
                    break
            else:
                orphans.append((position, number))
    return answers, orphans


_MESSAGES = st.lists(st.sampled_from(["a", "b", "-"]), max_size=4).flatmap(
    lambda ids: st.sampled_from([" ".join(ids), " ".join(f"={id_}" for id_ in ids)])
)


@given(parts=st.lists(_MESSAGES, max_size=10))
@settings(max_examples=300, deadline=None)
def test_any_history_pairs_by_the_rule(parts: list[str]) -> None:
    messages = history(",".join(parts))
    pairing = pair(messages)
    assert (pairing.answers, pairing.orphans) == by_the_rule(messages)
