from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moontap.capture import metadata
from moontap.capture.diagnosis import Diagnosis
from moontap.capture.reader import FlowFile
from moontap.findings.conversation import Conversation
from tests.findings.rig import (
    Ex,
    answered,
    call,
    called,
    chunks,
    completion,
    found,
    message,
    result,
    said,
    stream,
    text,
    use,
    user,
)

FLOWS = Path(__file__).parents[3] / "flows"

FIRST = [user("go"), said(use("a", c=1)), user(result("a"))]
GONE = [said("[Tool use interrupted]"), user("(no content)")]
START = Ex([user("go")], message(use("a", c=1), id_="m1"))


def after(*reply: Any, then: list[Any]) -> list[Ex]:
    """A call and its result, a second reply, and the request that followed it."""
    return [START, Ex(FIRST, message(*reply, id_="m2")), Ex([*FIRST, *then])]


CHAT_FIRST = [user("go"), called(call("a")), answered("a")]


@pytest.mark.parametrize(
    ("name", "exchanges", "expected"),
    [
        (
            "a reused id, all of the reply",
            after(use("a", c=2), then=GONE),
            [("a", 2, "error", True, True)],
        ),
        (
            "a reused id, the text kept",
            after(text("I look."), use("a", c=2), then=[said("I look."), user("(no content)")]),
            [("a", 2, "error", True, True)],
        ),
        (
            "one of two, no sign of it",
            after(use("a", c=2), use("b"), then=[said(use("b")), user(result("b"))]),
            [("a", 2, "error", True, False)],
        ),
        (
            "both of two",
            after(use("a", c=2), use("a", c=3), then=GONE),
            [("a", 2, "error", True, True)] * 2,
        ),
        (
            "an id of its own, text kept",
            after(text("I look."), use("b"), then=[said("I look."), user("well?")]),
            [("b", 2, "warning", False, False)],
        ),
        (
            "an id of its own, (no content)",
            after(use("b"), then=GONE),
            [("b", 2, "error", False, True)],
        ),
        (
            "the whole reply left out",
            after(use("b"), then=[user("no, this")]),
            [("b", 2, "info", False, False)],
        ),
        (
            "Chat",
            [
                Ex([user("go")], completion(called(call("a"))), chat=True),
                Ex(CHAT_FIRST, completion(called(call("a", arguments='{"c":2}'))), chat=True),
                Ex([*CHAT_FIRST, called(content="(no content)"), user("(no content)")], chat=True),
            ],
            [("a", 2, "error", True, True)],
        ),
        (
            "Chat, by an SDK that hung up once it had the end",
            [
                Ex([user("go")], completion(called(call("a"))), chat=True),
                Ex(
                    CHAT_FIRST,
                    chunks(
                        {"choices": [{"delta": {"tool_calls": [{"index": 0, **call("a")}]}}]},
                        {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
                    ),
                    chat=True,
                    metadata={metadata.INCOMPLETE: True},
                    error="Client disconnected.",
                ),
                Ex([*CHAT_FIRST, called(content="(no content)"), user("(no content)")], chat=True),
            ],
            [("a", 2, "error", True, True)],
        ),
    ],
)
def test_calls_that_do_not_come_back(
    name: str, exchanges: list[Ex], expected: list[tuple[str, int, str, bool, bool]]
) -> None:
    assert [
        (
            f.evidence.ids[0],
            f.evidence.facts["delivered_exchange"],
            f.severity.value,
            f.evidence.facts["reused_id"],
            f.evidence.facts["sign"],
        )
        for f in found("pair-dropped-by-client", *exchanges)
    ] == expected


def _cut() -> bytes:
    block = {"type": "content_block_start", "index": 0, "content_block": use("b")}
    return stream({"type": "message_start", "message": {"id": "m2", "content": []}}, block)


def _choices() -> bytes:
    def choice(number: int) -> dict[str, Any]:
        delta = {"tool_calls": [{"index": 0, **call("a")}]}
        return {"id": "c", "choices": [{"index": number, "delta": delta, "finish_reason": "stop"}]}

    return chunks(choice(0), choice(1))


@pytest.mark.parametrize(
    ("name", "exchanges"),
    [
        ("answered", after(use("b"), then=[said(use("b")), user(result("b"))])),
        ("a reused id, kept", after(use("a"), then=[said(use("a")), user(result("a"))])),
        ("no result", after(use("b"), then=[said(use("b")), user("no"), said("ok"), user("x")])),
        ("sent again", [START, Ex(FIRST, message(use("b"))), Ex(FIRST, message(use("c")))]),
        ("a reply that broke off", [START, Ex(FIRST, _cut()), Ex([*FIRST, said("hm"), user("x")])]),
        (
            "a call that the limit of tokens cut",
            [
                Ex(
                    [user("go")],
                    completion(called(call("a", "pwd", '{"c'), content="I look."), "length"),
                    chat=True,
                ),
                Ex([user("go"), said("I look."), user("go on")], chat=True),
            ],
        ),
        (
            "the other choice",
            [Ex([user("go")], _choices(), chat=True), Ex(CHAT_FIRST, chat=True)],
        ),
        ("compacted", [*after(use("b"), then=[])[:2], Ex([user("summary")])]),
        ("the run ends", [START]),
    ],
)
def test_near_misses(name: str, exchanges: list[Ex]) -> None:
    assert found("pair-dropped-by-client", *exchanges) == []


def test_it_says_how_many_are_lost_and_how_many_will_be() -> None:
    history, exchanges = list(FIRST), [START]
    for n in range(2, 5):
        exchanges.append(Ex(list(history), message(use("a", c=n), use("b", c=n), id_=f"m{n}")))
        kept = [said(use("b", c=2)), user(result("b"))]
        history += kept if n == 2 else GONE
    exchanges.append(Ex(history, message(text("done"))))
    facts = [f.evidence.facts for f in found("pair-dropped-by-client", *exchanges)]
    assert [(f["lost"], f["repaired"], f["predicted_drops"]) for f in facts] == [
        (1, 1, 2),
        (3, 2, 2),
        (3, 2, 2),
        (5, 3, 0),
        (5, 3, 0),
    ]


def test_the_real_claude_code_drops_what_is_predicted() -> None:
    diagnosis = Diagnosis()
    before = Conversation()
    seen = []
    for looked in diagnosis.flows(FlowFile(FLOWS / "claude-code-loses-pairs.flow")):
        assert looked.turn
        before = looked.turn.before
        seen.append((before.predicted, before.lost, before.repaired))
    # Its own log has a line of repair for each of the last six requests.
    counts = [(0, 0), (0, 0), (1, 1), (3, 2), (5, 3), (7, 4), (9, 5), (11, 6)]
    assert seen == [(lost, lost, repaired) for lost, repaired in counts]
    assert before.due == 2
