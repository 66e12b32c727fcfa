"""A bundle's files, made of the chosen exchanges.

A choice and a cleaner in, files by their names out, with the places that are not clean after all:
where there is one, nobody may write them. It writes nothing itself.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mitmproxy import http
from mitmproxy.io import tnetstring

from moontap import __version__
from moontap.bundle import reproduce, rounds
from moontap.bundle.captured import captured
from moontap.bundle.choice import Choice
from moontap.bundle.clean import Cleaner
from moontap.bundle.report import Told, report
from moontap.capture.diagnosis import Diagnosis, Looked
from moontap.capture.folder import json_line
from moontap.capture.pairlog import Line
from moontap.findings import lines as finding_lines
from moontap.findings.types import Finding, Severity
from moontap.rules import Rules
from moontap.tapping.upstream import DEFAULT

FLOW, PAIRS, FINDINGS, REPORT = "bundle.flow", "pairs.jsonl", "findings.jsonl", "REPORT.md"

# The others are paths of a person's machine, or say nothing about what happened.
_OPTIONS = ("mode", "moontap_hosts", "moontap_rewrite", "moontap_id_style", "moontap_guard")


@dataclass(frozen=True, slots=True)
class Bundle:
    """files: by name. left: where a file is not clean, a line each. verdict: what it shows."""

    files: Mapping[str, bytes]
    left: Sequence[str]
    verdict: Sequence[str]


@dataclass(slots=True)
class _Seen:
    """The clean flows, as the diagnosis sees them."""

    looked: list[Looked]
    pairs: list[Line]
    findings: list[Finding] = field(default_factory=list)


def bundle(choice: Choice, cleaner: Cleaner, rules: Rules, whole: Counter[str], of: int) -> Bundle:
    """Make it. whole: how many findings of each code there are in all; of: how many exchanges."""
    flows = cleaner.flows(choice.source.load(choice.numbers))
    files = {FLOW: b"".join(tnetstring.dumps(flow.get_state()) for flow in flows)}
    left = [f"{FLOW}: {place}" for place in cleaner.left_in_flows(flows)]
    environment = _environment(choice.source.run())
    if rules != Rules():
        environment.append(("rules", "a file of its own was in force; it is not in here"))
    seen = _seen(flows, rules)
    lines = [finding_lines.line(finding) for finding in seen.findings]
    for name, made in ((PAIRS, seen.pairs), (FINDINGS, lines)):
        clean = [cleaner.members(line) for line in made]
        files[name] = b"".join(map(json_line, clean))
        for number, line in enumerate(clean, 1):
            left += [f"{name}: line {number}: {at}" for at in cleaner.left_in_members(line)]
    sequence = rounds.rounds(seen.looked)
    finding = _about(choice, seen.findings)
    verdict = rounds.verdict(sequence, finding)
    asked = captured(seen.looked, sequence, finding)
    values: dict[str, Any] = {}
    if asked:
        values = cleaner.members(asked.values)
        files[reproduce.NAME] = reproduce.program(asked.protocol, values).encode()
        left += [f"{reproduce.NAME}: {place}" for place in cleaner.left_in_members(values)]
    told = Told(
        title=verdict[-1],  # what it was cut for comes last
        environment=environment,
        captured=_what(seen.looked),
        rounds=sequence,
        verdict=verdict,
        findings=sorted(lines, key=lambda line: -Severity(line["severity"]).rank),
        whole=whole,
        kept=len(flows),
        of=of,
        removed=cleaner.counts,
        named=asks(rules),
        asks_for_it=verdict[-1].startswith((rounds.REUSED, "id-reused")),
        base_url=values.get("BASE_URL", DEFAULT),
        key=reproduce.KEY,
        file=FLOW,
    )
    text = cleaner.text(report(told))
    files[REPORT] = text.encode("utf-8", "backslashreplace")
    left += [f"{REPORT}: {place}" for place in cleaner.left_in(text)]
    return Bundle(files, left, verdict)


def asks(rules: Rules) -> bool:
    """Whether the rules say of anything that it is to be replaced."""
    scrub = rules.scrub
    return bool(scrub.names or scrub.paths or scrub.texts or scrub.json_paths)


def _seen(flows: Iterable[http.HTTPFlow], rules: Rules) -> _Seen:
    diagnosis = Diagnosis(rules)
    looked = list(diagnosis.flows(flows))
    pairs = [line for one in looked for line in one.lines] + diagnosis.close()
    return _Seen(looked, pairs, [finding for one in looked for finding in one.findings])


def _about(choice: Choice, findings: Sequence[Finding]) -> Finding | None:
    """The finding that it was cut for, found again; else the first of the worst, if any."""
    asked = choice.finding
    if asked:
        again = [one for one in findings if (one.code, one.flow) == (asked.code, asked.flow)]
        return max(again, key=lambda one: one.severity.rank, default=None)
    wrong = [one for one in findings if one.severity is not Severity.INFO]
    return max(wrong, key=lambda one: one.severity.rank, default=None)


def _environment(run: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Versions and options of the run, as far as anybody wrote them down."""
    said = [("bundle made by", f"moontap {__version__}")]
    if not run:
        return [
            *said,
            ("run.json", "none beside the flow file: versions and options are not known"),
        ]
    names = ("moontap", "mitmproxy", "python")
    options = run.get("options")
    found = {name: run[name] for name in names if name in run}
    if isinstance(options, dict):
        found |= {name: options[name] for name in _OPTIONS if name in options}
    return said + [
        (name, ", ".join(map(str, value)) if isinstance(value, list) else str(value))
        for name, value in found.items()
    ]


def _what(looked: Sequence[Looked]) -> list[tuple[str, str]]:
    """Protocol, model, client, server: of the last exchange that says so."""
    said: dict[str, str] = {}
    for one in looked:
        turn, request = one.turn, one.flow.request
        if turn:
            said["protocol"] = turn.protocol.value
            said["model"] = turn.model or "(none)"
            said["streamed"] = "yes" if turn.sent and turn.sent.request.stream else "no"
        said["client"] = request.headers.get("user-agent", "(does not say)")
        said["server"] = request.url.partition("?")[0]
    return list(said.items())
