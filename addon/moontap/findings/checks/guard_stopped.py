"""The guard answered a request in place of the API."""

from collections.abc import Iterator, Mapping
from typing import Any

from moontap.findings.check import Check
from moontap.findings.turn import Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity
from moontap.report.text import short

_FACTS = ("tools", "count", "limit", "used", "allowed", "first_exchange", "last_exchange")


def look(turn: Turn) -> Iterator[Found]:
    """Once for each time that an agent is stopped; its further attempts are the same."""
    stopped = turn.stopped
    if stopped is None:
        return
    facts = stopped.facts
    lost = bool(turn.streak and any(step.result is None for step in turn.streak.cycle))
    is_limit = "used" in facts
    yield Found(
        _session(facts) if is_limit else _loop(facts, lost),
        about=(stopped.code, facts.get("first_exchange"), str(facts.get("limit"))),
        evidence=Evidence(
            facts={"reason": stopped.code, **{k: facts[k] for k in _FACTS if k in facts}}
        ),
        party=Party.CLIENT if lost or is_limit else Party.API,
        remedy=_RAISE if is_limit else None,
    )


def _loop(facts: Mapping[str, Any], lost: bool) -> str:
    tools = facts.get("tools")
    names = [str(tool) for tool in tools if tool] if isinstance(tools, list) else []
    said = short(" then ".join(names), 120) or "a tool"
    came = "without a result" if lost else "with the same result"
    return (
        f"moontap stopped the agent: {said} was called {_number(facts, 'count')} times in a row "
        f"with the same arguments and {came} (the limit is {_number(facts, 'limit')})."
    )


def _session(facts: Mapping[str, Any]) -> str:
    return (
        f"moontap stopped the session: it has used {_number(facts, 'used')} "
        f"{short(str(facts.get('limit')), 20)}, and its limit is {_number(facts, 'allowed')}."
    )


def _number(facts: Mapping[str, Any], name: str) -> str:
    value = facts.get(name)
    return f"{value:g}" if isinstance(value, int | float) else "too many"


_RAISE = (
    "Look at what used it up; where that was right, raise the limit under guard.session in the "
    "rules file."
)

CHECK = Check(
    code="guard-stopped",
    needs=Part.HISTORY | Part.TURNS,
    severity=Severity.WARNING,
    party=Party.API,
    title="moontap stopped the agent",
    explained="""\
`moontap_guard=block` was on, and the same calls had been made to no avail as often as the rules
allow, or the session had used up a limit. moontap answered the request with an error; the API has
not seen it, and the agent most likely ended there. So the task is not done.

[`no-progress`](#no-progress) says what went round, [The guard](guard.md) what lifts the stop. It is
said once for each stop, not for the requests that the agent sent in vain after it.""",
    example="""\
HTTP/1.1 423 Locked

{"type": "error", "error": {"code": "blocked_no_progress", "message": "blocked_no_progress: moontap
stopped this agent: Bash was called 12 times in a row with the same arguments, …", …}}""",
    remedy="See why it got nowhere; then tell the agent something new, or begin the task anew.",
    look=look,
)
