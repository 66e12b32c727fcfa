"""What the recorder tells, as facts: an exchange, a line of the pair log, a finding.

What was recorded in, small plain data out. Nothing of it holds a body, a history, or more of an
argument or result than `_LONG` characters.
"""

from functools import cache
from typing import Any

from mitmproxy import flow as flows
from mitmproxy import http

from moontap import canonical
from moontap.capture import metadata
from moontap.capture.pairlog import Line, Logged, ended
from moontap.findings.refusals import error_of
from moontap.findings.registry import all_checks
from moontap.findings.turn import CLIENT_LEFT, Got
from moontap.findings.types import Finding, Part
from moontap.looking.facts import CallFact, Facts, FindingFact
from moontap.moments import rfc3339
from moontap.report.text import short
from moontap.wire.types import Choice, Reply

_LONG = 200


def facts_of(logged: Logged, number: int) -> Facts:
    """An exchange that has ended."""
    exchange, flow = logged.exchange, logged.exchange.flow
    facts = Facts(
        number=number,
        conversation=logged.placed.number,
        new=logged.placed.new,
        session=logged.session,
        agent=exchange.identity.agent,
        model=exchange.request.model,
        ended_at=rfc3339(ended(flow)),
        calls=[
            CallFact(
                tracked.name,
                tracked.id,
                tracked.origin.upstream_id,
                tracked.duplicate,
                choice=tracked.origin.choice,
                index=tracked.origin.index,
            )
            for tracked in logged.delivered
        ],
        status=flow.response.status_code if flow.response else 0,
        healed=len(flow.metadata.get(metadata.HEALED, ())),
        reminded=metadata.REMINDED in flow.metadata,
        blocked=flow.metadata.get(metadata.BLOCKED),
    )
    learn(facts, exchange.reply)
    end(facts, flow, over=exchange.reply is not None and exchange.reply.complete)
    return facts


def learn(facts: Facts, reply: Reply | None) -> None:
    """How a reply says that it ended."""
    if reply is None:
        return
    facts.stop = reply.choices.get(0, Choice()).stop_reason
    if reply.error is not None:
        facts.error = error_of(Got(reply)).kind or "error"


def end(facts: Facts, flow: http.HTTPFlow, *, over: bool = False) -> None:
    """How an exchange ended, where not by itself. over: the reply's own end had come; what breaks
    off after that is no loss (the OpenAI SDK hangs up at `[DONE]`)."""
    facts.asked = facts.coming = facts.streaming = False
    if over:
        return
    if flow.error is None:
        facts.unfinished = bool(flow.metadata.get(metadata.INCOMPLETE))
        return
    facts.left = flow.error.msg in CLIENT_LEFT
    facts.killed = flow.error.msg == flows.Error.KILLED_MESSAGE
    facts.cut = True


def kept(line: Line) -> dict[str, Any]:
    """A line to keep: the same, with its arguments and result cut short."""
    return {**line, "arguments": _cut(line["arguments"]), "result": _cut(line["result"])}


def answer(facts: Facts, line: Line) -> bool:
    """What became of a call of these; False where it is none of them."""
    # Ids repeat, and where a stream begins anew its places do: the first that still waits.
    waiting = facts.waiting.get((line["id"], line["choice"], line["index"]))
    if not waiting or line.get("called_at") != facts.ended_at:
        return False
    call = waiting.popleft()
    call.answer, call.latency_s, call.line = line["status"], line["latency_s"], line
    return True


def found(finding: Finding) -> FindingFact:
    """What was found, without its evidence."""
    return FindingFact(
        finding.code,
        finding.severity.value,
        finding.message,
        finding.remedy,
        finding.link,
        _is_of_request(finding),
    )


_CAME_BACK = Part.REPLY | Part.EVENTS | Part.ANSWER | Part.TIMES


@cache
def _needs() -> dict[str, Part]:
    return {check.code: check.needs for check in all_checks()}


def _is_of_request(finding: Finding) -> bool:
    """By what its check looks at; of one that looks at both sides by the place in its evidence."""
    needs, evidence = _needs().get(finding.code, Part(0)), finding.evidence
    if needs & _CAME_BACK:
        return False
    if evidence.message is not None:
        return True
    return evidence.choice is None and evidence.index is None and bool(needs)


def _cut(value: Any) -> Any:
    size = len(value if isinstance(value, str) else canonical.encode(value))
    return value if size <= _LONG else short(value, _LONG)
