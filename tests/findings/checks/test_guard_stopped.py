from __future__ import annotations

from typing import Any

import pytest

from moontap.findings.types import Finding
from moontap.guard import refusal
from moontap.guard.types import LIMIT, NO_PROGRESS, Refusal
from moontap.wire.types import Protocol
from tests.findings.rig import (
    Ex,
    answered,
    call,
    called,
    completion,
    found,
    message,
    result,
    said,
    use,
    user,
)

LOOP = {"tool": "pwd", "tools": ["pwd"], "count": 3, "limit": 3, "first_exchange": "flow-1"}
TOKENS = {"limit": "tokens", "used": 1200, "allowed": 1000, "first_exchange": "flow-1"}


def stopped(history: list[Any], code: str, facts: dict[str, Any], *, chat: bool = False) -> Ex:
    """A request that the guard answered, as the tap saves it."""
    protocol = Protocol.OPENAI if chat else Protocol.ANTHROPIC
    body = refusal.body(protocol, Refusal(code, "moontap stopped this agent: …", facts))
    return Ex(history, body, chat=chat, status=refusal.STATUS, metadata={"moontap.blocked": code})


def messages(lost: bool = False) -> tuple[list[Ex], list[Any]]:
    history: list[Any] = [user("go")]
    exchanges = []
    for number in range(3):
        one = use(f"toolu_{number}")
        exchanges.append(Ex(list(history), message(one)))
        if lost:
            history += [said("(no content)"), user("(no content)")]
        else:
            history += [said(one), user(result(one["id"]))]
    return exchanges, history


def chats() -> tuple[list[Ex], list[Any]]:
    history: list[Any] = [user("go")]
    exchanges = []
    for number in range(3):
        one = call(f"call_{number}")
        exchanges.append(Ex(list(history), completion(called(one)), chat=True))
        history += [called(one), answered(one["id"])]
    return exchanges, history


def shown(findings: list[Finding]) -> list[tuple[int, str, str, str]]:
    return [(f.exchange, f.severity.value, f.party.value, f.message) for f in findings]


def then(
    conversation: tuple[list[Ex], list[Any]], code: str, facts: dict[str, Any], **more: bool
) -> list[Ex]:
    exchanges, history = conversation
    return [*exchanges, stopped(history, code, facts, **more)]


CALLED = "moontap stopped the agent: pwd was called 3 times in a row with the same arguments and"
SAME, LOST = "with the same result (the limit is 3).", "without a result (the limit is 3)."
USED = "moontap stopped the session: it has used 1200 tokens, and its limit is 1000."


@pytest.mark.parametrize(
    ("exchanges", "party", "says"),
    [
        (then(messages(), NO_PROGRESS, LOOP), "api", f"{CALLED} {SAME}"),
        (then(chats(), NO_PROGRESS, LOOP, chat=True), "api", f"{CALLED} {SAME}"),
        (then(messages(lost=True), NO_PROGRESS, LOOP), "client", f"{CALLED} {LOST}"),
        (then(messages(), LIMIT, TOKENS), "client", USED),
    ],
)
def test_it_says_what_was_stopped(exchanges: list[Ex], party: str, says: str) -> None:
    """Once, however often the agent tries."""
    findings = found("guard-stopped", *exchanges, exchanges[-1])
    assert shown(findings) == [(4, "warning", party, says)]


def test_the_evidence() -> None:
    exchanges, history = messages()
    (finding,) = found("guard-stopped", *exchanges, stopped(history, NO_PROGRESS, LOOP))
    facts = {key: LOOP[key] for key in ("tools", "count", "limit", "first_exchange")}
    assert finding.evidence.facts == {"reason": NO_PROGRESS, **facts}


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"error":5}', b'{"error":{}}'])
def test_an_answer_that_says_less(body: bytes) -> None:
    """Scrubbed or cut: that it was stopped is certain all the same."""
    exchanges, history = messages()
    last = Ex(history, body, status=423, metadata={"moontap.blocked": NO_PROGRESS})
    ((_, _, _, said_),) = shown(found("guard-stopped", *exchanges, last))
    assert said_.startswith("moontap stopped the agent: a tool was called too many times")


def test_near_misses() -> None:
    exchanges, history = messages()
    locked = {"type": "error", "error": {"type": "locked", "message": "blocked_no_progress: no"}}
    assert found("guard-stopped", *exchanges, Ex(history, locked, status=423)) == []
    reminded = Ex(history, message(use("b")), metadata={"moontap.repeats": 3})
    assert found("guard-stopped", *exchanges, reminded) == []
