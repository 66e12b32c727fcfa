"""What was learned about how large bodies begin, for bodies that begin the same.

An agent sends its whole conversation with every turn, so a body of megabytes is mostly one that was
seen before. Bytes go in, what was noted about their beginning comes out; one comparison at the
speed of memory. Pure, and bounded.
"""

from collections.abc import Hashable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Beginning[T]:
    """The first bytes of a body, what they are about (the same bytes can mean two things), and
    what is known of them."""

    text: bytes
    about: Hashable
    note: T


MOST = 64
"""Beginnings kept at most: each is compared with each body, if only with its first bytes."""


class Beginnings[T]:
    """Notes on beginnings; of at most `limit` bytes in all, and `MOST`, those used last."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: list[Beginning[T]] = []  # the one used last stands last
        self.size = 0

    def find(self, body: bytes, about: Hashable) -> Beginning[T] | None:
        """The beginning of this body that was used last."""
        for number in range(len(self._kept) - 1, -1, -1):
            known = self._kept[number]
            if known.about == about and body.startswith(known.text):
                self._kept.append(self._kept.pop(number))
                return known
        return None

    def keep(self, new: Beginning[T], instead_of: Beginning[T] | None = None) -> None:
        """Note a beginning, in place of a shorter one of the same conversation."""
        if instead_of is not None and instead_of in self._kept:
            self._kept.remove(instead_of)
            self.size -= len(instead_of.text)
        self._kept.append(new)
        self.size += len(new.text)
        while self.size > self._limit or len(self._kept) > MOST:
            self.size -= len(self._kept.pop(0).text)
