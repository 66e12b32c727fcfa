from __future__ import annotations

from typing import Any

import pytest

from tests.findings.checks.test_stream_cut import BLOCK, CALL, DONE, END, ERROR, REASON, START
from tests.findings.rig import Ex, chunks, completion, found, message, stream, text, user

LIMIT = {"type": "error", "error": {"type": "rate_limit_error", "message": "rate limit reached"}}
BROKEN = {"error": {"message": "worker died", "type": "server_error"}}


@pytest.mark.parametrize(
    ("reply", "chat", "reason", "party"),
    [
        (stream(START, BLOCK, ERROR), False, "overloaded", "api"),
        (stream(START, LIMIT), False, "rate-limit", "client"),
        (chunks(CALL, {"error": {"message": "Overloaded"}}, done=False), True, "overloaded", "api"),
        (chunks(CALL, BROKEN), True, "unknown", "api"),
        (
            {"type": "error", "error": {"type": "api_error", "message": "?"}},
            False,
            "unknown",
            "api",
        ),
        (BROKEN, True, "unknown", "api"),
    ],
)
def test_an_error_after_200(reply: Any, chat: bool, reason: str, party: str) -> None:
    [finding] = found("stream-error", Ex([user("go")], reply, chat=chat))
    assert finding.evidence.facts["reason"] == reason
    assert (finding.severity.value, finding.party.value) == ("warning", party)


@pytest.mark.parametrize(
    ("reply", "chat", "status"),
    [
        (stream(START, BLOCK, REASON, END), False, 200),
        (chunks(CALL, DONE), True, 200),
        (message(text('{"type":"error"}')), False, 200),
        (completion({"role": "assistant", "content": '"error":{"message":"x"}'}), True, 200),
        (BROKEN, True, 500),  # api-refused
    ],
)
def test_no_error(reply: Any, chat: bool, status: int) -> None:
    assert found("stream-error", Ex([user("go")], reply, chat=chat, status=status)) == []


def test_the_same_error_is_said_once() -> None:
    one, other = (Ex([user("go")], stream(START, event)) for event in (ERROR, LIMIT))
    assert [f.exchange for f in found("stream-error", one, one, other)] == [1, 3]
    [finding, _] = found("stream-error", one, other)
    assert 'in the middle of the stream, "Overloaded": the server has' in finding.message
