"""Where two captures of the same task part: calls, arguments, results, statuses, ids.

The log lines of two captures in, their differences out, in order. Pure; it reads and prints
nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Any

_MOST_COMPARED = 4_000_000  # calls of one side times those of the other


class Kind(StrEnum):
    """What is different."""

    ONLY_A = "only in A"
    ONLY_B = "only in B"
    ARGUMENTS = "other arguments"
    STATUS = "other status"
    RESULT = "other result"
    ID = "other id"


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a conversation. number: from 1 on. line: as `pairs.jsonl` has it."""

    number: int
    line: Mapping[str, Any]

    @property
    def key(self) -> tuple[Any, Any]:
        """What makes two calls the same: the tool and its arguments."""
        return self.line["tool"], self.line["arguments_sha256"]


@dataclass(frozen=True, slots=True)
class Conversation:
    """The calls that one agent of a session made, in order."""

    session: str
    agent: str | None
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference. a, b: the calls; None where there is none on that side."""

    kind: Kind
    a: Call | None
    b: Call | None


@dataclass(frozen=True, slots=True)
class Compared:
    """Two conversations, or one that has no counterpart. other_ids: aligned calls whose id differs,
    counted also where ids are not compared; same: aligned calls in all."""

    a: Conversation | None
    b: Conversation | None
    differences: tuple[Difference, ...]
    same: int = 0
    other_ids: int = 0


@dataclass(slots=True)
class Calls:
    """Collects the lines of one capture, in the order of the log, and sorts them by conversation.

    Lines come when a pair is certain, so results of parallel calls may be out of order: calls are
    put as the model made them.
    """

    _lines: dict[
        tuple[str, str | None], list[tuple[tuple[int, int, int, int], Mapping[str, Any]]]
    ] = field(default_factory=dict)
    _count: int = 0

    def add(self, line: Mapping[str, Any], place: int) -> None:
        """place: the number of the exchange that brought the call, or that made the line certain
        where the call was seen first in a history."""
        order = (place, line["choice"] or 0, line["index"] or 0, self._count)
        self._count += 1
        self._lines.setdefault((line["session"], line["agent"]), []).append((order, line))

    def conversations(self) -> list[Conversation]:
        """All of them, in the order of their first calls."""
        made = []
        for (session, agent), lines in self._lines.items():
            lines.sort(key=lambda one: one[0])
            calls = tuple(Call(number, line) for number, (_, line) in enumerate(lines, 1))
            made.append((lines[0][0], Conversation(session, agent, calls)))
        return [conversation for _, conversation in sorted(made, key=lambda one: one[0])]


def compare(
    a: Sequence[Conversation], b: Sequence[Conversation], *, ids: bool = False
) -> list[Compared]:
    """Compare two captures. ids: a call's id counts, too."""
    return [
        _compared(mine, theirs, ids)
        if mine and theirs
        else Compared(mine, theirs, tuple(_alone(mine, theirs)))
        for mine, theirs in _counterparts(a, b)
    ]


def _alone(a: Conversation | None, b: Conversation | None) -> Iterable[Difference]:
    for call in a.calls if a else ():
        yield Difference(Kind.ONLY_A, call, None)
    for call in b.calls if b else ():
        yield Difference(Kind.ONLY_B, None, call)


def _counterparts(
    a: Sequence[Conversation], b: Sequence[Conversation]
) -> list[tuple[Conversation | None, Conversation | None]]:
    """Which conversation of B is that of A: of the same name, else (names of sessions and agents
    change from run to run) the one with the most calls in common, else the next in order."""
    by_name = {(one.session, one.agent): one for one in b}
    found: dict[int, Conversation] = {}
    for at, mine in enumerate(a):
        if theirs := by_name.pop((mine.session, mine.agent), None):
            found[at] = theirs
    free = [one for one in b if (one.session, one.agent) in by_name]
    bags = {id(one): Counter(call.key for call in one.calls) for one in (*a, *free)}
    for likely in (True, False):
        for at, mine in enumerate(a):
            if at in found:
                continue
            # A sub-agent is compared with a sub-agent only.
            rivals = [one for one in free if (one.agent is None) == (mine.agent is None)]
            common = [(bags[id(mine)] & bags[id(one)]).total() for one in rivals]
            if not rivals or (likely and not max(common)):
                continue
            # `index` gives the first of equals.
            found[at] = rivals[common.index(max(common))]
            free = [one for one in free if one is not found[at]]
    pairs: list[tuple[Conversation | None, Conversation | None]] = [
        (mine, found.get(at)) for at, mine in enumerate(a)
    ]
    return pairs + [(None, one) for one in free]


def _compared(a: Conversation, b: Conversation, ids: bool) -> Compared:
    differences: list[Difference] = []
    same = other_ids = 0
    for mine, theirs in _aligned(a.calls, b.calls):
        if mine is None or theirs is None:
            differences.append(Difference(Kind.ONLY_A if mine else Kind.ONLY_B, mine, theirs))
            continue
        same += 1
        other_id = mine.line["id"] != theirs.line["id"]
        other_ids += other_id
        kinds = {
            Kind.ARGUMENTS: mine.key != theirs.key,
            Kind.STATUS: mine.line["status"] != theirs.line["status"],
            Kind.RESULT: _other_result(mine, theirs),
            Kind.ID: ids and other_id,
        }
        differences += [Difference(kind, mine, theirs) for kind, holds in kinds.items() if holds]
    return Compared(a, b, tuple(differences), same, other_ids)


def _other_result(a: Call, b: Call) -> bool:
    """Whether the same call got another result. Where there is none, the status says so."""
    results = a.line["result_sha256"], b.line["result_sha256"]
    return a.key == b.key and None not in results and results[0] != results[1]


def _aligned(a: Sequence[Call], b: Sequence[Call]) -> Iterable[tuple[Call | None, Call | None]]:
    """The calls side by side, in order; of those that differ, calls of the same tool together."""
    left, right = [one.key for one in a], [one.key for one in b]
    start = _common(left, right)
    end = _common(left[start:][::-1], right[start:][::-1])
    yield from zip(a[:start], b[:start], strict=True)
    mine, theirs = a[start : len(a) - end], b[start : len(b) - end]
    keys = left[start : len(a) - end], right[start : len(b) - end]
    if len(mine) * len(theirs) > _MOST_COMPARED:
        yield from _by_tool(mine, theirs)
    else:
        matcher = SequenceMatcher(None, *keys, autojunk=False)
        for kind, i, j, k, m in matcher.get_opcodes():
            if kind == "equal":
                yield from zip(mine[i:j], theirs[k:m], strict=True)
            else:
                yield from _by_tool(mine[i:j], theirs[k:m])
    yield from zip(a[len(a) - end :], b[len(b) - end :], strict=True)


def _common(left: Sequence[object], right: Sequence[object]) -> int:
    """How many of them are equal, from the beginning on."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((at for at, (x, y) in pairs if x != y), min(len(left), len(right)))


def _by_tool(a: Sequence[Call], b: Sequence[Call]) -> Iterable[tuple[Call | None, Call | None]]:
    """Calls that stand in each other's place: the same tool was called with other arguments."""
    at = 0
    for mine in a:
        same = (n for n in range(at, len(b)) if b[n].line["tool"] == mine.line["tool"])
        found = next(same, None)
        if found is None:
            yield mine, None
            continue
        yield from ((None, one) for one in b[at:found])
        yield mine, b[found]
        at = found + 1
    yield from ((None, one) for one in b[at:])


def values(a: Any, b: Any, most: int = 3) -> list[tuple[str, Any, Any]]:
    """Where two JSON values differ: paths with both values, `most` at most.

    A value that is on one side only is `...` on the other. The path of the whole value is "".
    """
    found: list[tuple[str, Any, Any]] = []
    _values("", a, b, found, most)
    return found


def _values(path: str, a: Any, b: Any, found: list[tuple[str, Any, Any]], most: int) -> None:
    if len(found) >= most or (type(a) is type(b) and a == b):
        return
    if isinstance(a, dict) and isinstance(b, dict):
        for name in dict.fromkeys((*a, *b)):
            inner = f"{path}.{name}" if path else str(name)
            _values(inner, a.get(name, ...), b.get(name, ...), found, most)
    elif isinstance(a, list) and isinstance(b, list):
        for at in range(max(len(a), len(b))):
            mine, theirs = (one[at] if at < len(one) else ... for one in (a, b))
            _values(f"{path}[{at}]", mine, theirs, found, most)
    else:
        found.append((path, a, b))
