"""The smallest part of a saved file that still shows a thing.

What a reading of the file found goes in, the numbers of exchanges to keep come out. A set is
believed only after the pairs were made anew from it. It writes nothing.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mitmproxy import http

from moontap import canonical
from moontap.care.relog import Seen, relog
from moontap.rules import Rules

_SAME = (
    *("status", "tool", "id", "upstream_id", "duplicate", "source"),
    *("arguments_sha256", "result_sha256", "call_flow", "result_flow"),
)
_NEEDED = ("session", "arguments", *_SAME)
_LONGEST = 1000
_FAULTS = ("unanswered", "orphan")

MOST_TRIES = 120
"""Sets that are tried at most."""

type Load = Callable[[Sequence[int]], Iterator[http.HTTPFlow]]
"""The exchanges of the given numbers, in order; fresh ones, which may be changed."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A pair of a file. line: its fields of `pairs.jsonl` that matter here. settled: the number of
    the exchange that made it certain; None where only the end of the file did."""

    line: Mapping[str, Any]
    settled: int | None

    @property
    def faulty(self) -> bool:
        """Whether it went without its call or result, or under an id used before."""
        return self.line["status"] in _FAULTS or bool(self.line["duplicate"])

    @property
    def shape(self) -> tuple[object, ...]:
        """What a smaller file must still show of it."""
        return (*(self.line[name] for name in _SAME), self.settled is None)

    def names(self) -> Iterator[str]:
        """The ids that it goes by."""
        yield from (self.line[name] for name in ("id", "upstream_id") if self.line[name])


@dataclass(slots=True)
class Book:
    """What a file holds. Exchanges are numbered from 0. requests: a digest of each one's path and
    body."""

    seen: Seen = field(default_factory=Seen)
    requests: list[bytes] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)

    def numbers(self, flow: str) -> list[int]:
        """The exchanges whose flow id is, or begins, so."""
        exact = [n for n, id_ in enumerate(self.seen.flows) if id_ == flow]
        return exact or [n for n, id_ in enumerate(self.seen.flows) if id_.startswith(flow)]


def read(flows: Iterable[http.HTTPFlow], rules: Rules | None = None) -> Book:
    """Read a file."""
    book = Book()

    def noted() -> Iterator[http.HTTPFlow]:
        for flow in flows:
            asked = f"{flow.request.method} {flow.request.path}\0".encode("utf-8", "replace")
            body = flow.request.raw_content or b""
            book.requests.append(hashlib.sha256(asked + body).digest())
            yield flow

    for line in relog(noted(), book.seen, rules):
        settled = None if book.seen.closed else book.seen.exchanges - 1
        # Results and arguments may come to megabytes each; their hashes say enough.
        kept = {name: line[name] for name in _NEEDED}
        if len(text := canonical.encode(kept["arguments"])) > _LONGEST:
            kept["arguments"] = text[:_LONGEST].decode("utf-8", "ignore")
        book.pairs.append(Pair(kept, settled))
    return book


def around(book: Book, id_: str) -> list[Pair]:
    """The pairs that an id stands for, those that went wrong first: a tool call's id in either
    form, or else the id of a flow."""
    found = [pair for pair in book.pairs if id_ in pair.names()]
    if not found:
        numbers = set(book.numbers(id_))
        flows = {book.seen.flows[number] for number in numbers}
        found = [
            pair
            for pair in book.pairs
            if pair.settled in numbers or flows & {pair.line["call_flow"], pair.line["result_flow"]}
        ]
    return sorted(found, key=lambda pair: not pair.faulty)


def smallest(book: Book, pair: Pair, load: Load, rules: Rules | None = None) -> list[int]:
    """The exchanges that give the same line for a pair: 1-minimal, unless `MOST_TRIES` ends it.

    First those that the line names, then with an earlier use of its id, then whatever of its
    conversation is needed.
    """
    tries = 0

    def shows(numbers: Iterable[int]) -> bool:
        nonlocal tries
        tries += 1
        seen = Seen()
        return any(
            Pair(line, None if seen.closed else 0).shape == pair.shape
            for line in relog(load(sorted(numbers)), seen, rules)
        )

    core = _core(book, pair)
    if shows(core):
        return sorted(core)
    for number in _earlier_uses(book, pair, min(core, default=0)):
        if shows(core | {number}):
            return sorted(core | {number})
    pool = [number for number in _conversation(book, pair) if number not in core]
    if not shows(core.union(pool)):
        pool = [number for number in range(_last(book, pair) + 1) if number not in core]
    return sorted(core.union(reduced(pool, lambda some: shows(core.union(some)), lambda: tries)))


def playable(book: Book, numbers: Iterable[int]) -> list[int]:
    """The same exchanges with all that led to them: an agent can be run against these.

    Requests that no session is named in (lists of models, token counts) may be anybody's. Of a
    request that was sent again and again only the last is kept, and those that were chosen: an
    agent that asks so all night would be kept all night.
    """
    chosen = set(numbers)
    sessions = {book.seen.sessions[number] for number in chosen} | {None}
    led = [n for n in range(max(chosen) + 1) if book.seen.sessions[n] in sessions]
    asked = {n: (book.seen.sessions[n], book.requests[n]) for n in led}
    last = {one: n for n, one in asked.items()}
    return [n for n in led if n in chosen or last[asked[n]] == n]


def _core(book: Book, pair: Pair) -> set[int]:
    """The exchanges that a line cannot be without."""
    core = {pair.settled} if pair.settled is not None else set()
    for flow in (pair.line["call_flow"], pair.line["result_flow"]):
        if flow is not None:
            core.add(book.seen.number(flow))
    return core


def _earlier_uses(book: Book, pair: Pair, before: int) -> Iterator[int]:
    """Earlier exchanges whose reply had the same upstream id; the nearest first, and the first."""
    line = pair.line
    uses = {
        book.seen.number(other.line["call_flow"])
        for other in book.pairs
        if other.line["upstream_id"] == line["upstream_id"]
        and other.line["session"] == line["session"]
        and other.line["call_flow"] not in (None, line["call_flow"])
    }
    earlier = sorted(use for use in uses if use < before)
    yield from dict.fromkeys([*earlier[:-4:-1], *earlier[:1]])


def _last(book: Book, pair: Pair) -> int:
    return book.seen.exchanges - 1 if pair.settled is None else pair.settled


def _conversation(book: Book, pair: Pair) -> list[int]:
    numbers = range(_last(book, pair) + 1)
    return [n for n in numbers if book.seen.sessions[n] == pair.line["session"]]


def reduced(
    pool: list[int], holds: Callable[[Iterable[int]], bool], tries: Callable[[], int]
) -> list[int]:
    """Delta debugging: leave parts of a pool out for as long as the rest still holds.

    Source: A. Zeller and R. Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002.
    """
    parts = 2
    while pool and tries() < MOST_TRIES:
        size = -(-len(pool) // parts)
        chunks = [pool[at : at + size] for at in range(0, len(pool), size)]
        rests = [[n for n in pool if n not in set(chunk)] for chunk in chunks]
        tried = chunks + (rests if len(chunks) > 2 else [])
        kept = next((some for some in tried if tries() < MOST_TRIES and holds(some)), None)
        if kept is None and size == 1:
            break
        if kept is None:
            parts = min(2 * parts, len(pool))
        else:
            pool, parts = kept, 2 if kept in chunks else max(parts - 1, 2)
    return pool
