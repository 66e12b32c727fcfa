"""One input examined: what it is, what went wrong in it, what could not be checked, what was lost.

A source in, an `Examined` out. Never writes; what it gives holds no secret.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from moontap.capture.diagnosis import Diagnosis
from moontap.evidence import bodies, flows, kimi
from moontap.evidence.damage import Damage
from moontap.evidence.debuglog import CODES, DebugLog, Seen
from moontap.evidence.kinds import OF_FLOWS, Kind
from moontap.evidence.recognise import Known, recognise
from moontap.evidence.source import Source, Unusable
from moontap.evidence.telling import Told
from moontap.evidence.transcript import Transcript
from moontap.findings.bounds import bounded
from moontap.findings.judge import Judge
from moontap.findings.registry import all_checks, could_not_run
from moontap.findings.types import Finding, Found, Part, Party, Severity
from moontap.redact.flow import Redactor
from moontap.rules import Rules

_LACKS = {
    Part.HISTORY: "the messages of a request",
    Part.TOOLS: "the tools that a request declares",
    Part.REPLY: "a reply",
    Part.EVENTS: "a reply as event stream",
    Part.ANSWER: "the status and headers of a response",
    Part.TIMES: "the times of requests and chunks",
    Part.TURNS: "several requests of a conversation with their replies",
}


@dataclass(frozen=True, slots=True)
class Located:
    """A finding and the line of the file where it shows; None where it has no lines."""

    finding: Finding
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """A check that could not run. why: a phrase. lacks: what there would have to be, in words; none
    where it is switched off."""

    code: str
    why: str
    lacks: tuple[str, ...] = ()


@dataclass(slots=True)
class Examined:
    """What an input came to. exchanges, conversations: that were looked at. faults: checks that
    failed, with their traceback. flows: whether its exchanges are flows, with ids of their own."""

    name: str
    kind: Kind
    notes: list[str] = field(default_factory=list)
    exchanges: int = 0
    conversations: int = 0
    findings: list[Located] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)
    faults: dict[str, str] = field(default_factory=dict)

    @property
    def flows(self) -> bool:
        return self.kind in OF_FLOWS


def examine(source: Source, rules: Rules, kind: Kind | None = None) -> Examined:
    """Run every check that a source allows. kind: where it is known from what holds it.

    Raises Unusable where it is nothing that is known, or nothing of it can be used.
    """
    diagnosis = Diagnosis(rules)
    known = Known(kind) if kind else recognise(source, diagnosis.redactor)
    source.damage += known.damage
    examined = Examined(diagnosis.redactor.mask_text(source.name), known.kind)
    ran: tuple[str, ...] = ()
    if examined.flows:
        parts, judge = _flows(source, diagnosis, examined), diagnosis.judge
    else:
        reading, judge = _reading(known, rules, source), Judge(rules)
        parts = _told(reading.turns, judge, examined, source)
        examined.findings += _of_log(reading.seen(), rules)
        examined.notes += reading.notes()
        ran = reading.ran
    examined.findings = [_masked(one, diagnosis.redactor) for one in examined.findings]
    examined.faults = judge.faults
    examined.skipped = _skipped(parts, rules, ran)
    examined.notes += source.notes
    if known.kind is Kind.ERROR:
        status = bodies.status_of(known)
        examined.notes.append(f"its status is not in it; taken for {status}")
    examined.damage = source.damage
    return examined


def _flows(source: Source, diagnosis: Diagnosis, examined: Examined) -> Part:
    parts, conversations = Part(0), set[int]()
    for one in flows.looked(source, diagnosis):
        examined.findings += [Located(finding) for finding in one.findings]
        if one.turn:
            examined.exchanges += 1
            parts |= one.turn.parts
            conversations.add(one.turn.conversation)
    examined.conversations = len(conversations)
    return parts


@dataclass(frozen=True, slots=True)
class _Reading:
    """An input that holds no flows. turns: to be used up first; then notes and seen, what it shows
    without a check, are there. ran: the codes of that."""

    turns: Iterator[Told]
    notes: Callable[[], list[str]] = list
    seen: Callable[[], Iterable[Seen]] = tuple
    ran: tuple[str, ...] = ()


def _reading(known: Known, rules: Rules, source: Source) -> _Reading:
    text, damage = known.text, source.damage
    match known.kind:
        case Kind.TRANSCRIPT:
            transcript = Transcript(text, rules, damage)
            return _Reading(transcript.turns(), lambda: transcript.notes)
        case Kind.DEBUG_LOG:
            log = DebugLog(text, rules, damage)
            return _Reading(log.turns(), lambda: log.notes, log.seen, CODES)
        case Kind.KIMI_CONTEXT:
            return _Reading(kimi.context_turns(text, rules, damage), lambda: [kimi.NOTE])
        case Kind.KIMI_WIRE:
            return _Reading(kimi.Wired(text, rules, damage).turns(), lambda: [kimi.NOTE])
        case _:
            return _Reading(bodies.turns(known, rules))


def _told(turns: Iterator[Told], judge: Judge, examined: Examined, source: Source) -> Part:
    parts, conversations = Part(0), set[int]()
    try:
        for told in turns:
            examined.exchanges += 1
            parts |= told.turn.parts
            conversations.add(told.turn.conversation)
            examined.findings += [
                Located(finding, told.place.line(finding.evidence))
                for finding in judge.look(told.turn)
            ]
    except Exception as error:  # somebody's file may hold anything; what was found so far counts
        # The message of an error that nobody meant for people may quote the file.
        why = str(error) if isinstance(error, ValueError) else type(error).__name__
        if not examined.exchanges:
            raise Unusable(f"{source.name}: cannot be read: {why}") from None
        what = f"reading stopped behind exchange {examined.exchanges}: {why}"
        source.damage.append(Damage(what))
    examined.conversations = len(conversations)
    return parts


def _of_log(seen: Iterable[Seen], rules: Rules) -> Iterator[Located]:
    known = {check.code: check for check in all_checks()}
    for one in seen:
        if one.code in rules.findings.off:
            continue
        check, found = known.get(one.code), bounded(one.found)
        severity = rules.findings.severity.get(one.code) or found.severity or Severity.ERROR
        finding = Finding(
            code=one.code,
            severity=Severity(severity),
            party=found.party or Party.CLIENT,
            message=found.message,
            remedy=_remedy(found, check.remedy if check else ""),
            evidence=found.evidence,
            exchange=0,
            session="",
            conversation=0,
        )
        yield Located(finding, one.line)


def _masked(one: Located, redactor: Redactor) -> Located:
    """What is said, decoded: a key may stand free only now."""
    finding, mask = one.finding, redactor.mask_text

    def deep(value: Any) -> Any:
        if isinstance(value, str):
            return mask(value)
        if isinstance(value, Mapping):
            return {name: deep(inner) for name, inner in value.items()}
        return [deep(inner) for inner in value] if isinstance(value, list | tuple) else value

    evidence = replace(
        finding.evidence,
        ids=tuple(deep(finding.evidence.ids)),
        excerpt=mask(finding.evidence.excerpt),
        facts=deep(finding.evidence.facts),
    )
    said = replace(finding, message=mask(finding.message), evidence=evidence)
    return Located(replace(said, session=mask(finding.session)), one.line)


def _remedy(found: Found, usual: str) -> str:
    return found.remedy or usual or "Put moontap between, with moontap_rewrite=all (`moontap run`)."


def _skipped(parts: Part, rules: Rules, ran: Collection[str]) -> list[Skipped]:
    skipped = []
    for check in could_not_run(parts):
        if check.code not in ran and check.code not in rules.findings.off:
            lacks = tuple(_LACKS[part] for part in check.needs & ~parts)
            skipped.append(Skipped(check.code, f"needs {' and '.join(lacks)}", lacks))
    off = [Skipped(code, "switched off in the rules") for code in sorted(rules.findings.off)]
    return skipped + off
