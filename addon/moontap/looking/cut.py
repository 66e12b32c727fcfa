"""Flows without secrets, session ids and what the rules name, as one flow file to be shared.

mitmproxy flows in, the pieces of a file out, and what was replaced and left out. The flows stay as
they are. Never writes; whatever they hold, it only raises ValueError.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mitmproxy import http
from mitmproxy.io import tnetstring

from moontap.capture.recorder import copy_to_save
from moontap.care.identities import Known
from moontap.care.scrub import Scrubber
from moontap.looking.sizes import size_of
from moontap.report.text import many
from moontap.rules import Rules

MOST, MOST_BYTES = 500, 64_000_000
"""Flows, and bytes of them: scrubbing holds up the traffic."""

_DEEPEST = 40  # lists in lists, in metadata


@dataclass(slots=True)
class Cut:
    """pieces: of the file, one for each flow. counts: of places replaced, by kind. failed: flows
    that could not be cleaned, and are not in it. dropped: values of other addons' metadata that no
    flow file holds."""

    pieces: list[bytes] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    failed: int = 0
    dropped: int = 0

    @property
    def gist(self) -> str:
        """`4 exchanges; replaced: 4 × secret`."""
        kinds = ", ".join(f"{self.counts[kind]:,} × {kind}" for kind in sorted(self.counts))
        said = [f"{many(len(self.pieces), 'exchange')}; replaced: {kinds or 'nothing'}"]
        said += [f"{self.failed} that could not be cleaned left out"] if self.failed else []
        values = many(self.dropped, "value")
        said += [f"{values} that another addon keeps left out"] if self.dropped else []
        return "; ".join(said)


def cut(flows: Sequence[http.HTTPFlow], rules: Rules) -> Cut:
    """The file of these flows, in their order.

    Raises ValueError: they are too many, or none of them can be cleaned.
    """
    if len(flows) > MOST:
        raise ValueError(_too_many(f"{len(flows):,} flows"))
    size = 0
    for flow in flows:
        size += size_of(flow, MOST_BYTES - size)
        if size > MOST_BYTES:
            raise ValueError(_too_many(f"{many(len(flows), 'flow')} of {_megabytes(size)} MB"))
    made, copies, known = Cut(), list[http.HTTPFlow](), Known(rules.redact)
    for flow in flows:
        try:
            copy, dropped = _own_copy(flow)
            known.learn(copy)
        except Exception:  # an addon may have put anything there
            made.failed += 1
        else:
            copies.append(copy)
            made.dropped += dropped
    scrubber = Scrubber(rules, known)
    for copy in copies:
        try:
            counts = scrubber.scrub(copy)
            made.pieces.append(tnetstring.dumps(copy.get_state()))
        except Exception:
            made.failed += 1
        else:
            made.counts.update(counts)
    if not made.pieces:
        raise ValueError(f"{many(made.failed, 'exchange')} could not be cleaned")
    return made


def _too_many(what: str) -> str:
    return (
        f"{what} would hold up the traffic: choose at most {MOST} flows and "
        f"{MOST_BYTES / 1e6:.0f} MB once decoded, or run `moontap scrub` on the capture"
    )


def _megabytes(size: int) -> str:
    return f"more than {MOST_BYTES / 1e6:.0f}" if size > MOST_BYTES else f"{size / 1e6:.0f}"


def _own_copy(flow: http.HTTPFlow) -> tuple[http.HTTPFlow, int]:
    """A copy of which all may be changed, and how many values it lacks."""
    copy = copy_to_save(flow)
    kept = dict[str, Any]()
    for key, value in copy.metadata.items():
        try:
            if isinstance(key, str):
                kept[key] = _copied(value)
        except ValueError:
            pass
    dropped = len(copy.metadata) - len(kept)
    copy.metadata = kept
    return copy, dropped


def _copied(value: Any, depth: int = 0) -> Any:
    """A value of metadata. Raises ValueError where a flow file cannot hold it."""
    if value is None or isinstance(value, str | bytes | bool | float):
        return value
    if isinstance(value, int) and value.bit_length() <= 64:
        return value
    if depth < _DEEPEST and isinstance(value, list | tuple):
        return [_copied(one, depth + 1) for one in value]
    if depth < _DEEPEST and isinstance(value, dict):
        return {_copied(key, depth + 1): _copied(one, depth + 1) for key, one in value.items()}
    raise ValueError("no flow file holds it")
