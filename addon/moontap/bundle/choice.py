"""Which exchanges show a fault best: the few from which the same finding comes out again.

Sources and what a person asked for in, the numbers of exchanges out. A set is believed only after
the findings were made anew from it. It writes nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from moontap.bundle.source import Source
from moontap.capture.diagnosis import Diagnosis
from moontap.care import cut
from moontap.findings.types import Finding, Severity
from moontap.rules import Rules

_MOST_IDS = 4
_FLOWS = frozenset(("flow", "flows", "exchange"))
"""Words in the names of facts that may be flow ids; the guard's go by the word of its answer."""


@dataclass(frozen=True, slots=True)
class Choice:
    """numbers: the exchanges to keep, of one source. finding, pair: what they are kept for; both
    None where that is an exchange as such. among: how many things the asked one stands for."""

    source: Source
    numbers: list[int]
    finding: Finding | None = None
    pair: cut.Pair | None = None
    among: int = 1


def worst(sources: Iterable[Source], code: str | None = None) -> tuple[Source, Finding] | None:
    """The first of the most severe findings: what comes first is nearest to the cause. Of a loop
    its last, which shows how far it got.

    code: only findings of this one, also what is but good to know; else that is nothing to show.
    """
    found = [
        (source, finding)
        for source in sources
        for finding in source.findings
        if (finding.severity is not Severity.INFO if code is None else finding.code == code)
    ]
    if not found:
        return None
    source, finding = max(found, key=lambda one: one[1].severity.rank)
    if finding.code != "no-progress":
        return source, finding
    return source, [one for its, one in found if its is source and _same_loop(one, finding)][-1]


def _same_loop(one: Finding, other: Finding) -> bool:
    return (one.code, one.severity, one.conversation, one.evidence.facts.get("first_flow")) == (
        *(other.code, other.severity, other.conversation),
        other.evidence.facts.get("first_flow"),
    )


def of_finding(source: Source, finding: Finding, rules: Rules) -> Choice:
    """The exchanges for a finding: those that its evidence names, those that delivered the calls
    it is about, and what else is needed to find it again."""
    last = finding.exchange - 1
    core = {last, *_named(source, finding, last)}
    for id_ in _ids(finding):
        core |= _uses(source, id_, finding.session, last)

    tries = 0

    def shows(numbers: Iterable[int]) -> bool:
        nonlocal tries
        tries += 1
        return _is_found(source, sorted(numbers), finding, rules)

    if not shows(core):
        sessions = source.book.seen.sessions
        own = [n for n in range(last) if n not in core and sessions[n] == finding.session]
        # A loop of a whole night shows in its latest turns, too.
        pools = (own[-16:], own[-64:], own)
        pool = next((some for some in pools if shows(core.union(some))), [])
        core.update(cut.reduced(pool, lambda some: shows(core.union(some)), lambda: tries))
    return Choice(source, sorted(core), finding=finding)


def around(sources: Iterable[Source], id_: str, rules: Rules) -> Choice | None:
    """The exchanges for a tool call, by either of its ids, or for a flow; None where there is no
    such thing. Where an id stands for several calls, the first that went wrong."""
    every = list(sources)
    found = [(source, pair) for source in every for pair in cut.around(source.book, id_)]
    if not found:
        flows = [(source, number) for source in every for number in source.book.numbers(id_)]
        source, number = flows[0] if flows else (None, 0)
        return Choice(source, [number], among=len(flows)) if source else None
    found.sort(key=lambda one: not one[1].faulty)
    source, pair = found[0]
    numbers = set(cut.smallest(source.book, pair, source.load, rules))
    call = pair.line["call_flow"]
    if call is not None:
        last = source.book.seen.number(call)
        numbers |= _uses(source, pair.line["upstream_id"], pair.line["session"], last)
    return Choice(source, sorted(numbers), pair=pair, among=len(found))


def _ids(finding: Finding) -> list[str]:
    ids = dict.fromkeys(id_ for id_ in finding.evidence.ids if id_)
    return list(ids)[:_MOST_IDS]


def _named(source: Source, finding: Finding, last: int) -> Iterator[int]:
    """The exchanges whose flows its facts name, up to its own."""
    for name, fact in finding.evidence.facts.items():
        if not _FLOWS.isdisjoint(name.split("_")):
            for flow in fact if isinstance(fact, list) else [fact]:
                if isinstance(flow, str) and flow in source.book.seen.flows:
                    number = source.book.seen.number(flow)
                    if number <= last:
                        yield number


def _uses(source: Source, id_: str | None, session: str, last: int) -> set[int]:
    """The exchanges that delivered the call and, before it, the first of that upstream id."""
    known = [one for one in source.delivered if one.session == session and one.number <= last]
    calls = [one for one in known if one.is_called(id_)]
    if not calls:
        return set()
    latest = calls[-1]
    first = next((one for one in known if one.is_called(latest.upstream_id)), latest)
    return {first.number, latest.number}


def _is_found(source: Source, numbers: list[int], finding: Finding, rules: Rules) -> bool:
    diagnosis = Diagnosis(rules)
    return any(
        (one.code, one.severity, one.flow) == (finding.code, finding.severity, finding.flow)
        for looked in diagnosis.flows(source.load(numbers))
        for one in looked.findings
    )
