"""What is known of flows, also of those that nobody has recorded.

mitmproxy flows in, `Facts` out: those of the board, else made of copies of the flows, as
`moontap explain` would. Bounded: it runs where the traffic does.
"""

import time
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace

from mitmproxy import http

from moontap.capture.diagnosis import Diagnosis, Looked
from moontap.capture.pairlog import Line, ended
from moontap.capture.recorder import copy_to_save
from moontap.looking import heard, reading
from moontap.looking.board import Board
from moontap.looking.facts import CallFact, Facts
from moontap.looking.sizes import size_of
from moontap.looking.tables import waiting
from moontap.redact.flow import Redactor
from moontap.rules import Rules

MOST = 400
"""Flows that are read because nobody has recorded them."""

LARGEST = 16_000_000
"""Bytes of a flow, once decoded, from which on it is too large to be read here."""

_AROUND = 16_000_000  # bytes of flows that are read only because they stand near the chosen
_PASSED = 4  # of those that are too large, before no more are looked for
_PATIENCE = 1.5  # seconds after which reading stops
_MOST_WAITING = 40  # flows whose arguments are looked up, while the results are to come
_LOOKED_UP = 4_000_000  # bytes of one of those
_LOOKED_UP_IN_ALL = 16_000_000


@dataclass(slots=True)
class Known:
    """of: of the chosen flows, by flow id. around: of all that were read for them. unread: chosen
    flows that were too many to read; large: that are too large."""

    of: dict[str, Facts] = field(default_factory=dict)
    around: dict[str, Facts] = field(default_factory=dict)
    unread: int = 0
    large: int = 0


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
        elif reading.wire_of(flow) is None:
            continue
        elif size_of(flow, LARGEST) > LARGEST:
            found.large += 1
        else:
            strange.append(flow)
    if strange:
        others = [flow for flow in all_ if reading.wire_of(flow) and board.facts(flow) is None]
        wanted = {flow.id for flow in strange}
        near = _around(wanted, others)
        found.around = read(near, rules, wanted, whole=len(near) == len(others))
        recorded = any(board.facts(flow) is not None for flow in all_)
        numbers = {} if recorded else _numbers(all_)
        for flow in strange:
            if (facts := found.around.get(flow.id)) is not None:
                facts.number = numbers.get(flow.id)
                found.of[flow.id] = facts
            else:
                found.unread += 1
    looked, left = 0, _LOOKED_UP_IN_ALL
    for flow in chosen:
        facts = found.of.get(flow.id)
        if facts and looked < _MOST_WAITING and any(call.line is None for call in facts.calls):
            looked += 1
            size = size_of(flow, _LOOKED_UP)
            if size <= min(_LOOKED_UP, left):
                left -= size
                found.of[flow.id] = _asked(flow, facts, rules)
    return found


def _numbers(flows: Sequence[http.HTTPFlow]) -> dict[str, int]:
    """Which of them each is, from 1 on, in the order in which they ended."""
    return {flow.id: number for number, flow in enumerate(_ordered(flows), 1)}


def _ordered(flows: Sequence[http.HTTPFlow]) -> list[http.HTTPFlow]:
    return sorted(flows, key=lambda one: ended(one) or 0)


def _around(wanted: Set[str], flows: Sequence[http.HTTPFlow]) -> list[http.HTTPFlow]:
    """At most `MOST` flows: the wanted, and of the others those that stand nearest to one. A result
    stands behind its call, so that of two as near it is the later."""
    ordered = _ordered(flows)
    chosen = [flow for flow in ordered if flow.id in wanted][:MOST]
    far = len(ordered)
    before, behind = [far] * far, [far] * far
    for at, flow in enumerate(ordered):
        before[at] = 0 if flow.id in wanted else 1 + (before[at - 1] if at else far)
    for at in range(far - 1, -1, -1):
        wants = ordered[at].id in wanted
        behind[at] = 0 if wants else 1 + (behind[at + 1] if at + 1 < far else far)
    near = sorted(
        (at for at in range(far) if ordered[at].id not in wanted),
        key=lambda at: (min(before[at], behind[at]), before[at] > behind[at]),
    )
    left, passed = _AROUND, 0
    for at in near[: MOST - len(chosen)]:
        size = size_of(ordered[at], left)
        if size <= left:
            left -= size
            chosen.append(ordered[at])
        elif (passed := passed + 1) == _PASSED:
            break
    return chosen


def read(
    flows: Sequence[http.HTTPFlow],
    rules: Rules,
    wanted: Set[str] | None = None,
    *,
    whole: bool = True,
) -> dict[str, Facts]:
    """Facts of flows by their id, from the flows alone; those read in time. The flows stay.

    wanted: ids of those that are asked for, all by default: the others have half of the time.
    whole: they are all that there are: only then a call without a result is said to have none.
    """
    diagnosis, made = Diagnosis(rules), dict[str, Facts]()
    lines = list[Line]()
    begun = time.monotonic()
    for flow in _ordered(flows)[:MOST]:
        asked = wanted is None or flow.id in wanted
        if time.monotonic() - begun > (_PATIENCE if asked else _PATIENCE / 2):
            continue
        looked = diagnosis.flow(copy_to_save(flow))
        made[flow.id] = _facts(looked)
        lines += looked.lines
    if whole and len(made) == len(flows):
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
