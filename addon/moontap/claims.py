"""Which call that was seen before a call of a history is.

Calls that were delivered or seen in, one for each that is asked for out. Pure; linear in the calls,
however many share an id.
"""

from collections.abc import Iterable

from moontap.alike import Alike
from moontap.lineage import Key, Lineage, State, Tracked, key_of, waits
from moontap.wire.types import Call


class Claims[Origin]:
    """The delivered calls that still wait: the same id, tool and arguments; at need, and where a
    client spells arguments anew, the same id and tool.

    calls: those that go first, first. claimed: those that were claimed already.
    """

    def __init__(self, calls: Iterable[Tracked[Origin]], claimed: set[Tracked[Origin]]) -> None:
        found: dict[tuple[str | None, str], list[Tracked[Origin]]] = {}
        for call in calls:
            if waits(call):
                found.setdefault((call.id, call.name), []).append(call)
        self._alike = {
            known: Alike(some, lambda call: call.key, claimed) for known, some in found.items()
        }

    def take(self, call: Call, *, exactly: bool = False) -> Tracked[Origin] | None:
        """exactly: with the same arguments, or none."""
        alike = self._alike.get((call.id, call.name))
        return alike.take(lambda: key_of(call), exactly=exactly) if alike else None


class Revivals[Origin]:
    """Calls that were given up for another reply's, and that the client did use after all: two
    agents with one prompt and no name look like a retry until their calls differ."""

    def __init__(self, calls: Iterable[Tracked[Origin]], claimed: set[Tracked[Origin]]) -> None:
        given_up = (call for call in calls if call.state is State.SUPERSEDED)
        self._alike = Alike(given_up, lambda call: call.key, claimed)

    def take(self, call: Call) -> Tracked[Origin] | None:
        """It waits again."""
        tracked = self._alike.take(lambda: key_of(call), exactly=True)
        if tracked:
            tracked.state = State.WAITING
        return tracked


class Recollection[Origin]:
    """The calls of a lineage that no message holds, for asking ever further back.

    used: the ids (`id()`) of those that a message holds.
    """

    def __init__(self, lineage: Lineage[Origin], used: set[int]) -> None:
        self._lineage = lineage
        self._used = used
        self._free: dict[Key, list[int]] = {}
        self._answered: dict[tuple[Key, bytes | None], list[int]] = {}

    def latest(self, key: Key, answer: bytes | None, limit: int) -> int | None:
        """The position of the latest one before `limit` with that key: one that had this very
        answer, else any. limit: never more than the time before."""
        if key not in self._free:
            calls = self._lineage.calls
            places = self._lineage.places.get(key, ())
            self._free[key] = [at for at in places if id(calls[at]) not in self._used]
            for at in self._free[key]:
                self._answered.setdefault((key, calls[at].answer), []).append(at)
        same = _before(self._answered.get((key, answer)), limit) if answer else None
        return _before(self._free[key], limit) if same is None else same


def _before(places: list[int] | None, limit: int) -> int | None:
    while places and places[-1] >= limit:
        places.pop()
    return places[-1] if places else None
