"""Which saved flow raises a finding, and which comes near to it and does not.

The sheets of `flows/` in, names of flows out.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import yaml

from moontap.capture.diagnosis import Diagnosis
from moontap.capture.reader import FlowFile
from moontap.findings.types import Severity
from tests.golden import sheet

FLOWS = Path(__file__).parents[2] / "flows"
_MARK = "\n  findings:\n"


@dataclass(frozen=True, slots=True)
class Raised:
    """A finding as a sheet has it."""

    exchange: int
    code: str
    severity: Severity


@dataclass(slots=True)
class Corpus:
    """raised: by flow, in order. near: by code, the flows that come near to it."""

    raised: dict[str, list[Raised]] = field(default_factory=dict)
    near: dict[str, list[str]] = field(default_factory=dict)

    def best(self, code: str) -> tuple[str, Raised] | None:
        """The flow that shows a finding best: at its worst, with as little else as may be."""
        found = [
            (name, one) for name, all_ in self.raised.items() for one in all_ if one.code == code
        ]
        return min(found, key=self._order, default=None)

    def _order(self, found: tuple[str, Raised]) -> tuple[object, ...]:
        name, one = found
        others = {other.code for other in self.raised[name]}
        return -one.severity.rank, len(others), len(self.raised[name]), one.exchange, name


@cache
def read(folder: Path = FLOWS) -> Corpus:
    """What the sheets of a folder say."""
    corpus = Corpus()
    for path in sorted(folder.glob("*.yaml")):
        about = sheet.read(path, path.name)
        corpus.raised[path.stem] = [*raised(about.expected), *_timed(about)]
        for code in about.near_miss:
            corpus.near.setdefault(code, []).append(path.stem)
    return corpus


def raised(expected: str) -> Iterable[Raised]:
    """The findings of a sheet's last part. The rest of it, which is long, is not parsed."""
    for line in yaml.safe_load(expected.partition(_MARK)[2]) or ():
        exchange, code, severity, *_ = line.replace(":", "", 1).split(" ")
        yield Raised(int(exchange), code, Severity(severity))


def _timed(about: sheet.Sheet) -> Iterable[Raised]:
    """What a sheet says of times, as far as the flow file bears it out."""
    if about.raises:
        for looked in Diagnosis().flows(FlowFile(about.path.with_suffix(".flow"))):
            for one in looked.findings:
                if one.code in about.raises:
                    yield Raised(looked.number, one.code, one.severity)
