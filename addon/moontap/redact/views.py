"""Decoded texts that know which bytes of a body they were made of.

A view has a text; `spans` turns a part of that text into the bytes behind it, through any number
of JSON escapes, nested JSON texts and stream fragments. Views never change the body.
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


class View(Protocol):
    """A decoded text over a body."""

    @property
    def text(self) -> str: ...

    def spans(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The bytes of the body behind text[start:end], as half-open spans in order."""
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


class Silent:
    """A text with no bytes behind it, such as the line feed between two `data:` lines."""

    def __init__(self, text: str) -> None:
        self.text = text

    def spans(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        return iter(())


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
