from __future__ import annotations

from typing import Any

import pytest

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
from tests.samples import dump

GO = [user("go")]
TWICE = [use("a", c=1), use("a", c=2)]


def block(index: int, id_: str) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": use(id_)}


def begin(id_: str = "msg_1") -> dict[str, Any]:
    return {"type": "message_start", "message": {"id": id_, "content": []}}


def piece(*calls: dict[str, Any], choice: int = 0) -> dict[str, Any]:
    return {"id": "c", "choices": [{"index": choice, "delta": {"tool_calls": list(calls)}}]}


RENAMED = Ex(
    GO,
    message(use("a", c=1), use("a_tabcdefghij", c=2)),
    metadata={"moontap.upstream_body": dump(message(*TWICE))},
)
HISTORY = [*GO, said(*TWICE), user(result("a", "1"), result("a", "2"))]


@pytest.mark.parametrize(
    ("name", "exchange", "severity"),
    [
        ("Messages, whole", Ex(GO, message(*TWICE)), "error"),
        ("Messages, streamed", Ex(GO, stream(begin(), block(0, "a"), block(1, "a"))), "error"),
        ("Chat, whole", Ex(GO, completion(called(call("a"), call("a"))), chat=True), "error"),
        (
            "Chat, streamed",
            Ex(GO, chunks(piece({"index": 0, **call("a")}, {"index": 1, **call("a")})), chat=True),
            "error",
        ),
        ("the tap has renamed the second", RENAMED, "info"),
        ("in a history", Ex(HISTORY, message(text("ok"))), "error"),
        (
            "in a history that the tap made unique",
            Ex(HISTORY, message(text("ok")), metadata={"moontap.healed": [[0, 0, b""]]}),
            "info",
        ),
    ],
)
def test_two_calls_under_one_id(name: str, exchange: Ex, severity: str) -> None:
    (one,) = found("id-reused-in-response", exchange)
    assert (one.severity, one.evidence.facts["count"]) == (severity, 2)


def test_what_the_client_says_again_is_not_found_again() -> None:
    first, second = Ex(GO, message(*TWICE)), Ex(HISTORY, message(*TWICE))
    assert [f.exchange for f in found("id-reused-in-response", first, second)] == [1]


@pytest.mark.parametrize(
    ("name", "exchange"),
    [
        ("other ids", Ex(GO, message(use("a"), use("b")))),
        (
            "a stream that began anew",
            Ex(GO, stream(begin(), block(0, "a"), begin(), block(0, "a"))),
        ),
        (
            "two choices",
            Ex(
                GO,
                chunks(
                    piece({"index": 0, **call("a")}), piece({"index": 0, **call("a")}, choice=1)
                ),
                chat=True,
            ),
        ),
        (
            "the id said again in each piece",
            Ex(
                GO,
                chunks(piece({"index": 0, **call("a")}), piece({"index": 0, "id": "a"})),
                chat=True,
            ),
        ),
        ("no ids", Ex(GO, completion(called(call(""), call(None))), chat=True)),
        (
            "in two messages of a history",
            Ex(
                [*GO, called(call("a")), answered("a"), called(call("a")), answered("a")],
                completion(called(content="ok")),
                chat=True,
            ),
        ),
    ],
)
def test_near_misses(name: str, exchange: Ex) -> None:
    assert found("id-reused-in-response", exchange) == []
