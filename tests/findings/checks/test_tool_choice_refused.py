from __future__ import annotations

from typing import Any

import pytest

from moontap.findings.types import Party, Severity
from tests.findings.rig import Ex, completion, found, message, user

CODE = "tool-choice-refused"
GO = [user("go")]
FUNCTION = {"type": "function", "function": {"name": "ls"}}
TOOL = {"type": "tool", "name": "ls"}
ANY = {"type": "any"}
OFF = {"type": "disabled"}
REFUSED = {"message": "tool_choice 'specified' is incompatible with thinking enabled"}


def ex(model: str, choice: Any, *, status: int = 400, error: Any = None, **ask: Any) -> Ex:
    reply = {"error": error or REFUSED}
    chat = choice in ("auto", "none", "required", FUNCTION)
    return Ex(GO, reply, {"model": model, "tool_choice": choice, **ask}, chat=chat, status=status)


@pytest.mark.parametrize(
    ("model", "choice", "says"),
    [
        ("kimi-k3", FUNCTION, "K3 refused"),
        ("kimi-k3", TOOL, "a certain tool"),
        ("k3", TOOL, "a certain tool"),
        ("kimi-k2.6", FUNCTION, "K2.5 or K2.6 refused"),
        ("kimi-k2.6", "required", "some tool to be called"),
        ("kimi-k2.5", ANY, "some tool to be called"),
        ("kimi-k2.7-code", "required", "K2.7 refused"),
        ("moonshotai/kimi-k2.6", TOOL, "a certain tool"),
    ],
)
def test_a_choice_that_was_refused(model: str, choice: Any, says: str) -> None:
    (finding,) = found(CODE, ex(model, choice))
    assert (finding.severity, finding.party) == (Severity.ERROR, Party.CLIENT)
    assert says in finding.message
    assert "github.com" in finding.evidence.facts["source"]


@pytest.mark.parametrize(
    "exchange",
    [
        # Refused for another reason, or no answer known: it would have been refused for this.
        ex("kimi-k3", FUNCTION, error={"message": "no balance"}),
        Ex(GO, None, {"model": "kimi-k3", "tool_choice": TOOL}),
    ],
)
def test_a_choice_that_will_be_refused(exchange: Ex) -> None:
    (finding,) = found(CODE, exchange)
    assert finding.severity is Severity.WARNING
    assert "refuses" in finding.message


@pytest.mark.parametrize(
    "exchange",
    [
        ex("kimi-k3", "required"),
        ex("kimi-k3", ANY),
        ex("kimi-k3", "auto"),
        ex("kimi-k3", {"type": "auto"}),
        ex("kimi-k2.6", "none"),
        ex("kimi-k2.6", FUNCTION, thinking=OFF),
        ex("kimi-k2.5", "required", thinking=OFF),
        ex("kimi-k2-0905-preview", FUNCTION),
        ex("gpt-5", FUNCTION),
        ex("kimi-k3", None),
        # It was taken: the table is behind.
        Ex(GO, message(), {"model": "kimi-k3", "tool_choice": TOOL}),
        Ex(
            GO,
            completion({"role": "assistant", "content": "x"}),
            {"model": "kimi-k2.6", "tool_choice": "required"},
            chat=True,
        ),
    ],
)
def test_near_misses(exchange: Ex) -> None:
    assert found(CODE, exchange) == []


def test_thinking_that_cannot_be_turned_off() -> None:
    (finding,) = found(CODE, ex("kimi-k3", TOOL, thinking=OFF))
    assert "disabled" not in finding.remedy
    (finding,) = found(CODE, ex("kimi-k2.6", TOOL))
    assert "disabled" in finding.remedy
