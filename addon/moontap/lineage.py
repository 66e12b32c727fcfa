"""A conversation's calls: what is known of each, and what became of it.

Calls and results in, outcomes out, each call reported once. Pure.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum, auto

from moontap import canonical
from moontap.wire.types import Call, Result

type Key = tuple[str | None, str, bytes]
"""A call's id, tool and canonical arguments. With reused ids several calls share one."""


class Status(StrEnum):
    """What became of a call, as `pairs.jsonl` says it."""

    OK = auto()
    ERROR = auto()
    UNANSWERED = auto()
    ORPHAN = auto()


class State(StrEnum):
    """Where a call stands."""

    WAITING = auto()
    REPORTED = auto()
    SUPERSEDED = auto()  # of an attempt that the client did not use: never reported


@dataclass(slots=True, eq=False)
class Tracked[Origin]:
    """A call and what is known of it.

    origin: what the caller knows of the exchange that brought it, kept for the caller.
    """

    id: str | None
    name: str
    arguments: bytes
    origin: Origin
    duplicate: bool = False  # its id was used before in its conversation
    state: State = State.WAITING
    answer: bytes | None = None  # the digest of its result, once reported
    _canonical: bytes | None = None

    @property
    def key(self) -> Key:
        """What makes two calls look the same."""
        if self._canonical is None:
            self._canonical = canonical.of_text(self.arguments)
        return self.id, self.name, self._canonical


@dataclass(frozen=True, slots=True)
class Outcome[Origin]:
    """A pair that became certain.

    conversation: the name it goes by. call: None for an orphan. result: None where unanswered.
    at: the position of the message that holds the call; None where it is not in the history.
    dropped: then, the call was delivered and the conversation went on without a trace of it.
    """

    conversation: str
    status: Status
    call: Tracked[Origin] | None
    result: Result | None
    at: int | None = None
    dropped: bool = False


@dataclass(slots=True)
class Lineage[Origin]:
    """What branches of one conversation share: every call seen, in order, and the orphans.

    number: which of the run, from 1 on; names need not tell them apart.
    """

    label: str
    number: int = 0
    calls: list[Tracked[Origin]] = field(default_factory=list)
    _places: dict[Key, list[int]] = field(default_factory=dict)
    _indexed: int = 0
    orphans: set[tuple[str | None, bytes]] = field(default_factory=set)

    @property
    def places(self) -> dict[Key, list[int]]:
        """Where in `calls` each key stands. Made when asked for, which is seldom."""
        for at in range(self._indexed, len(self.calls)):
            self._places.setdefault(self.calls[at].key, []).append(at)
        self._indexed = len(self.calls)
        return self._places

    def report(
        self,
        call: Tracked[Origin],
        result: Result | None,
        at: int | None = None,
        *,
        dropped: bool = False,
    ) -> Outcome[Origin]:
        """A call's fate is known: its result, or None where it will have none. at, dropped: as in
        `Outcome`."""
        call.state = State.REPORTED
        if result is None:
            return Outcome(self.label, Status.UNANSWERED, call, None, at, dropped)
        call.answer = digest_of(result)
        status = Status.ERROR if result.is_error else Status.OK
        return Outcome(self.label, status, call, result, at)

    def count(self, seen: Iterable[tuple[Key, bytes]]) -> int:
        """How many of these calls were seen with that result, or wait for one."""
        answers: dict[Key, set[bytes | None]] = {}
        found = 0
        for key, answer in seen:
            if key not in answers:
                answers[key] = {self.calls[at].answer for at in self.places.get(key, ())}
            found += None in answers[key] or answer in answers[key]
        return found

    def is_new_orphan(self, result: Result) -> bool:
        """Whether this result without a call is seen for the first time."""
        orphan = (result.id, digest_of(result))
        new = orphan not in self.orphans
        self.orphans.add(orphan)
        return new


def waits[Origin](call: Tracked[Origin]) -> bool:
    """Whether a call has had no result and was not given up."""
    return call.state is State.WAITING


def key_of(call: Call) -> Key:
    """The key of a call in a history."""
    return call.id, call.name, canonical.of_text(call.arguments)


def digest_of(result: Result) -> bytes:
    """What tells two results apart, in a few bytes."""
    return hashlib.blake2b(result.content, digest_size=16).digest()
