"""A conversation as it is collected for its account: its exchanges in short, findings, figures.

Turns and findings in, one after the other; plain data out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from moontap.findings.conversation import Conversation
from moontap.findings.turn import Turn
from moontap.findings.types import Finding, Severity
from moontap.report.story.told import Told, told

_UNNAMED = "conversation-"


@dataclass(slots=True)
class Figures:
    """calls: of replies. answered, failed (of these): with a result; lost, dropped: without one,
    see `Told`. reused: the server had used the id before; seen: of these, the client got it so.
    rewritten: given a new id by the tap. repaired: requests without pairs that the client had.
    """

    calls: int = 0
    answered: int = 0
    failed: int = 0
    lost: int = 0
    dropped: int = 0
    orphans: int = 0
    empty: int = 0
    reused: int = 0
    seen: int = 0
    rewritten: int = 0
    repaired: int = 0


@dataclass(frozen=True, slots=True)
class Loop:
    """The same done again and again. begun: the exchange whose reply made the first of the calls;
    last: the one that showed the latest; count: how many times it was done by then."""

    begun: int
    last: int
    count: int


@dataclass(slots=True)
class Account:
    """One conversation. agent: the User-Agent of its first request. sub: it is a sub-agent's.
    loops: by the flow of the reply that made the first call; findings stop counting at the last
    threshold, a loop does not."""

    session: str
    protocol: str
    model: str | None
    agent: str
    sub: str | None
    exchanges: list[Told] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    figures: Figures = field(default_factory=Figures)
    loops: dict[str | None, Loop] = field(default_factory=dict)

    @classmethod
    def of(cls, turn: Turn) -> "Account":
        """An empty one, for the conversation of a turn."""
        agent = turn.sent.agent if turn.sent else ""
        return cls(turn.session, turn.protocol.value, turn.model, agent, turn.agent)

    @property
    def named(self) -> bool:
        """Whether the client itself says which session it is."""
        return not self.session.startswith(_UNNAMED)

    @property
    def waiting(self) -> int:
        """Calls of the last reply, of whose results nothing can be known."""
        return len(self.exchanges[-1].calls)

    @property
    def troubled(self) -> bool:
        """Whether anything above `info` was found, or moontap stopped it."""
        return bool(self.stops) or any(
            finding.severity is not Severity.INFO for finding in self.findings
        )

    @property
    def stops(self) -> list[Told]:
        """The exchanges that moontap answered instead of the server."""
        return [one for one in self.exchanges if one.stopped]

    def loop(self, facts: Mapping[str, Any]) -> Loop | None:
        """The loop that a finding's facts are about."""
        return self.loops.get(facts.get("first_flow"))

    def add(
        self,
        turn: Turn,
        findings: list[Finding],
        *,
        reminded: bool = False,
        stopped: str = "",
        repeats: int = 0,
    ) -> None:
        """The next exchange, after the judge has looked at it. reminded and so on: see `Told`."""
        one = told(turn, reminded=reminded, stopped=stopped, repeats=repeats)
        self.exchanges.append(one)
        self.findings += findings
        self._count(one, turn.before)
        self._extend(turn)

    def _count(self, one: Told, before: Conversation) -> None:
        figures = self.figures
        figures.calls += len(one.calls)
        for name in ("answered", "failed", "lost", "dropped", "orphans", "empty"):
            setattr(figures, name, getattr(figures, name) + getattr(one, name))
        for call in one.calls:
            figures.reused += call.reused
            figures.seen += call.reused and call.id == call.upstream
            figures.rewritten += call.id != call.upstream
        figures.repaired = before.repaired

    def _extend(self, turn: Turn) -> None:
        streak = turn.streak
        if streak is None:
            return
        flow = streak.first.flow
        if known := self.loops.get(flow):
            if streak.count > known.count:
                self.loops[flow] = Loop(known.begun, turn.number, streak.count)
            return
        begun = next((one.number for one in self.exchanges if one.flow == flow), turn.number)
        self.loops[flow] = Loop(begun, turn.number, streak.count)
