"""What is known of flows, also of those that nobody has recorded.

mitmproxy flows in, `Facts` out: those of the board, else made of copies of the flows, as
`moontap explain` would. Bounded: it runs where the traffic does.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mitmproxy import http

from moontap.capture.diagnosis import Diagnosis, Looked
from moontap.capture.pairlog import Line, ended
from moontap.capture.recorder import copy_to_save
from moontap.looking import heard, reading
from moontap.looking.board import Board
from moontap.looking.facts import CallFact, Facts
from moontap.looking.tables import waiting
from moontap.redact.flow import Redactor
from moontap.rules import Rules

MOST = 400
"""Flows that are read because nobody has recorded them."""

_PATIENCE = 1.5  # seconds that reading may take before it stops
_MOST_WAITING = 40  # flows whose arguments are looked up, while the results are to come
_LONGEST = 4 * 1024 * 1024  # bytes of a flow that is read for those


@dataclass(slots=True)
class Known:
    """of: by flow id. unread: flows that were too many to read."""

    of: dict[str, Facts] = field(default_factory=dict)
    unread: int = 0


def known(
    board: Board, rules: Rules, chosen: Sequence[http.HTTPFlow], all_: Sequence[http.HTTPFlow]
) -> Known:
    """What is known of the chosen flows. all_: the flows among which the other half of a pair may
    stand."""
    found, strange = Known(), list[http.HTTPFlow]()
    for flow in chosen:
        facts = board.facts(flow)
        if facts is not None:
            found.of[flow.id] = facts
        elif reading.wire_of(flow) is not None:
            strange.append(flow)
    if strange:
        around = [flow for flow in all_ if reading.wire_of(flow) and board.facts(flow) is None]
        made = read(_around(strange, around), rules)
        for flow in strange:
            if (facts := made.get(flow.id)) is not None:
                found.of[flow.id] = facts
            else:
                found.unread += 1
    looked = 0
    for flow in chosen:
        facts = found.of.get(flow.id)
        if facts and looked < _MOST_WAITING and any(call.line is None for call in facts.calls):
            looked += 1
            if body_size(flow) <= _LONGEST:
                found.of[flow.id] = _asked(flow, facts, rules)
    return found


def _around(
    chosen: Sequence[http.HTTPFlow], all_: Sequence[http.HTTPFlow]
) -> Sequence[http.HTTPFlow]:
    """At most `MOST` flows in their order: the chosen and as many before as after them."""
    ordered = sorted(all_, key=lambda one: ended(one) or 0)
    wanted = {one.id for one in chosen}
    places = [at for at, one in enumerate(ordered) if one.id in wanted]
    if len(ordered) <= MOST or not places:
        return ordered
    first, last = places[0], places[-1] + 1
    more = max(0, MOST - (last - first))
    start = max(0, min(first - more // 2, len(ordered) - MOST))
    return ordered[start : start + MOST]


def read(flows: Sequence[http.HTTPFlow], rules: Rules) -> dict[str, Facts]:
    """Facts of flows by their id, from the flows alone; those read in time. The flows stay."""
    diagnosis, made = Diagnosis(rules), dict[str, Facts]()
    lines = list[Line]()
    deadline = time.monotonic() + _PATIENCE
    for flow in sorted(flows, key=lambda one: ended(one) or 0)[:MOST]:
        if time.monotonic() > deadline:
            break
        looked = diagnosis.flow(copy_to_save(flow))
        made[flow.id] = _facts(looked)
        lines += looked.lines
    lines += diagnosis.close()
    for line in lines:
        facts = made.get(line["call_flow"] or line["result_flow"])
        if facts is None:
            continue
        if line["status"] == "orphan":
            facts.orphans.append(line)
        elif line["call_flow"]:  # else of a history: the reply that called is not among these
            heard.answer(facts, line)
    return made


def _facts(looked: Looked) -> Facts:
    if looked.logged is None:
        return Facts(number=looked.number)
    facts = heard.facts_of(looked.logged, looked.number)
    facts.findings += map(heard.found, looked.findings)
    return facts


def _asked(flow: http.HTTPFlow, facts: Facts, rules: Rules) -> Facts:
    """The same with the arguments of calls that have no line yet: they stand in the flow."""
    try:
        copy = copy_to_save(flow)
        Redactor(rules).redact(copy)
        calls = reading.reply_of(copy).reply.calls
    except Exception:  # whatever it holds, its calls are shown without
        return facts
    arguments = {call.id: call.arguments for call in calls}
    return replace(facts, calls=[_with(call, arguments.get(call.id)) for call in list(facts.calls)])


def _with(call: CallFact, arguments: str | None) -> CallFact:
    if call.line is not None or arguments is None:
        return call
    return replace(call, line={**waiting(call), "arguments": arguments})


def body_size(flow: http.HTTPFlow) -> int:
    """Bytes of both bodies, as they came."""
    bodies = (flow.request.raw_content, flow.response.raw_content if flow.response else None)
    return sum(len(body or b"") for body in bodies)
