"""Runs the checks over turns, in the order in which exchanges ended; each thing is found once.

Turns in, findings out. It never raises: a check that fails is left out for that turn, and said.
"""

import traceback
from collections import OrderedDict
from collections.abc import Sequence

from moontap.findings import memory
from moontap.findings.check import Check
from moontap.findings.conversation import Conversation
from moontap.findings.registry import all_checks
from moontap.findings.turn import Turn
from moontap.findings.types import Finding, Found, Severity
from moontap.rules import Rules

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
        findings = []
        missing = ~turn.parts.value  # plain numbers: a Flag takes a microsecond for each operation
        for needs, check in self._checks:
            if needs & missing:
                continue
            try:
                for found in check.look(turn):
                    if finding := self._new(check, found, turn, conversation):
                        findings.append(finding)
            except Exception:  # evidence is whatever somebody has; the others must still run
                self.faults.setdefault(check.code, traceback.format_exc())
        memory.take_reply(conversation, turn)
        return findings

    def conversation(self, number: int) -> Conversation:
        """What is known of a conversation."""
        known = self._conversations.get(number)
        if known is None:
            known = self._conversations[number] = Conversation()
        self._conversations.move_to_end(number)
        while len(self._conversations) > _MOST:
            self._conversations.popitem(last=False)
        return known

    def _new(
        self, check: Check, found: Found, turn: Turn, conversation: Conversation
    ) -> Finding | None:
        """The finding; None where it was reported before with this severity or a higher one."""
        severity = self._severity.get(check.code) or found.severity or check.severity
        key = (check.code, found.about)
        before = conversation.found.get(key)
        if before is not None and before.rank >= severity.rank:
            return None
        conversation.found[key] = severity
        return Finding(
            code=check.code,
            severity=Severity(severity),
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
