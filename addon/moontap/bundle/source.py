"""A saved file as a bundle is made from it: its pairs, its findings, whom it names.

A path and its flows in, a `Source` out, in one reading. It keeps no flow and writes nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mitmproxy import http

from moontap.capture import metadata, runfile
from moontap.capture.diagnosis import Diagnosis, Looked
from moontap.capture.reader import flows_at
from moontap.care import cut
from moontap.care.identities import Known
from moontap.findings.types import Finding
from moontap.rules import Rules


@dataclass(frozen=True, slots=True)
class Delivered:
    """A call that a reply brought. number: of its exchange, from 0 on. id: as the client saw it."""

    number: int
    session: str
    id: str | None
    upstream_id: str | None

    def is_called(self, id_: str | None) -> bool:
        """Whether it goes by an id, in either form."""
        return bool(id_) and id_ in (self.id, self.upstream_id)


@dataclass(slots=True)
class Source:
    """A file that was read. offsets: where its exchanges are, for `load`. faults: why a check
    failed, by its code. unread: why exchanges could not be read, a line each.
    stopped: the exchanges that moontap's guard answered, from 0 on."""

    path: Path
    offsets: list[int] = field(default_factory=list)
    book: cut.Book = field(default_factory=cut.Book)
    findings: list[Finding] = field(default_factory=list)
    delivered: list[Delivered] = field(default_factory=list)
    faults: dict[str, str] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    stopped: list[int] = field(default_factory=list)

    def load(self, numbers: Sequence[int]) -> Iterator[http.HTTPFlow]:
        """Fresh flows, as they were saved. Raises `capture.reader.Unreadable`."""
        return flows_at(self.path, [self.offsets[number] for number in numbers])

    def run(self) -> dict[str, Any]:
        """What `run.json` beside the file says; nothing where there is none."""
        return runfile.read(self.path.parent)


def read(
    path: Path, records: Iterable[tuple[int, http.HTTPFlow]], rules: Rules, known: Known
) -> Source:
    """Read a file. known: learns whom it names, before anything is masked."""
    source, diagnosis = Source(path), Diagnosis(rules)

    def looked_at() -> Iterator[http.HTTPFlow]:
        for offset, flow in records:
            source.offsets.append(offset)
            known.learn(flow)
            _take(source, diagnosis.flow(flow))
            yield flow

    source.book = cut.read(looked_at(), rules)
    source.faults = diagnosis.judge.faults
    return source


def _take(source: Source, looked: Looked) -> None:
    source.findings += looked.findings
    if metadata.BLOCKED in looked.flow.metadata:
        source.stopped.append(looked.number - 1)
    if looked.unread:
        source.unread.append(looked.unread)
    if looked.logged:
        source.delivered += (
            Delivered(looked.number - 1, looked.logged.session, call.call.id, call.upstream_id)
            for call in looked.logged.exchange.calls
        )
