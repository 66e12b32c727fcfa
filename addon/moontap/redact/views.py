"""Decoded texts that know which bytes of a body they were made of.

A view has a text; `spans` turns a part of that text into the bytes behind it, through any number
of JSON escapes, nested JSON texts and stream fragments, and `respelled` gives the bytes that
another text would have there. Views never change the body.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Protocol

import msgspec

_ESCAPE = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
    r'|u([0-9a-fA-F]{4})|(["\\/bfnrt]))'
)
_DECODER = msgspec.json.Decoder(str)
_SHORT = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


type Patch = tuple[int, bytes]
"""An offset in the body, and what to put there, over as many bytes."""


class View(Protocol):
    """A decoded text over a body."""

    @property
    def text(self) -> str: ...

    def spans(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The bytes of the body behind text[start:end], as half-open spans in order."""
        ...

    def respelled(self, start: int, end: int, text: str) -> Iterator[Patch]:
        """What to put into the body so that it says `text` where it says text[start:end] now.

        The text must have as many characters, and each as many bytes in UTF-8 as the one it
        replaces; then each is spelled as that one was, in as many bytes of the body. One that
        could not be spelled so (a control character has an escape of its own) must be the same.
        """
        ...


class Raw:
    """Bytes of the body from an offset on, decoded as UTF-8; what is not UTF-8 stays one to one."""

    def __init__(self, data: bytes, offset: int = 0) -> None:
        self.text = data.decode("utf-8", "surrogateescape")
        self._offset = offset
        self._one_byte_each = len(self.text) == len(data)
        # Callers ask in rising order, so the way to a place is counted on from the last one.
        self._known = (0, 0)

    def spans(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        if start < end:
            first = self._byte(start)
            yield self._offset + first, self._offset + self._byte(end)

    def respelled(self, start: int, end: int, text: str) -> Iterator[Patch]:
        if start < end:
            yield self._offset + self._byte(start), text.encode("utf-8", "surrogateescape")

    def _byte(self, index: int) -> int:
        if self._one_byte_each:
            return index
        known, byte = self._known if self._known[0] <= index else (0, 0)
        byte += len(self.text[known:index].encode("utf-8", "surrogateescape"))
        self._known = (index, byte)
        return byte


class Unescaped:
    """A part of another view with its JSON escapes resolved; what is no escape stays as it is."""

    def __init__(self, parent: View, start: int, end: int) -> None:
        self._parent = parent
        self._start = start
        source = parent.text[start:end]
        self.text = unescape(source)
        self._source = source if self.text != source else None
        self._places: list[int] | None = None  # where in the text a resolved escape stands
        self._ends: list[int] = []  # where in the source that escape ends

    def spans(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        if start < end:
            yield from self._parent.spans(
                self._start + self._place(start), self._start + self._place(end)
            )

    def respelled(self, start: int, end: int, text: str) -> Iterator[Patch]:
        if start >= end:
            return
        first, last = self._start + self._place(start), self._start + self._place(end)
        if self._source is not None:
            text = _escaped_alike(self._source[first - self._start : last - self._start], text)
        yield from self._parent.respelled(first, last, text)

    def _place(self, index: int) -> int:
        if self._source is None:
            return index
        if self._places is None:
            self._places, shrunk = [], 0
            for match in _ESCAPE.finditer(self._source):
                self._places.append(match.start() - shrunk)
                self._ends.append(match.end())
                shrunk += match.end() - match.start() - 1
        before = bisect_left(self._places, index)
        if not before:
            return index
        return self._ends[before - 1] + index - self._places[before - 1] - 1


class Joined:
    """Views one after another, read as one text."""

    def __init__(self, parts: Sequence[View]) -> None:
        self._parts = parts
        self._starts = [0, *accumulate(len(part.text) for part in parts)]
        self.text = "".join(part.text for part in parts)

    def spans(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        index = bisect_right(self._starts, start) - 1
        while index < len(self._parts) and self._starts[index] < end:
            base = self._starts[index]
            part = self._parts[index]
            yield from part.spans(max(start - base, 0), min(end - base, len(part.text)))
            index += 1

    def respelled(self, start: int, end: int, text: str) -> Iterator[Patch]:
        index = bisect_right(self._starts, start) - 1
        while index < len(self._parts) and self._starts[index] < end:
            base = self._starts[index]
            part = self._parts[index]
            first, last = max(start - base, 0), min(end - base, len(part.text))
            new = text[base + first - start : base + last - start]
            yield from part.respelled(first, last, new)
            index += 1


class Silent:
    """A text with no bytes behind it, such as the line feed between two `data:` lines."""

    def __init__(self, text: str) -> None:
        self.text = text

    def spans(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        return iter(())

    def respelled(self, start: int, end: int, text: str) -> Iterator[Patch]:
        return iter(())


class Part:
    """A stretch of another view, as it is."""

    def __init__(self, parent: View, start: int, end: int) -> None:
        self._parent, self._start = parent, start
        self.text = parent.text[start:end]

    def spans(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        return self._parent.spans(self._start + start, self._start + end)

    def respelled(self, start: int, end: int, text: str) -> Iterator[Patch]:
        return self._parent.respelled(self._start + start, self._start + end, text)


def unescape(source: str) -> str:
    """Resolve JSON escapes, leniently: an incomplete or unknown one stays as it is."""
    if "\\" not in source:
        return source
    try:
        # Ten times as fast, and the same for every string that is valid.
        return _DECODER.decode(f'"{source}"')
    except (msgspec.MsgspecError, ValueError):
        return _ESCAPE.sub(_resolve, source)


def _resolve(match: re.Match[str]) -> str:
    high, low, unit, short = match.groups()
    if short:
        return _SHORT[short]
    if unit:
        return chr(int(unit, 16))
    return chr(0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF))


def _escaped_alike(source: str, text: str) -> str:
    """The text, each character with an escape where the source has one for its place."""
    out: list[str] = []
    position = done = 0
    for match in _ESCAPE.finditer(source):
        plain = match.start() - position
        out.append(text[done : done + plain])
        done += plain
        out.append(_escape_alike(match, text[done]))
        position, done = match.end(), done + 1
    out.append(text[done:])
    return "".join(out)


def _escape_alike(match: re.Match[str], character: str) -> str:
    if _resolve(match) == character:
        return match[0]
    units = character.encode("utf-16-be", "surrogatepass").hex()
    if match[0].upper() == match[0].replace("u", "U"):
        units = units.upper()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
