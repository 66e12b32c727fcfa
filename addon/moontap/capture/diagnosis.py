"""What saved flows come to: their pairs and what went wrong, flow by flow.

mitmproxy flows in, in the order in which they ended; pair lines, turns and findings out, equal to
those of the live run. Secrets are masked in the flows first. Never writes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from mitmproxy import http

from moontap.capture.pairlog import Line, Logged, PairLog
from moontap.capture.turns import turn_of
from moontap.findings.judge import Judge
from moontap.findings.turn import Turn
from moontap.findings.types import Finding
from moontap.redact.flow import Redactor
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
        self.redactor = Redactor(self.rules)
        self.judge = Judge(self.rules)
        self._log = PairLog(self.rules.limits.result_bytes)
        self._number = 0

    def flows(self, flows: Iterable[http.HTTPFlow]) -> Iterator[Looked]:
        """Each flow with what it comes to. The flows are masked in place."""
        for flow in flows:
            yield self.flow(flow)

    def flow(self, flow: http.HTTPFlow) -> Looked:
        """The next one."""
        self._number += 1
        try:
            self.redactor.redact(flow)
            logged = self._log.exchange(flow)
            if logged is None:
                return Looked(flow, self._number)
            turn = turn_of(logged, self._number, self.rules)
            lines = list(logged.lines)
            return Looked(flow, self._number, turn, logged, lines, self.judge.look(turn))
        except Exception as error:  # whatever somebody's file holds costs no other exchange
            # The message of an error that nobody meant for people may quote the body.
            why = error if isinstance(error, ValueError) else type(error).__name__
            path = flow.request.path.partition("?")[0]
            unread = self.redactor.mask_text(f"{flow.request.method} {path}: {why}")
            return Looked(flow, self._number, unread=unread)

    def close(self) -> list[Line]:
        """The run ends: the lines of the calls that still wait."""
        return list(self._log.close())
