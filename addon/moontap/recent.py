"""What was in use of late, and no more of it than fits. Pure."""

from collections import OrderedDict
from collections.abc import Callable


def recent[Key, Value](
    known: OrderedDict[Key, Value], key: Key, make: Callable[[], Value], most: int
) -> Value:
    """The value of a key, made if there is none; it counts as the latest in use. Of more than
    `most`, those that were not in use for the longest are forgotten."""
    if key not in known:
        known[key] = make()
    known.move_to_end(key)
    keep(known, most)
    return known[key]


def keep[Key, Value](known: OrderedDict[Key, Value], most: int) -> None:
    """Forget the first ones, until there are no more than that."""
    while len(known) > most:
        known.popitem(last=False)
