"""The recorded exchanges of saved flows, found again by what a request asks for.

Paths of captures in, a `Library` out. It keeps keys and places in files, never a body: what is
served is read from its file again. Never writes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mitmproxy import http

from moontap.capture.exchange import client_request
from moontap.capture.reader import TRAFFIC, FlowFile, Loss, Unreadable, flow_at, flow_files
from moontap.replay.keys import Key, Keys
from moontap.rules import Rules
from moontap.wire.protocol import of_request
from moontap.wire.types import Protocol


@dataclass(slots=True)
class Source:
    """A flow file, and how many exchanges it holds."""

    path: Path
    count: int = 0

    @property
    def name(self) -> str:
        """How a person knows it: every capture folder has a file of the same name."""
        path = self.path
        return f"{path.absolute().parent.name}/{path.name}" if path.name == TRAFFIC else path.name


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Recorded:
    """One recorded exchange.

    number: its place in its file, from 1. started: seconds since 1970. key: what its request asks
    for, without its chain. messages: how many of its messages count. mark: tells its record from
    another at that offset.
    """

    source: Source
    offset: int
    number: int
    started: float
    key: Key
    messages: int
    mark: str

    def __repr__(self) -> str:
        return f"<{self.label}>"

    @property
    def label(self) -> str:
        """Where it is to be found: file, number in it, turn of its conversation."""
        turn = f" (turn {self.key.turn})" if self.key.turn else ""
        return f"{self.source.name} {self.number} of {self.source.count}{turn}"

    def flow(self) -> http.HTTPFlow:
        """The flow itself, from its file. Raises Unreadable, also where the file is another one."""
        flow = flow_at(self.source.path, self.offset)
        if _mark(flow) != self.mark:
            raise Unreadable(f"{self.source.path}: has changed since it was read")
        return flow


class Library:
    """Recorded exchanges, in the order in which they were asked.

    losses: of each file that had damaged records, what was left out. paths: of each protocol, where
    the first of its requests went.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.keys = Keys(rules)
        self.exchanges: list[Recorded] = []
        self.losses: dict[Path, Loss] = {}
        self.paths: dict[Protocol, str] = {}
        self._by_key: dict[bytes, list[Recorded]] = {}
        self._by_chain: dict[bytes, Recorded] = {}

    def add(self, source: Source, offset: int, flow: http.HTTPFlow) -> None:
        """Take in the next flow of a file; `settle` ends it."""
        source.count += 1
        request = flow.request
        try:
            body = client_request(flow)
        except ValueError:
            body = request.raw_content or b""
        key = self.keys.key(request.method, request.path, body)
        if wire := of_request(request.method, request.path):
            self.paths.setdefault(wire.protocol, request.path.partition("?")[0])
        recorded = Recorded(
            source,
            offset,
            source.count,
            request.timestamp_start or 0,
            replace(key, chain=()),
            len(key.chain),
            _mark(flow),
        )
        self.exchanges.append(recorded)
        for link in reversed(key.chain):  # the history before a known link is known
            if link in self._by_chain:
                break
            self._by_chain[link] = recorded

    def settle(self) -> None:
        """Bring them into order."""
        self.exchanges.sort(key=lambda one: one.started)  # as they lie where times are equal
        self._by_key.clear()
        for recorded in self.exchanges:
            self._by_key.setdefault(recorded.key.whole, []).append(recorded)

    def find(self, key: Key) -> Sequence[Recorded]:
        """The exchanges whose request asks for the same, in recorded order."""
        return self._by_key.get(key.whole, ())

    def nearest(self, key: Key) -> Recorded | None:
        """The one whose request is most like it; None in an empty library."""
        for link in reversed(key.chain):
            if recorded := self._by_chain.get(link):
                return recorded

        def unlike(recorded: Recorded) -> tuple[bool, bool, bool, bool, int]:
            other = recorded.key
            return (
                other.kind != key.kind,
                other.model != key.model,
                other.tools != key.tools,
                other.stream != key.stream,
                abs(recorded.messages - len(key.chain)),
            )

        return min(self.exchanges, key=unlike, default=None)


def _mark(flow: http.HTTPFlow) -> str:
    # The ids of a HAR file are the same in every file.
    return f"{flow.id} {flow.request.timestamp_start!r}"


def load(
    paths: Sequence[Path], rules: Rules, progress: Callable[[int], None] | None = None
) -> Library:
    """Read flow files, capture folders, or folders of either.

    progress: told the bytes read so far, of all files together. Raises Unreadable.
    """
    library, done = Library(rules), 0
    for path in flow_files(paths):

        def told(size: int, before: int = done) -> None:
            if progress:
                progress(before + size)

        file, source = FlowFile(path, told), Source(path)
        for offset, flow in file.records():
            library.add(source, offset, flow)
        if file.loss:
            library.losses[path] = file.loss
        done += path.stat().st_size
    library.settle()
    return library
