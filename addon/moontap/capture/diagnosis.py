"""What saved flows come to: their pairs and what went wrong, flow by flow.

mitmproxy flows in, in the order in which they ended; pair lines, turns and findings out, equal to
those of the live run. Secrets are masked in the flows first. Never writes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from mitmproxy import http

from moontap.capture.pairlog import Line, Logged
from moontap.capture.reading import Reading
from moontap.capture.turns import turn_of
from moontap.findings.judge import Judge
from moontap.findings.turn import Turn
from moontap.findings.types import Finding
from moontap.rules import Rules


@dataclass(frozen=True, slots=True)
class Looked:
    """One flow. turn, logged: None where it is not of a paired protocol or could not be read.

    number: which one it is, from 1 on. unread: why it could not be read, a line; None where it
    could. lines: of the pairs that it completed.
    """

    flow: http.HTTPFlow
    number: int
    turn: Turn | None = None
    logged: Logged | None = None
    lines: list[Line] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    unread: str | None = None


class Diagnosis:
    """One run, or one file. `flows` may be given in parts; `close` ends it."""

    def __init__(self, rules: Rules | None = None) -> None:
        self.rules = rules or Rules()
        self.judge = Judge(self.rules)
        self._reading = Reading(self.rules)
        self.redactor = self._reading.redactor
        self._number = 0

    def flows(self, flows: Iterable[http.HTTPFlow]) -> Iterator[Looked]:
        """Each flow with what it comes to. The flows are masked in place."""
        for flow in flows:
            yield self.flow(flow)

    def flow(self, flow: http.HTTPFlow) -> Looked:
        """The next one."""
        self._number += 1
        number = self._number

        def judged(logged: Logged) -> Looked:
            turn = turn_of(logged, number, self.rules)
            lines = list(logged.lines)
            return Looked(flow, number, turn, logged, lines, self.judge.look(turn))

        looked, unread = self._reading.flow(flow, judged)
        return looked or Looked(flow, number, unread=unread)

    def close(self) -> list[Line]:
        """The run ends: the lines of the calls that still wait."""
        return list(self._reading.close())
