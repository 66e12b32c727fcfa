"""Which protocol an exchange speaks, and the functions that read it: the one table of protocols.

A request's method and path in, the protocol's module out. Adding a protocol is adding a module
with these names and a line here.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol as TypingProtocol

from moontap.wire import anthropic, openai
from moontap.wire.sse import Event, Framer, Line, plain_events
from moontap.wire.types import HistorySite, Protocol, Reply, Request, Site

__all__ = [
    "ANTHROPIC",
    "OPENAI",
    "Wire",
    "event_texts",
    "holds_any",
    "of_request",
    "read_ids",
    "read_shape",
    "read_stream",
]


class SiteFinder(TypingProtocol):
    """Finds the call ids of one streamed reply; message_id is the latest the stream has named."""

    message_id: str | None

    def find(self, data: bytes, /) -> list[Site]: ...


class Reader(TypingProtocol):
    """Assembles one reply."""

    def feed(self, data: bytes, /) -> None: ...
    def whole(self, body: bytes, /) -> Reply: ...
    def finish(self) -> Reply: ...


@dataclass(frozen=True, slots=True)
class Wire:
    """How one protocol is read.

    markers: an event whose data holds none of these names no call. shape_markers: with none of
    these it is but a piece of text or thinking. passing: first lines of events
    that cannot hold an id. sites, reader: made afresh for each reply. The functions raise
    ValueError where a body is not of the protocol.
    """

    protocol: Protocol
    markers: tuple[bytes, ...]
    shape_markers: tuple[bytes, ...]
    passing: frozenset[bytes]
    sites: Callable[[], SiteFinder]
    reader: Callable[[], Reader]
    read_request: Callable[[bytes], Request]
    history_sites: Callable[[bytes, set[int]], Iterator[HistorySite]]
    reply_sites: Callable[[bytes], tuple[str | None, list[Site]]]


ANTHROPIC = Wire(
    protocol=Protocol.ANTHROPIC,
    markers=anthropic.MARKERS,
    shape_markers=anthropic.SHAPE_MARKERS,
    passing=anthropic.PASSING,
    sites=anthropic.StreamSites,
    reader=anthropic.ReplyReader,
    read_request=anthropic.read_request,
    history_sites=anthropic.history_sites,
    reply_sites=anthropic.reply_sites,
)

OPENAI = Wire(
    protocol=Protocol.OPENAI,
    markers=openai.MARKERS,
    shape_markers=openai.SHAPE_MARKERS,
    passing=frozenset(),  # no `event:` lines there
    sites=openai.StreamSites,
    reader=openai.ReplyReader,
    read_request=openai.read_request,
    history_sites=openai.history_sites,
    reply_sites=openai.reply_sites,
)

_BY_PATH = (
    (re.compile(r"(?:^|/)v1/messages$"), ANTHROPIC),
    (re.compile(r"(?:^|/)chat/completions$"), OPENAI),
)


def of_request(method: str, path: str) -> Wire | None:
    """The protocol of a request, or None where it is not one that is paired.

    Any prefix is fine (`/anthropic`, `/coding`), the query is ignored, `count_tokens` is not read.
    """
    if method != "POST":
        return None
    bare = path.partition("?")[0].rstrip("/")
    return next((wire for pattern, wire in _BY_PATH if pattern.search(bare)), None)


def event_texts(event: Event) -> Iterator[Sequence[Line]]:
    """The lines that make up each JSON text of an event: all of them, or each on its own.

    Some Chat Completions servers part events by lines that a strict reader takes as part of one,
    so several whole texts can stand in one event. Read them with `event.text(lines)`.
    """
    lines = event.lines
    if len(lines) > 1 and all(_is_whole(event.raw[start:end]) for start, end in lines):
        yield from ((line,) for line in lines)
    elif lines:
        yield lines


def read_stream(wire: Wire, body: bytes) -> Reply:
    """Assemble a streamed reply from its bytes, as far as they go."""
    return _read_events(wire, body, ())


def read_shape(wire: Wire, body: bytes) -> Reply:
    """The same, but without its text and thinking, which most of a stream's events are."""
    return _read_events(wire, body, wire.shape_markers)


def read_ids(wire: Wire, body: bytes) -> Reply:
    """The same again, but for the ids of its calls alone: their arguments are not there."""
    if not holds_any(body, wire.markers):
        return Reply()
    return _read_events(wire, body, wire.markers)


def holds_any(text: bytes, markers: tuple[bytes, ...]) -> bool:
    """Whether one of the markers stands in a text."""
    # A loop because it is run for each chunk, and `any` takes several times as long.
    for marker in markers:  # noqa: SIM110
        if marker in text:
            return True
    return False


def _read_events(wire: Wire, body: bytes, only: tuple[bytes, ...]) -> Reply:
    reader = wire.reader()
    plain = plain_events(body)
    ends = list(accumulate(len(raw) for raw, _ in plain))
    for number in _holding(body, ends, only) if only else range(len(plain)):
        reader.feed(plain[number][1])
    framer = Framer()
    events = framer.feed(body[ends[-1] :] if ends else body)
    last = framer.flush()
    for event in [*events, last] if last else events:
        if only and not holds_any(event.raw, only):
            continue
        for lines in event_texts(event):
            reader.feed(event.text(lines))
    return reader.finish()


def _holding(body: bytes, ends: Sequence[int], markers: tuple[bytes, ...]) -> list[int]:
    """Which of the events that end there hold one of the markers."""
    found, end = set[int](), ends[-1] if ends else 0
    for marker in markers:
        at = body.find(marker, 0, end)
        while at >= 0:
            number = bisect_right(ends, at)
            found.add(number)
            at = body.find(marker, ends[number], end)
    return sorted(found)


def _is_whole(text: bytes) -> bool:
    text = text.strip()
    return text == b"[DONE]" or (text.startswith(b"{") and text.endswith(b"}"))
