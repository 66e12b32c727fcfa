"""What is remembered of a conversation from turn to turn, for the checks. Plain data.

`findings.memory` keeps it. Bounded: it does not grow with the number of turns, save for one small
entry for each id that was used.
"""

import hashlib
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property

from moontap import canonical
from moontap.findings.progress import Progress
from moontap.findings.types import Ending, Severity


@dataclass(frozen=True, slots=True)
class Use:
    """An upstream id's first use; where the client went back before that, the next one. exchange: 0
    where it came in a history. arguments: a digest, see `digest`. at: where its message stands."""

    exchange: int
    flow: str | None
    tool: str
    arguments: bytes
    at: int


def digest(arguments: str | bytes) -> bytes:
    """What tells the arguments of two calls apart, however they are spelled, in a few bytes."""
    if isinstance(arguments, str):
        arguments = arguments.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(canonical.of_text(arguments), digest_size=16).digest()


@dataclass(frozen=True)
class Said:
    """A reply as it was delivered, in short, for comparison with what comes back.

    calls: their ids, tools and arguments (JSON texts). thinking, signed: where it has calls,
    whether it came with any thinking, and with a signature of it. complete: it came to its end,
    and no limit cut its calls: a client may leave out what is not whole. forced: the request wanted
    a call, whatever it be.
    """

    exchange: int
    flow: str | None
    calls: tuple[tuple[str | None, str, bytes], ...]
    thinking: bool
    signed: bool
    complete: bool
    forced: bool = False

    @cached_property
    def tools(self) -> frozenset[tuple[str | None, str]]:
        """The ids of its calls, with their tools."""
        return frozenset(call[:2] for call in self.calls)


@dataclass(frozen=True, slots=True)
class Last:
    """The exchange before. messages: how many its request had; history, asked: numbers for these
    and for what else was asked for, see `findings.repeats`. status: 0 where not known. streamed:
    the reply came as a stream. ending: None where there is no knowing. started, ended: seconds
    since the epoch.
    """

    exchange: int
    flow: str | None
    messages: int
    history: int
    asked: int
    size: int
    stream: bool
    status: int
    streamed: bool
    ending: Ending | None
    started: float | None
    ended: float | None
    agent: str


@dataclass(slots=True)
class Conversation:
    """exchanges: so far. uses: first uses by upstream id. minted: the upstream ids of the latest
    replies that had calls. replies: by the number of messages of the request that a reply answered,
    which is where it stands in the next one. lost: delivered calls that the client dropped, rewinds
    left out. due: the calls of the latest reply that a client which pairs by id will drop next.
    predicted: those that were due and whose turn has come. repaired: requests that went out without
    calls which had been delivered.
    gap: where the first dropped call stood, while the history reaches it. found: things reported,
    with their severity. returns: when the client went back to an earlier point or began its words
    anew: the exchange, and the first message that it gave up; both rise."""

    exchanges: int = 0
    uses: dict[str, Use] = field(default_factory=dict)
    minted: deque[tuple[str | None, ...]] = field(default_factory=lambda: deque(maxlen=8))
    replies: dict[int, Said] = field(default_factory=dict)
    last: Last | None = None
    progress: Progress = field(default_factory=Progress)
    lost: int = 0
    predicted: int = 0
    due: int = 0
    repaired: int = 0
    found: dict[tuple[str, Hashable], Severity] = field(default_factory=dict)
    gap: int | None = None
    returns: list[tuple[int, int]] = field(default_factory=list)

    def given_up(self, use: Use) -> bool:
        """Whether the client went back before that use, so that it holds nothing of it any more."""
        return any(use.exchange < exchange and at <= use.at for exchange, at in self.returns)

    def is_reused(self, id_: str | None, flow: str | None) -> bool:
        """Whether the id of a call in the reply of a flow was first that of another reply's."""
        use = self.uses.get(id_) if id_ else None
        return use is not None and flow is not None and use.flow != flow
