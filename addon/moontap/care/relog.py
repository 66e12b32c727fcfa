"""Pairs made anew from saved flows, as the tap itself would log them.

Flows in, the lines of `pairs.jsonl` out, and a count of what was seen on the way. It reads no
`pairs.jsonl` and writes nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from mitmproxy import http

from moontap.capture.pairlog import Line
from moontap.capture.reading import Reading
from moontap.rules import Rules


@dataclass(slots=True)
class Seen:
    """What a file came to, so far.

    flows: the ids of its HTTP flows, in order. sessions: for each of them the session as the lines
    name it; None where the flow is not of a paired protocol or cannot be read. unread: why not, a
    line each. closed: the flows are at their end, and the lines to come are of calls that waited.
    """

    flows: list[str] = field(default_factory=list)
    sessions: list[str | None] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    closed: bool = False
    _numbers: dict[str, int] = field(default_factory=dict)

    def add(self, flow: str) -> None:
        """Note the next flow's id."""
        self._numbers.setdefault(flow, len(self.flows))
        self.flows.append(flow)

    def number(self, flow: str) -> int:
        """Which of them, from 0 on, has that id."""
        return self._numbers[flow]

    @property
    def exchanges(self) -> int:
        return len(self.flows)

    @property
    def paired(self) -> int:
        """How many of them are of a paired protocol."""
        return len(self.flows) - self.sessions.count(None)


def relog(flows: Iterable[http.HTTPFlow], seen: Seen, rules: Rules | None = None) -> Iterator[Line]:
    """The lines of one file, in the order of the log; secrets are masked in the flows first.

    A file of ours has none; one that `mitmdump -w` wrote may hold keys, in bodies as well. While a
    line is handed out the last of `seen.flows` is the one that made it certain.
    """
    reading = Reading(rules or Rules())
    for flow in flows:
        seen.add(flow.id)
        logged, unread = reading.flow(flow, lambda logged: logged)
        if unread:
            seen.unread.append(unread)
        seen.sessions.append(logged.session if logged else None)
        if logged:
            yield from _made(logged.lines, seen)
    seen.closed = True
    yield from _made(reading.close(), seen)


def _made(lines: Iterator[Line], seen: Seen) -> Iterator[Line]:
    """Lines as they are made; as in a live run, one that cannot be made costs no other."""
    while True:
        try:
            line = next(lines, None)
        except Exception as error:  # whatever a client may have put into a history
            seen.unread.append(f"a pair could not be logged ({type(error).__name__})")
            continue
        if line is None:
            return
        yield line
