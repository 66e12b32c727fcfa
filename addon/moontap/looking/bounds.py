"""How much of a flow the views read: what is hostile is small on the wire and endless unpacked.

A copy of a flow in, cut short in place, with what to say of it. Bodies that are short enough stay
the same objects; of the others the beginning is kept, unpacked.
"""

from collections.abc import Iterable
from typing import NamedTuple

from mitmproxy import http

from moontap.capture import metadata
from moontap.kept import Chunks
from moontap.redact import coded
from moontap.redact.body import is_event_stream
from moontap.redact.flow import is_stream

MOST_BYTES = 32 * 1024 * 1024
"""Of a body, unpacked. The Messages API takes no more in a request."""

MOST_LINES = 300_000
"""Of an event stream: three an event, and a long reply has 20,000 events."""


class Left(NamedTuple):
    """What is to be said of the request and of the reply; `""` where all of it is shown."""

    sent: str = ""
    came: str = ""


class _Cut(NamedTuple):
    body: bytes
    note: str


def cut_short(flow: http.HTTPFlow) -> Left:
    """Cut the bodies of a flow, a copy whose messages and metadata may be edited."""
    sent = _message(flow.request)
    if flow.response is None:
        return Left(sent)
    came = _message(flow.response)
    kept = metadata.settled(flow.metadata)
    upstream = kept.get(metadata.UPSTREAM_BODY)
    size = len(flow.response.raw_content or b"") if came else None
    if upstream:
        size = None
        coding = kept.get(metadata.UPSTREAM_ENCODING)
        if cut := _cut(upstream, coding, is_stream(flow.response)):
            flow.metadata[metadata.UPSTREAM_BODY] = cut.body
            flow.metadata.pop(metadata.UPSTREAM_ENCODING, None)
            size, came = len(cut.body), came or cut.note
    if size is not None and (chunks := kept.get(metadata.CHUNKS)):
        flow.metadata[metadata.CHUNKS] = Chunks(_first(chunks, size))
    return Left(sent, came)


def _message(message: http.Message) -> str:
    body = message.raw_content
    if not body:
        return ""
    cut = _cut(body, message.headers.get("content-encoding"), is_stream(message))
    if cut is None:
        return ""
    message.raw_content = cut.body
    message.headers.pop("content-encoding", None)
    return cut.note


def _cut(body: bytes, coding: str | None, declared: bool) -> _Cut | None:
    """What is left of a body; None where it is short enough."""
    start = coded.beginning(body, coding, MOST_BYTES)
    plain, notes = start, list[str]()
    if start is not None:
        size = f" of {len(body):,}" if body.startswith(start) else ""
        notes.append(f"only the first {len(start):,}{size} bytes are shown")
    else:
        try:
            plain = coded.decoded(body, coding)
        except ValueError:  # its secrets cannot be found: it will not be shown
            return None
    plain = body if plain is None else plain
    lines = plain.count(b"\n") + plain.count(b"\r")
    if lines > MOST_LINES and is_event_stream(plain, declared):
        plain = _first_lines(plain)
        kept = plain.count(b"\n") + plain.count(b"\r")
        notes.append(f"only the first {kept:,} of {lines:,} lines are shown")
    return _Cut(plain, "; ".join(notes)) if notes else None


def _first_lines(stream: bytes) -> bytes:
    """The first lines, up to the end of an event where there is one."""
    low, high = 0, len(stream)
    while high - low > 1:  # where the last of them ends
        half = (low + high) // 2
        if stream.count(b"\n", 0, half) + stream.count(b"\r", 0, half) > MOST_LINES:
            high = half
        else:
            low = half
    end = max(stream.rfind(blank, 0, low) + len(blank) for blank in _BLANK_LINES)
    return stream[: end if end > low // 2 else low]


_BLANK_LINES = (b"\n\n", b"\r\n\r\n", b"\r\r")


def _first(chunks: Iterable[list[float]], size: int) -> list[list[float]]:
    """The chunks that the first so many bytes came in."""
    first: list[list[float]] = []
    for length, at in chunks:
        if size <= 0:
            break
        first.append([min(int(length), size), at])
        size -= int(length)
    return first
