"""The error in place of an answer: of the protocol's own form, as its readers read it."""

from __future__ import annotations

import json

import pytest

from moontap.guard import refusal
from moontap.guard.types import NO_PROGRESS, Refusal
from moontap.wire.protocol import ANTHROPIC, OPENAI, Wire
from moontap.wire.types import Protocol

FACTS = {"tool": "Bash\ud83d", "count": 12, "first_exchange": "f-1", "last_exchange": None}
REFUSAL = Refusal(NO_PROGRESS, "moontap stopped this agent: é", FACTS, 12)
BODIES = {protocol: refusal.body(protocol, REFUSAL) for protocol in Protocol}


@pytest.mark.parametrize("wire", [ANTHROPIC, OPENAI], ids=lambda wire: wire.protocol)
def test_it_is_an_error_and_never_a_success(wire: Wire) -> None:
    reply = wire.reader().whole(BODIES[wire.protocol])
    assert (reply.calls, reply.complete) == ([], False)
    assert isinstance(reply.error, dict)
    assert reply.error["type"] == "invalid_request_error"
    assert reply.error["message"] == "blocked_no_progress: moontap stopped this agent: é"
    assert reply.error["blocked_no_progress"] == {**FACTS, "requires_review": True}


def test_the_forms() -> None:
    assert json.loads(BODIES[Protocol.ANTHROPIC])["type"] == "error"
    assert json.loads(BODIES[Protocol.OPENAI])["error"]["param"] is None
    assert 400 <= refusal.STATUS < 500
