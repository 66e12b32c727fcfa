from __future__ import annotations

import json
from typing import Any

import pytest

from moontap.bundle.rounds import rounds, verdict
from moontap.capture.diagnosis import Diagnosis
from tests.findings.rig import Ex, completion, flows, message, result, said, text, use, user
from tests.report.story.telling import finding

GO = user("go")
AGAIN = [GO, said(use("pwd_0")), user(result("pwd_0"))]


@pytest.mark.parametrize(
    ("exchanges", "shows"),
    [
        (
            [Ex([GO], message(use("pwd_0"))), Ex(AGAIN, message(use("pwd_0")))],
            "reused: pwd_0 came in round 1 and again in round 2, while its first call stands in "
            "the history",
        ),
        (
            [
                Ex([GO], message(use("pwd_0")), request_headers={"x-claude-code-session-id": "s"}),
                Ex(
                    [user("Summary: pwd was called.")],
                    message(use("pwd_0")),
                    request_headers={"x-claude-code-session-id": "s"},
                ),
            ],
            "reused: pwd_0 came in round 1 and again in round 2, when the history no longer showed "
            "its first call",
        ),
        (
            [Ex([GO], message(use("pwd_0"), use("pwd_0")))],
            "reused: pwd_0 names several calls of round 1",
        ),
        (
            [Ex([GO], message(use("pwd_0"))), Ex(AGAIN, message(use("pwd_1")))],
            "no id came twice in these rounds",
        ),
        # Two conversations that nothing connects.
        (
            [Ex([GO], message(use("pwd_0"))), Ex([user("other")], message(use("pwd_0")))],
            "no id came twice in these rounds",
        ),
    ],
)
def test_the_verdict(exchanges: list[Ex], shows: str) -> None:
    assert verdict(rounds(Diagnosis().flows(flows(*exchanges))), None) == [shows]


def rewritten(*ids: str) -> list[Ex]:
    """Rounds whose calls the server named `pwd_0` and the client got under these ids."""
    history: list[Any] = [GO]
    made = []
    for id_ in ids:
        body = json.dumps(message(use("pwd_0"))).encode()
        metadata = {"moontap.upstream_body": body}
        made.append(Ex(list(history), message(use(id_)), metadata=metadata))
        history += [said(use(id_)), user(result(id_))]
    return made


@pytest.mark.parametrize(
    ("code", "shows"),
    [
        (None, ["no id came twice for the client"]),
        ("no-progress", ["no-progress: It is about no-progress."]),
        (
            "id-reused",
            [
                "reused: pwd_0 came in round 1 and again in round 2, while its first call stands "
                "in the history; moontap made it unique for the client"
            ],
        ),
    ],
)
def test_what_the_client_never_saw_is_no_headline(code: str | None, shows: list[str]) -> None:
    seen = rounds(Diagnosis().flows(flows(*rewritten("pwd_0_a", "pwd_0_b"))))
    assert verdict(seen, finding(code) if code else None) == shows


def test_a_stop_is_shown() -> None:
    """It was "no tool call (no reply)"."""
    stop = Ex(AGAIN, {"error": {}}, status=423, metadata={"moontap.blocked": "blocked_limit"})
    seen = rounds(Diagnosis().flows(flows(Ex([GO], message(use("pwd_0"))), stop)))
    assert verdict(seen, None) == ["stopped: moontap stopped it in round 2 (blocked_limit)"]
    assert seen[1].stopped == "blocked_limit"


@pytest.mark.parametrize(
    ("exchange", "ending"),
    [
        (Ex([GO], message(text("hi"))), "end_turn"),
        (Ex([GO], completion({"role": "assistant", "content": "hi"}), chat=True), "stop"),
        (Ex([GO], {"error": {"message": "no"}}, status=400), "status 400"),
        (Ex([GO], b"data: {}\n\n", error="connection lost"), "broke off: connection lost"),
        (Ex([GO]), "no reply"),
    ],
)
def test_how_a_round_ended(exchange: Ex, ending: str) -> None:
    (one,) = rounds(Diagnosis().flows(flows(exchange)))
    assert (one.ending, one.calls) == (ending, ())


def test_ids_are_those_of_the_server() -> None:
    sent: dict[str, Any] = {"moontap.upstream_body": b""}
    reply = message(use("pwd_0_abc"), id_="msg_7")
    body = str(message(use("pwd_0"), id_="msg_7")).replace("'", '"').encode()
    sent["moontap.upstream_body"] = body
    one = Ex([GO], reply, metadata=sent, headers={"msh-request-id": "r-1"})
    (shown,) = rounds(Diagnosis().flows(flows(one)))
    assert [(call.upstream_id, call.id) for call in shown.calls] == [("pwd_0", "pwd_0_abc")]
    assert (shown.message_id, shown.request_id, shown.status) == ("msg_7", "r-1", 200)
