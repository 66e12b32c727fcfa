"""What is looked for in a body, and what takes its place: the two sides of `body`.

Views of a body in, patches of as many bytes out. `Stars` is what secrets become; whatever else
replaces bytes of a body one for one is a `Filling` of its own.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from moontap.redact.secrets import Span
from moontap.redact.views import Patch, View


class Finder(Protocol):
    """Says where in a decoded text something stands that is to be replaced."""

    @property
    def patterns(self) -> Sequence[object]:
        """Non-empty: all strings are to be searched, not only those around a candidate."""
        ...

    def candidates(self, body: bytes) -> list[int]:
        """See `secrets.Needles.candidates`."""
        ...

    def find(self, text: str, patterns: bool = True, known: bool = True) -> list[Span]:
        """See `secrets.Needles.find`."""
        ...


class Filling(Protocol):
    """Says what stands there afterwards.

    by_value: that depends on the value. A string that a stream has cut up then counts as one, also
    where a JSON path selects its pieces, and of a selected string that is JSON only the values
    are replaced.
    """

    by_value: bool

    def text(self, view: View, start: int, end: int) -> Iterator[Patch]:
        """For a part of a decoded text."""
        ...

    def number(self, view: View, start: int, end: int) -> Iterator[Patch]:
        """For a number of a JSON text, or digits of it: it must stay one."""
        ...

    def around(self, view: View) -> Iterable[View]:
        """The parts to search of what stands around an event's data."""
        ...


class Stars:
    """Every byte becomes `*`; the digits of a number become 1."""

    by_value = False

    def __init__(self, body: bytes) -> None:
        self._body = body

    def text(self, view: View, start: int, end: int) -> Iterator[Patch]:
        for first, last in view.spans(start, end):
            old = self._body[first:last]
            if b"\n" in old or b"\r" in old:
                # Line ends are structure in everything that is not JSON.
                yield first, bytes(byte if byte in b"\r\n" else 0x2A for byte in old)
            else:
                yield first, b"*" * len(old)

    def number(self, view: View, start: int, end: int) -> Iterator[Patch]:
        """No other digit than 1 gives a valid number wherever it stands.

        A digit that is written as an escape ends in itself (`\\u0037`), so one rule does for all.
        """
        for index in range(start, end):
            if view.text[index] in "0123456789":
                for _, last in view.spans(index, index + 1):
                    yield last - 1, b"1"

    def around(self, view: View) -> Iterable[View]:
        return (view,)
