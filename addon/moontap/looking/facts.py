"""What is known of one exchange, for the flow list and for tables. Plain data; pure.

It grows: first what a stream has brought so far, then the exchange as it was recorded, then, with
later exchanges, what became of its calls and what was found.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from moontap.findings.types import Severity


@dataclass(slots=True)
class CallFact:
    """A call of the reply. choice, index: where it stands there. answer: `ok`, `error`,
    `unanswered`; None while not known. latency_s: seconds to its answer. line: its line of
    `pairs.jsonl`, its arguments and result cut short."""

    tool: str
    id: str | None
    upstream_id: str | None
    duplicate: bool = False
    answer: str | None = None
    latency_s: float | None = None
    line: Mapping[str, Any] | None = None
    choice: int | None = None
    index: int | None = None

    @property
    def rewritten(self) -> bool:
        return self.id != self.upstream_id


@dataclass(frozen=True, slots=True)
class FindingFact:
    """What was found in it. message, remedy: `""` where only the code is known. of_request:
    whether it is about what was sent, or about what came back; None where that is not known."""

    code: str
    severity: str
    message: str
    remedy: str
    link: str
    of_request: bool | None = None


@dataclass
class Facts:
    """An exchange. number: which of the run, from 1 on; conversation: the same of its conversation;
    each None before it has ended. new: see `capture.metadata.NEW`. ended_at: when, as lines of
    `pairs.jsonl` say when its calls were made: a flow that is played again has several exchanges.

    asked: its reply has not begun for a while; coming: it has now; streaming: it is still coming.
    stop: the stop reason of choice 0. status: of HTTP, 0 without a response. error: the type of the
    API's error. orphans: results that it brought and that belong to no call. healed: ids of its
    history that the tap changed; reminded, blocked: by the guard. cut: it broke off; left: the
    client itself broke it off; killed: a person did, in mitmproxy; unfinished: the run ended before
    it did.
    """

    number: int | None = None
    conversation: int | None = None
    new: int | None = None
    session: str | None = None
    agent: str | None = None
    model: str | None = None
    ended_at: str | None = None
    asked: bool = False
    coming: bool = False
    streaming: bool = False
    calls: list[CallFact] = field(default_factory=list)
    stop: str | None = None
    status: int = 0
    error: str | None = None
    orphans: list[Mapping[str, Any]] = field(default_factory=list)
    healed: int = 0
    reminded: bool = False
    blocked: str | None = None
    cut: bool = False
    left: bool = False
    killed: bool = False
    unfinished: bool = False
    findings: list[FindingFact] = field(default_factory=list)

    @cached_property
    def waiting(self) -> dict[tuple[object, ...], deque[CallFact]]:
        """The calls without an answer by id, choice and index, each in order. Of a reply that has
        ended: to look for one among all took time quadratic in their number."""
        calls: dict[tuple[object, ...], deque[CallFact]] = {}
        for call in self.calls:
            if call.line is None:
                calls.setdefault((call.id, call.choice, call.index), deque()).append(call)
        return calls

    @property
    def rewritten(self) -> int:
        """How many calls the client got under another id than upstream sent."""
        return sum(call.rewritten for call in self.calls)

    @property
    def cured(self) -> int:
        """How many of these had an id that had been used before."""
        return sum(call.rewritten and call.duplicate for call in self.calls)

    def answered(self, *answers: str | None) -> int:
        """How many calls came to one of these answers."""
        return sum(call.answer in answers for call in self.calls)

    def ranked(self) -> list[tuple[str, str]]:
        """Severity and code of what was found, the worst first, each code once."""
        worst: dict[str, str] = {}
        for severity, code in sorted(_each(self.findings), key=_rank, reverse=True):
            worst.setdefault(code, severity)
        return [(severity, code) for code, severity in worst.items()]


def _each(findings: Sequence[FindingFact]) -> Iterator[tuple[str, str]]:
    return ((one.severity, one.code) for one in findings)


def _rank(one: tuple[str, str]) -> int:
    return Severity(one[0]).rank
