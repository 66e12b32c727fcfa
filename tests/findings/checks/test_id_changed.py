from __future__ import annotations

from typing import Any

import pytest

from tests.findings.rig import Ex, call, called, chunks, completion, found, message, use, user

GO = [user("go")]


def pieces(*ids: Any, index: int = 0) -> list[dict[str, Any]]:
    first = {"index": index, **call(ids[0], "pwd", "")}
    rest = [{"index": index, "id": id_, "function": {"arguments": "{}"}} for id_ in ids[1:]]
    return [
        {"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [entry]}}]}
        for entry in [first, *rest]
    ]


@pytest.mark.parametrize(
    ("name", "ids", "count"), [("a new one each time", ["a", "b", "c"], 2), ("once", ["a", "b"], 1)]
)
def test_a_call_whose_id_changes(name: str, ids: list[str], count: int) -> None:
    (one,) = found("id-changed", Ex(GO, chunks(*pieces(*ids)), chat=True))
    assert one.evidence.ids == tuple(ids)
    assert one.evidence.facts["count"] == count


def test_once_a_conversation() -> None:
    exchange = Ex(GO, chunks(*pieces("a", "b")), chat=True)
    assert len(found("id-changed", exchange, exchange)) == 1


@pytest.mark.parametrize(
    ("name", "exchange"),
    [
        ("the same again", Ex(GO, chunks(*pieces("a", "a", "a")), chat=True)),
        ("null and empty later", Ex(GO, chunks(*pieces("a", None, "")), chat=True)),
        ("late", Ex(GO, chunks(*pieces(None, "a", "a")), chat=True)),
        ("two calls", Ex(GO, chunks(*pieces("a"), *pieces("b", index=1)), chat=True)),
        ("whole", Ex(GO, completion(called(call("a"), call("b"))), chat=True)),
        ("Messages, where the id stands once", Ex(GO, message(use("a"), use("b")))),
    ],
)
def test_near_misses(name: str, exchange: Ex) -> None:
    assert found("id-changed", exchange) == []
