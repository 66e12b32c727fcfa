"""The lines of `findings.jsonl`. Findings in, dicts out, their fields in the documented order."""

from typing import Any

from moontap.findings.types import Evidence, Finding
from moontap.moments import rfc3339

VERSION = 1

type Line = dict[str, Any]


def line(finding: Finding) -> Line:
    """A finding as a line."""
    return {
        "v": VERSION,
        "code": finding.code,
        "severity": finding.severity.value,
        "party": finding.party.value,
        "message": finding.message,
        "remedy": finding.remedy,
        "evidence": _evidence(finding.exchange, finding.evidence),
        "session": finding.session,
        "flow": finding.flow,
        "at": rfc3339(finding.at),
        "link": finding.link,
    }


def _evidence(exchange: int, evidence: Evidence) -> dict[str, Any]:
    """What is not known is left out."""
    shown: dict[str, Any] = {"exchange": exchange}
    for name in ("message", "block", "choice", "index"):
        if (value := getattr(evidence, name)) is not None:
            shown[name] = value
    if evidence.ids:
        shown["ids"] = list(evidence.ids)
    if evidence.excerpt:
        shown["excerpt"] = evidence.excerpt
    return {**shown, **evidence.facts}
