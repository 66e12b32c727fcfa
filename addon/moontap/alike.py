"""Things that look alike, taken one by one: the one with the very same key before the first.

Things in, one at a time out. Pure. Linear however many there are: a reply of ten thousand calls
with one id must not cost their square.
"""

from collections.abc import Callable, Hashable, Iterable


class Alike[T: Hashable]:
    """In the order in which they are given.

    key_of: what tells them apart; asked only where several are left. taken: what was taken
    already, also from other collections that share this set.
    """

    def __init__(self, things: Iterable[T], key_of: Callable[[T], Hashable], taken: set[T]) -> None:
        self._left = list(things)
        self._left.reverse()  # the first one last, so that it can be popped
        self._key_of = key_of
        self._taken = taken
        self._by_key: dict[Hashable, list[T]] | None = None

    def take(self, key: Callable[[], Hashable], *, exactly: bool = False) -> T | None:
        """The first one of that key, else the first; None where none is left, or, with `exactly`,
        none of that key."""
        first = self._first(self._left)
        if first is None:
            return None
        if exactly or len(self._left) > 1:
            same = self._keyed.get(key())
            if same and (nearest := self._first(same)) is not None:
                first = nearest
            elif exactly:
                return None
        self._taken.add(first)
        return first

    def _first(self, things: list[T]) -> T | None:
        while things and things[-1] in self._taken:
            things.pop()
        return things[-1] if things else None

    @property
    def _keyed(self) -> dict[Hashable, list[T]]:
        if self._by_key is None:
            self._by_key = {}
            for thing in self._left:
                self._by_key.setdefault(self._key_of(thing), []).append(thing)
        return self._by_key
