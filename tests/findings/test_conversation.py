"""What is remembered of a conversation, as the real path fills it in."""

from __future__ import annotations

from typing import Any

import pytest

from moontap.capture.diagnosis import Diagnosis
from moontap.findings.conversation import Conversation, digest
from tests.findings.rig import (
    Ex,
    answered,
    call,
    called,
    chunks,
    flows,
    message,
    result,
    said,
    text,
    use,
    user,
)

GO = [user("go")]
PAIR = [said(use("a", c=1)), user(result("a"))]
GONE = [said("[Tool use interrupted]"), user("(no content)")]
NAMED: dict[str, Any] = {"metadata": {"user_id": "session-1"}}


def ex(messages: list[Any], *reply: Any, id_: str = "m", **more: Any) -> Ex:
    return Ex(messages, message(*reply, id_=id_) if reply else None, NAMED, **more)


def conversation(*exchanges: Ex) -> Conversation:
    """Of the last exchange, its reply taken in."""
    before = Conversation()
    for looked in Diagnosis().flows(flows(*exchanges)):
        assert looked.turn, looked.unread
        before = looked.turn.before
    return before


START = ex(GO, use("a", c=1))
SECOND = ex([*GO, *PAIR], use("a", c=2))
LOST = ex([*GO, *PAIR, *GONE], use("b"))


@pytest.mark.parametrize(
    ("name", "exchanges", "lost", "predicted", "due", "repaired"),
    [
        ("nothing yet", [START], 0, 0, 0, 0),
        ("a reused id", [START, SECOND], 0, 0, 1, 0),
        ("dropped", [START, SECOND, LOST], 1, 1, 0, 1),
        (
            "still without it two requests later",
            [START, SECOND, LOST, ex([*GO, *PAIR, *GONE, said(use("b")), user(result("b"))])],
            1,
            1,
            0,
            2,
        ),
        ("a retry is no other request", [START, SECOND, LOST, LOST], 1, 1, 0, 1),
        ("a retried reply is due once", [START, SECOND, SECOND], 0, 0, 1, 0),
        ("compacted", [START, SECOND, LOST, ex([user("so far"), *PAIR], text("ok"))], 1, 1, 0, 1),
        (
            "rewound to before it",
            [START, SECOND, LOST, ex([*GO, *PAIR, user("no, this")], text("ok"))],
            1,
            1,
            0,
            1,
        ),
        ("the client keeps both", [START, SECOND, ex([*GO, *PAIR, *PAIR], text("ok"))], 0, 1, 0, 0),
        (
            "the whole reply left out",
            [START, ex([*GO, *PAIR], use("b")), ex([*GO, *PAIR, user("x")])],
            0,
            0,
            0,
            0,
        ),
        (
            "twice in one reply",
            [START, ex([*GO, *PAIR], use("b"), use("b"), use("a"))],
            0,
            0,
            2,
            0,
        ),
    ],
)
def test_pairs_that_a_client_loses(
    name: str, exchanges: list[Ex], lost: int, predicted: int, due: int, repaired: int
) -> None:
    known = conversation(*exchanges)
    assert (known.lost, known.predicted, known.due, known.repaired) == (
        lost,
        predicted,
        due,
        repaired,
    )


def test_of_several_choices_one_is_the_clients() -> None:
    entries = [
        {"index": n, "delta": {"tool_calls": [{"index": 0, **call("a")}]}, "finish_reason": "stop"}
        for n in range(2)
    ]
    reply = chunks(*({"id": "c", "choices": [entry]} for entry in entries))
    first = Ex(GO, reply, chat=True)
    assert conversation(first).due == 0
    then = Ex([*GO, called(call("a")), answered("a")], reply, chat=True)
    known = conversation(first, then)
    assert (known.lost, known.repaired, known.due) == (0, 0, 1)


def test_the_first_use_of_an_id_is_kept() -> None:
    known = conversation(ex([*GO, said(use("h", "Read")), user(result("h"))], use("a")), SECOND)
    assert (known.uses["h"].exchange, known.uses["h"].tool) == (0, "Read")
    known = conversation(START, SECOND)
    assert (known.uses["a"].exchange, known.uses["a"].flow) == (1, "flow-1")
    assert known.uses["a"].arguments == digest('{"c": 1}') != digest('{"c": 2}')


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('{"a":1,"b":2}', b'{ "b": 2, "a": 1 }', True),
        ('{"a":1}', '{"a":2}', False),
        ("{broken", "{broken", True),
        ('{"a":"\ud800"}', '{"a":"\ud800"}', True),
    ],
)
def test_arguments_are_compared_by_what_they_say(one: str, other: str | bytes, same: bool) -> None:
    assert (digest(one) == digest(other)) is same


def test_what_it_holds_does_not_grow_with_the_turns() -> None:
    history: list[Any] = list(GO)
    exchanges = []
    for n in range(40):
        exchanges.append(ex(list(history), use("a" if n % 2 else "b", c=n), id_=f"m{n}"))
        history += [said(use("a" if n % 2 else "b", c=n)), user(result("a" if n % 2 else "b"))]
    known = conversation(*exchanges)
    assert known.exchanges == 40
    assert (len(known.uses), len(known.minted), len(known.replies)) == (2, 8, 16)
    assert list(known.replies) == list(range(49, 80, 2))
    assert all(len(use.arguments) == 16 for use in known.uses.values())


def test_the_reply_before_is_known_by_where_it_stands_in_the_next_request() -> None:
    known = conversation(START, SECOND)
    assert {at: said.calls for at, said in known.replies.items()} == {
        1: (("a", "pwd", b'{"c":1}'),),
        3: (("a", "pwd", b'{"c":2}'),),
    }
    assert known.last
    assert (known.last.exchange, known.last.messages) == (2, 3)


def test_a_refusal_is_no_reply() -> None:
    refusal = Ex(GO, {"type": "error", "error": {"message": "no"}}, NAMED, status=400)
    known = conversation(refusal)
    assert known.replies == {}
    assert known.last
    assert known.last.status == 400
