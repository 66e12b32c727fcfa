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
    text,
    use,
    user,
)

GO = [user("go")]
BARE = {"type": "tool_use", "name": "pwd", "input": {}}


def piece(**entry: Any) -> dict[str, Any]:
    return {"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, **entry}]}}]}


def history(call_id: Any, result_id: Any) -> list[dict[str, Any]]:
    return [*GO, said(use(call_id)), user(result(result_id))]


S = {"metadata": {"user_id": "session-1"}}
SUMMED = [user("so far"), *history("", "")[1:]]


@pytest.mark.parametrize(
    ("name", "exchanges", "expected"),
    [
        *(
            (repr(id_), [Ex(GO, message(use(id_)))], [("api", id_)])
            for id_ in ("", None, "undefined", "null", "None", " ")
        ),
        ("no member id", [Ex(GO, message(BARE))], [("api", None)]),
        ("Chat, whole", [Ex(GO, completion(called(call(None))), chat=True)], [("api", None)]),
        ("Chat, streamed", [Ex(GO, chunks(piece(**call(None))), chat=True)], [("api", None)]),
        (
            "said again by the client",
            [Ex(GO, message(use(""))), Ex(history("", ""))],
            [("api", "")],
        ),
        (
            "said again after a compaction",
            [Ex(GO, message(use("")), S), Ex(history("", ""), ask=S), Ex(SUMMED, ask=S)],
            [("api", "")],
        ),
        ("a history from before the tap", [Ex(history("", ""))], [("api", "")]),
        (
            "the client lost the ids",
            [Ex(GO, message(use("a"))), Ex(history("", ""))],
            [("client", "")],
        ),
        ("a result that names nothing", [Ex(history("a", "undefined"))], [("client", "undefined")]),
        (
            "a tool message without tool_call_id",
            [Ex([*GO, called(call("a")), {"role": "tool", "content": "ok"}], chat=True)],
            [("client", None)],
        ),
    ],
)
def test_ids_that_name_nothing(
    name: str, exchanges: list[Ex], expected: list[tuple[str, str | None]]
) -> None:
    findings = found("id-empty", *exchanges)
    assert [(f.party, f.evidence.ids[0]) for f in findings] == expected
    assert {f.severity for f in findings} == {"error"}


@pytest.mark.parametrize(
    ("name", "exchange"),
    [
        ("zero is an id", Ex(GO, message(use("0")))),
        ("a word within an id", Ex(GO, message(use("undefined_0")))),
        ("an id that comes late", Ex(GO, chunks(piece(**call(None)), piece(id="a")), chat=True)),
        (
            "only continuations are null",
            Ex(GO, chunks(piece(**call("a")), piece(id=None)), chat=True),
        ),
        ("cut before the id", Ex(GO, chunks(piece(**call(None)), done=False), chat=True)),
        (
            "a result for a call that has one",
            Ex([*GO, called(call("a")), answered("a")], chat=True),
        ),
        ("text", Ex([*GO, said("None"), user("undefined")], message(text("null")))),
    ],
)
def test_near_misses(name: str, exchange: Ex) -> None:
    assert found("id-empty", exchange) == []


def test_once_for_each_way_of_being_empty() -> None:
    replies = [message(use(""), use("")), message(use(None)), message(use(""))]
    exchanges = [Ex([user(f"go {n}")], reply) for n, reply in enumerate(replies)]
    same = [Ex(GO, reply) for reply in replies]
    assert len(found("id-empty", *same)) == 2
    assert len(found("id-empty", *exchanges)) == 3  # three conversations
