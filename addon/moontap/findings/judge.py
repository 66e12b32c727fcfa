"""Runs the checks over turns, in the order in which exchanges ended; each thing is found once.

Turns in, findings out. It never raises: a check that fails is left out for that turn, and said.
"""

import traceback
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import replace

from moontap.findings import memory
from moontap.findings.bounds import bounded
from moontap.findings.check import Check
from moontap.findings.conversation import Conversation
from moontap.findings.registry import all_checks
from moontap.findings.turn import Turn
from moontap.findings.types import Finding, Found, Severity
from moontap.recent import recent
from moontap.rules import Rules

MOST_ALIKE = 100
"""Findings of one code and severity in one turn; the last one counts the others: a broken reply of
ten thousand calls is one fault."""

_MOST = 512


class Judge:
    """The conversations of one run. checks: default: all of them.

    Bounded: the conversation that was quiet the longest is forgotten first.
    """

    def __init__(self, rules: Rules, checks: Sequence[Check] | None = None) -> None:
        every = all_checks() if checks is None else checks
        self._checks = [
            (check.needs.value, check) for check in every if check.code not in rules.findings.off
        ]
        self._severity = rules.findings.severity
        self._conversations: OrderedDict[int, Conversation] = OrderedDict()
        self.faults: dict[str, str] = {}
        """Why a check failed, by its code: a traceback."""

    @property
    def idle(self) -> bool:
        """Whether every check is switched off: then there is nothing to look at turns for."""
        return not self._checks

    def look(self, turn: Turn) -> list[Finding]:
        """What is new in a turn. Fills in `turn.before` and `turn.streak`."""
        conversation = self.conversation(turn.conversation)
        turn.before = conversation
        memory.take_request(conversation, turn)
        findings: list[Finding] = []
        missing = ~turn.parts.value  # plain numbers: a Flag takes a microsecond for each operation
        for needs, check in self._checks:
            if needs & missing:
                continue
            found: list[Found] = []
            try:
                found.extend(check.look(turn))  # what comes before a failure stays
            except Exception:  # evidence is whatever somebody has; the others must still run
                self.faults.setdefault(check.code, traceback.format_exc())
            if found:  # seldom: most checks find nothing in most turns
                findings += self._new(check, found, turn, conversation)
        memory.take_reply(conversation, turn)
        return findings

    def conversation(self, number: int) -> Conversation:
        """What is known of a conversation."""
        return recent(self._conversations, number, Conversation, _MOST)

    def _new(
        self, check: Check, every: Sequence[Found], turn: Turn, conversation: Conversation
    ) -> list[Finding]:
        """What was not reported before; at most `MOST_ALIKE` of each severity, the rest counted."""
        findings: list[Finding] = []
        last: dict[Severity, int] = {}
        counts: Counter[Severity] = Counter()
        for found in every:
            severity = self._severity_of(check, found)
            if not self._is_new(check, found, severity, conversation):
                continue
            counts[severity] += 1
            if counts[severity] <= MOST_ALIKE:
                last[severity] = len(findings)
                findings.append(_finding(check, found, severity, turn))
        for severity, count in counts.items():
            if count > MOST_ALIKE:
                at = last[severity]
                findings[at] = _and_more(findings[at], count - MOST_ALIKE)
        return findings

    def _severity_of(self, check: Check, found: Found) -> Severity:
        return Severity(self._severity.get(check.code) or found.severity or check.severity)

    def _is_new(
        self, check: Check, found: Found, severity: Severity, conversation: Conversation
    ) -> bool:
        """Whether it was not reported before with this severity or a higher one."""
        key = (check.code, found.about)
        before = conversation.found.get(key)
        if before is not None and before.rank >= severity.rank:
            return False
        conversation.found[key] = severity
        return True


def _finding(check: Check, found: Found, severity: Severity, turn: Turn) -> Finding:
    found = bounded(found)
    return Finding(
        code=check.code,
        severity=severity,
        party=found.party or check.party,
        message=found.message,
        remedy=found.remedy or check.remedy,
        evidence=found.evidence,
        exchange=turn.number,
        session=turn.session,
        conversation=turn.conversation,
        flow=turn.flow,
        at=turn.at,
    )


def _and_more(finding: Finding, count: int) -> Finding:
    evidence = replace(finding.evidence, facts={**finding.evidence.facts, "more": count})
    begins = finding.message.rstrip(".")
    says = f"{begins}. {count} more of this kind in the same exchange are only counted."
    return replace(finding, message=says, evidence=evidence)
