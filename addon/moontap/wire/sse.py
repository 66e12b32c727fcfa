"""Incremental framing of server-sent events that keeps every byte.

Bytes go in as they arrive, complete events come out, each with the exact bytes it was made of.
Nothing is dropped, normalised or decoded, and no byte is scanned twice.

Source: the event stream rules of the HTML standard, section 9.2.6, with one addition: a line of
only spaces or tabs ends an event too, because some Chat Completions servers separate so.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

_NEWLINE = re.compile(rb"\r\n|\n|\r")
# An event as most come: perhaps a name, then its data on one line.
_PLAIN = re.compile(rb"(?:event:[^\r\n]*+\n)?+data: ?+([^\r\n]*+)\n\n")
_PLAIN_EACH = re.compile(rb"((?:event:[^\n]*+\n)?+data: ?+([^\n]*+)\n\n)")
# Lines between two events, each of which ends one; a CR that its line feed may follow is none yet.
_BLANKS = re.compile(rb"(?:[ \t]*+(?:\r\n|\n|\r(?=[^\n])))++")
_BLANK = re.compile(rb"[ \t]*+(?:\r\n|\n|\r)")
_BOM = b"\xef\xbb\xbf"


class Line(NamedTuple):
    """One `data:` line of an event: where its value stands in `Event.raw`."""

    start: int
    end: int


class Event(NamedTuple):
    """One complete event, or the bytes between events.

    raw: every byte, its separator line included. `b"".join(raw of all events)` is the stream.
    lines: the values of its `data:` lines, as offsets into raw; empty where there is none.
    released: the beginning of this event was handed out before by `Framer.release`, so `raw` is
    only its rest and `lines` is empty.
    """

    raw: bytes
    lines: tuple[Line, ...]
    released: bool = False

    @property
    def data(self) -> bytes:
        """The event's data: its `data:` values joined by line feeds."""
        return self.text(self.lines)

    def text(self, lines: Sequence[Line]) -> bytes:
        """The values of some of its lines, joined by line feeds."""
        return b"\n".join(self.raw[start:end] for start, end in lines)


def plain_events(stream: bytes) -> list[tuple[bytes, bytes]]:
    """The events that a whole stream begins with, raw and data each, as far as a glance tells.

    They are what a `Framer` would find, in a small part of its time; none where there is anything
    else between them than a name and one line of data.
    """
    if b"\r" in stream:
        return []
    found: list[tuple[bytes, bytes]] = _PLAIN_EACH.findall(stream)
    begun = b"".join([raw for raw, _ in found])
    # A byte order mark means something at the very beginning only.
    whole = stream.startswith(begun) and not stream.startswith(_BOM, len(begun))
    return found if whole else []


def locate(lines: Sequence[Line], offset: int) -> int:
    """Where the byte at an offset of `Event.text(lines)` stands in `Event.raw`."""
    for start, end in lines[:-1]:
        if offset <= end - start:
            return start + offset
        offset -= end - start + 1
    return lines[-1].start + offset


class Framer:
    """Cuts a byte stream into events.

    Goal: hand an event out with the byte that completes it, whatever the chunking.
    Cost: each byte is searched for a line end once, so a stream of n bytes takes O(n) however it
    is cut; what is held is the unfinished event only.

    A carriage return at the end of a chunk ends its line at once; the line feed that may open the
    next chunk belongs to it and is handed out on its own if the event has left already.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()  # the unfinished event, from its first byte or its release on
        self._line = 0  # where its unfinished line begins
        self._scanned = 0  # how far it was searched for a line end
        self._lines: list[Line] = []
        self._first: bytes | None = None
        self._released = False
        self._line_has_text = False  # a part of the unfinished line was released, and not blank
        self._after_cr = False  # the last byte seen was a CR that ended a line
        self._at_start = True

    @property
    def pending(self) -> int:
        """Number of bytes held: the unfinished event, as far as it has come."""
        return len(self._buffer)

    @property
    def idle(self) -> bool:
        """Whether the stream has begun and stands between two events, with nothing held."""
        return not (self._buffer or self._released or self._after_cr or self._at_start)

    @property
    def first_line(self) -> bytes | None:
        """The unfinished event's first line (64 bytes of it), once that line is complete."""
        return self._first

    @property
    def released(self) -> bool:
        """Whether the beginning of the unfinished event was handed out by `release`."""
        return self._released

    def feed(self, data: bytes) -> list[Event]:
        """Take the next bytes of the stream; give the events that they complete."""
        events: list[Event] = []
        if not data:  # a decoder that gives nothing yet: a CR still waits for its line feed
            return events
        buffer = self._buffer
        if self._after_cr:
            self._after_cr = False
            if data[0] == 0x0A:
                data = data[1:]
                if buffer:
                    buffer += b"\n"
                    self._line = self._scanned = len(buffer)
                else:
                    events.append(Event(b"\n", (), released=True))
        buffer += data
        size = len(buffer)
        taken = 0
        while True:
            # Tried once at the beginning of an event, so no byte is looked at more than twice.
            if self._scanned == taken and not (self._released or self._at_start):
                while True:
                    if plain := _PLAIN.match(buffer, taken):
                        start, end = plain.span(1)
                        raw = bytes(buffer[taken : plain.end()])
                        events.append(Event(raw, (Line(start - taken, end - taken),)))
                    elif plain := _BLANKS.match(buffer, taken):
                        raws = _BLANK.findall(bytes(buffer[taken : plain.end()]))
                        events += [Event(raw, ()) for raw in raws]
                    else:
                        break
                    taken = self._line = self._scanned = plain.end()
            found = _NEWLINE.search(buffer, self._scanned)
            if not found:
                break
            start, self._line = self._line, found.end()
            self._scanned = found.end()
            if not self._note(start, found.start()):
                events.append(self._take(taken, found.end()))
                taken = found.end()
        self._after_cr = bool(data) and size > 0 and buffer[-1] == 0x0D
        self._scanned = size
        if taken:
            del buffer[:taken]
            self._line -= taken
            self._scanned -= taken
            self._lines = [Line(a - taken, b - taken) for a, b in self._lines]
        return events

    def release(self) -> bytes:
        """Hand out what is held of the unfinished event; its rest will come as `released`."""
        held = bytes(self._buffer)
        self._line_has_text |= _has_text(held[self._line :])
        self._released |= bool(held)
        self._reset()
        return held

    def flush(self) -> Event | None:
        """The end of the stream: what is held, as a last event without a separator.

        The standard drops an unfinished event; clients of these APIs read it, so it comes with
        its data lines.
        """
        if not self._buffer:
            return None
        self._note(self._line, len(self._buffer))
        event = self._take(0, len(self._buffer))
        self._reset()
        return event

    def _reset(self) -> None:
        self._buffer.clear()
        self._lines.clear()
        self._line = self._scanned = 0

    def _note(self, start: int, end: int) -> bool:
        """Take in the line at [start, end); say whether it has text, so does not end the event."""
        buffer = self._buffer
        first = start
        if self._at_start:
            self._at_start = False
            if buffer.startswith(_BOM, start):
                start += len(_BOM)
        has_text = self._line_has_text or _has_text(buffer[start:end])
        self._line_has_text = False
        if self._released or not has_text:
            return has_text
        if self._first is None:
            self._first = bytes(buffer[first : min(end, first + 64)])
        if buffer.startswith(b"data", start, end):
            value = start + 4
            if value == end:
                self._lines.append(Line(end, end))
            elif buffer[value] == 0x3A:
                value += 1
                if value < end and buffer[value] == 0x20:
                    value += 1
                self._lines.append(Line(value, end))
        return True

    def _take(self, start: int, end: int) -> Event:
        lines = tuple(Line(a - start, b - start) for a, b in self._lines)
        event = Event(bytes(self._buffer[start:end]), lines, self._released)
        self._lines.clear()
        self._first = None
        self._released = False
        return event


def _has_text(line: bytes | bytearray) -> bool:
    return bool(line) and bool(line.strip(b" \t"))
