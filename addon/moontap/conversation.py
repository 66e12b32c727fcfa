"""Which calls of a request are already known, which are new, and which pair is complete.

One exchange after the other goes in (the request's messages, the calls its reply delivered), the
pairs that became certain come out, each once. Pure: no mitmproxy, no files, no clock.

How a request is placed: a conversation's requests repeat its messages, so a request belongs to
the branch with which it shares the longest beginning. Beginnings are compared by their tool
skeleton (role, call ids and names, result ids), which clients do not change, and are believed only
if enough of what they say is the same: clients move cache marks, add reminders and clear old
results, and K3's ids repeat, so neither alone would do. A branch that opens with the same text goes
before one that does not: reminders and `(no content)` stand alike in many conversations.

- Calls within the shared beginning are the ones seen there before.
- A call behind it is one that a reply has delivered and that waits for its result; after a rewind
  or a compaction, one of the earlier calls of the same lineage; else one the tap never saw come.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from moontap.claims import Claims, Recollection, Revivals
from moontap.lineage import Lineage, Outcome, State, Status, Tracked, digest_of, key_of, waits
from moontap.pairing import Pairing, Place
from moontap.wire.types import Call, Message

MAX_BRANCHES = 256
"""Branches kept per session and agent; the one that was quiet the longest is closed first."""

MAX_SESSIONS = 256
"""Sessions (with their agents) kept in all."""


@dataclass(slots=True)
class _Attempt[Origin]:
    """The calls that one reply delivered, and how many messages its request had.

    number: counts the attempts of a run, in the order they came.
    """

    at: int
    calls: list[Tracked[Origin]]
    number: int = field(default_factory=count().__next__)


class _Likeness(NamedTuple):
    """How much of a history another one shares; the greater, the nearer.

    opening: their first texts are equal. length: messages that they begin with in common; 0 where
    that is not believed. same: how many of those messages' texts and results are equal.
    """

    opening: bool
    length: int
    same: int


_UNLIKE = _Likeness(False, 0, 0)


@dataclass(slots=True)
class _Print:
    """A history in short, for comparing: numbers for each message, see `wire.types.Message`."""

    skeleton: list[int]
    said: list[int]
    heard: list[int]

    @classmethod
    def of(cls, messages: Sequence[Message]) -> "_Print":
        """The print of a history."""
        return cls(
            [message.skeleton for message in messages],
            [message.said for message in messages],
            [message.heard for message in messages],
        )

    def likeness(self, other: "_Print") -> _Likeness:
        """With the same opening half of the texts must agree; without, more than half of all."""
        length = min(len(self.skeleton), len(other.skeleton))
        if self.skeleton[:length] != other.skeleton[:length]:
            pairs = zip(self.skeleton, other.skeleton, strict=False)
            length = next(n for n, (mine, theirs) in enumerate(pairs) if mine != theirs)
        if not length:
            return _UNLIKE
        said, said_of = _equal(self.said, other.said, length)
        heard, heard_of = _equal(self.heard, other.heard, length)
        first = next((n for n in range(length) if self.said[n]), 0)
        opening = self.said[first] == other.said[first]
        same = said + heard
        believed = 2 * said >= said_of if opening else 2 * same > said_of + heard_of
        return _Likeness(opening, length, same) if believed else _UNLIKE


def _equal(mine: list[int], theirs: list[int], length: int) -> tuple[int, int]:
    """How many of the first numbers are equal, of those that are not 0 on both sides."""
    if mine[:length] == theirs[:length]:
        count = length - mine[:length].count(0)
        return count, count
    pairs = [(a, b) for a, b in zip(mine[:length], theirs[:length], strict=True) if a or b]
    return sum(a == b for a, b in pairs), len(pairs)


@dataclass(slots=True)
class _Branch[Origin]:
    """One line of a conversation, as its longest request showed it."""

    lineage: Lineage[Origin]
    print: _Print
    rows: list[list[Tracked[Origin]]]  # the calls, by message
    pairing: Pairing  # at the end of the messages
    waiting: list[Place]  # calls in the rows without a result so far
    attempts: list[_Attempt[Origin]]


@dataclass(frozen=True, slots=True)
class Placed[Origin]:
    """Where an exchange belongs.

    label: the name of its conversation. number: which of the run, from 1 on. outcomes:
    what became certain. new: the first message that its conversation had not seen before.
    pairing: of the messages from `new` on at least. again: where all was seen before and a reply
    to just this history had delivered calls, the calls of the latest one. branch, at: where its
    reply goes, for the tracker.
    """

    label: str
    number: int
    outcomes: list[Outcome[Origin]]
    new: int
    pairing: Pairing
    again: tuple[Tracked[Origin], ...] = ()
    branch: "_Branch[Origin] | None" = field(default=None, repr=False, compare=False)
    at: int = field(default=0, repr=False, compare=False)


class Tracker[Origin]:
    """The conversations of one run.

    Bounded: `MAX_SESSIONS` sessions of `MAX_BRANCHES` branches; what is dropped is closed first.
    """

    def __init__(self) -> None:
        self._count = 0
        self._sessions: OrderedDict[object, list[_Branch[Origin]]] = OrderedDict()

    def exchange(
        self,
        session: object,
        messages: Sequence[Message],
        delivered: Sequence[Tracked[Origin]],
        stranger: Origin,
        label: str = "",
    ) -> Placed[Origin]:
        """Take in an exchange, in the order in which exchanges ended: `place` and `deliver` in one.

        delivered: the calls of its reply as the client got them.
        """
        placed = self.place(session, messages, stranger, label)
        self.deliver(placed, delivered)
        return placed

    def place(
        self, session: object, messages: Sequence[Message], stranger: Origin, label: str = ""
    ) -> Placed[Origin]:
        """Take in a request.

        session: what tells sessions and agents apart (hashable). stranger: the origin of calls in
        its history that no reply delivered. label: a name for the conversation, if this request
        begins it.
        """
        branches = self._sessions.setdefault(session, [])
        self._sessions.move_to_end(session)
        turn = _Turn(messages, branches, stranger)
        unrelated: Lineage[Origin] = Lineage(label, self._count + 1)
        branch, outcomes = turn.place(unrelated)
        self._count += branch.lineage is unrelated
        branches[:] = [other for other in branches if other is not branch]
        branches.append(branch)
        while len(branches) > MAX_BRANCHES:
            outcomes += _close(branches.pop(0))
        while len(self._sessions) > MAX_SESSIONS:
            _, dropped = self._sessions.popitem(last=False)
            outcomes += [outcome for branch in dropped for outcome in _close(branch)]
        return Placed(
            branch.lineage.label,
            branch.lineage.number,
            outcomes,
            turn.new,
            turn.pairing,
            turn.again,
            branch,
            len(messages),
        )

    def deliver(self, placed: Placed[Origin], calls: Sequence[Tracked[Origin]]) -> None:
        """Take in the calls of the reply to a request that was placed, as the client got them."""
        if calls and placed.branch:
            placed.branch.attempts.append(_Attempt(placed.at, list(calls)))
            placed.branch.lineage.calls.extend(calls)

    def close(self) -> list[Outcome[Origin]]:
        """The run ends: every call that still waits is unanswered."""
        branches = [branch for session in self._sessions.values() for branch in session]
        self._sessions.clear()
        return [outcome for branch in branches for outcome in _close(branch)]


class _Turn[Origin]:
    """One request placed among the branches of its session; step by step, each step once.

    Where it goes on with what a branch ended with, which is the rule, its cost is that of
    comparing the histories and looking at what is new.
    """

    def __init__(
        self,
        messages: Sequence[Message],
        branches: Sequence[_Branch[Origin]],
        stranger: Origin,
    ) -> None:
        self._messages = messages
        self._stranger = stranger
        self._print = _Print.of(messages)
        likenesses = [(branch, self._print.likeness(branch.print)) for branch in branches]
        near, nearest = None, _UNLIKE
        for branch, likeness in likenesses:  # the latest in use stands last, and wins a tie
            if likeness.length and likeness >= nearest:
                near, nearest = branch, likeness
        self._near = near
        self._shared = nearest.length
        self._extends = near is not None and len(messages) > self._shared == len(near.rows)
        self._attempts = self._reached(likenesses)
        if near and self._extends:
            self.pairing = near.pairing.copy()
            self.pairing.add(messages[self._shared :])
        else:
            self.pairing = Pairing(messages)
        self._lineage = near.lineage if near else self._kin(branches)
        self._rows: list[list[Tracked[Origin]]] = near.rows[: self._shared] if near else []

    def _reached(
        self, likenesses: Sequence[tuple[_Branch[Origin], _Likeness]]
    ) -> list[_Attempt[Origin]]:
        """The replies to what this request begins with, also those that another branch of the
        lineage holds: after a second rewind the nearest branch need not be the one answered."""
        if not self._near:
            return []
        found = {id(a): a for a in self._near.attempts if a.at <= self._shared}
        for branch, (_, shared, _) in likenesses:
            if branch is not self._near and branch.lineage is self._near.lineage:
                found.update((id(a), a) for a in branch.attempts if a.at <= shared)
        return sorted(found.values(), key=lambda attempt: attempt.number)

    @property
    def new(self) -> int:
        """The first message that was not seen before."""
        return self._shared

    @property
    def again(self) -> tuple[Tracked[Origin], ...]:
        """The calls of the latest reply to just this history, where there was one."""
        at = len(self._messages)
        same = [attempt for attempt in self._attempts if attempt.at == at == self._shared]
        return tuple(same[-1].calls) if same else ()

    def place(self, unrelated: Lineage[Origin]) -> tuple[_Branch[Origin], list[Outcome[Origin]]]:
        """The branch that the request belongs to, brought up to date, and what is now certain.

        unrelated: its lineage where it belongs to no conversation that is known.
        """
        lineage = self._lineage = self._lineage or unrelated
        self._renew_repeated()
        self._place_new(lineage)
        outcomes = [*self._answered(lineage), *self._dropped(lineage)]
        waiting = [place for place in self._places() if waits(self._call(place))]
        # Given-up calls are kept: a twin with the same prompt may yet answer them.
        attempts = [a for a in self._attempts if any(not _is_reported(c) for c in a.calls)]
        known = {id(call) for attempt in attempts for call in attempt.calls}
        for place in waiting:
            if id(call := self._call(place)) not in known:
                attempts.append(_Attempt(place[0], [call]))
        near = self._near
        if near and self._extends:
            near.print, near.rows, near.pairing = self._print, self._rows, self.pairing
            near.waiting, near.attempts = waiting, attempts
            return near, outcomes
        if near and self._shared == len(self._messages):
            # Said before: a retry, or a second run of the same conversation.
            near.rows[: self._shared] = self._rows
            near.waiting = waiting + [place for place in near.waiting if place[0] >= self._shared]
            near.attempts = attempts + [a for a in near.attempts if a.at > self._shared]
            return near, outcomes
        branch = _Branch(lineage, self._print, self._rows, self.pairing, waiting, attempts)
        return branch, outcomes

    def _call(self, place: Place) -> Tracked[Origin]:
        return self._rows[place[0]][place[1]]

    def _places(self) -> Iterator[Place]:
        """Where calls may still wait: in order, and without those known to be done with."""
        start = 0
        if self._near and self._extends:
            yield from self._near.waiting
            start = self._shared
        for position in range(start, len(self._rows)):
            yield from ((position, number) for number in range(len(self._rows[position])))

    def _kin(self, branches: Sequence[_Branch[Origin]]) -> Lineage[Origin] | None:
        """The lineage of a request that shares no beginning: after a compaction it still holds
        calls, with their results, that were seen; at least half of what it holds."""
        seen = []
        for (position, number), (at, which) in self.pairing.answers.items():
            call = self._messages[position].calls[number]
            seen.append((key_of(call), digest_of(self._messages[at].results[which])))
        best, most = None, max(1, (len(seen) + 1) // 2)
        for lineage in {id(branch.lineage): branch.lineage for branch in branches}.values():
            count = lineage.count(seen)
            if count >= most:
                best, most = lineage, count
        return best

    def _renew_repeated(self) -> None:
        """Where a later reply to the same messages waits, a repeated call is that reply's: the
        same conversation, run a second time."""
        claimed: set[Tracked[Origin]] = set()
        for at, attempts in sorted(_by_place(self._attempts).items()):
            if at >= self._shared:
                break
            claims = Claims(_latest_first(attempts), claimed)
            revivals = Revivals(_latest_first(attempts), claimed)
            row = list(self._rows[at])
            for number, call in enumerate(self._messages[at].calls):
                tracked = claims.take(call, exactly=True)
                if tracked is None and row[number].key != key_of(call):
                    tracked = revivals.take(call)
                if tracked:
                    row[number] = tracked
            self._rows[at] = row

    def _place_new(self, lineage: Lineage[Origin]) -> None:
        """Find the tracked call for every call behind the shared beginning."""
        claims = Claims(_latest_first(self._attempts), set())
        found: dict[Place, Tracked[Origin]] = {}
        strangers: list[tuple[Place, Call]] = []
        for position in range(self._shared, len(self._messages)):
            for number, call in enumerate(self._messages[position].calls):
                tracked = claims.take(call)
                if tracked:
                    found[position, number] = tracked
                else:
                    strangers.append(((position, number), call))
        if strangers and not self._extends:
            strangers = self._recall(lineage, strangers, found)
        first: dict[str | None, Place] = {}
        for position, message in enumerate(self._messages if strangers else ()):
            for number, call in enumerate(message.calls):
                first.setdefault(call.id, (position, number))
        for place, call in strangers:
            duplicate = bool(call.id) and first[call.id] != place
            tracked = Tracked(call.id, call.name, call.arguments, self._stranger, duplicate)
            found[place] = tracked
            lineage.calls.append(tracked)
        for position in range(self._shared, len(self._messages)):
            count = len(self._messages[position].calls)
            self._rows.append([found[position, number] for number in range(count)])

    def _recall(
        self,
        lineage: Lineage[Origin],
        strangers: list[tuple[Place, Call]],
        found: dict[Place, Tracked[Origin]],
    ) -> list[tuple[Place, Call]]:
        """Match calls with earlier ones of the lineage, the latest first and in order, which is
        how a compacted history keeps them; give back those that match none."""
        used = {id(call) for row in self._rows for call in row}
        used |= {id(call) for call in found.values()}
        known = Recollection(lineage, used)
        unknown = []
        limit = len(lineage.calls)
        for place, call in reversed(strangers):
            # The one that had this result; with reused ids others look the same but for that.
            at = known.latest(key_of(call), self._digest_at(place), limit)
            if at is None:
                unknown.append((place, call))
                continue
            found[place] = lineage.calls[at]
            limit = at
        return unknown[::-1]

    def _digest_at(self, place: Place) -> bytes | None:
        """The digest of the result that a call of the history has in it."""
        answer = self.pairing.answers.get(place)
        return digest_of(self._messages[answer[0]].results[answer[1]]) if answer else None

    def _answered(self, lineage: Lineage[Origin]) -> Iterator[Outcome[Origin]]:
        """Pairs completed by this request, calls it went on without, results without a call."""
        places = [place for place in self._places() if waits(self._call(place))]
        last_reply = self._last_reply() if places else -1
        for place in places:
            if answer := self.pairing.answers.get(place):
                result = self._messages[answer[0]].results[answer[1]]
                yield lineage.report(self._call(place), result, place[0])
            elif place[0] < last_reply:
                yield lineage.report(self._call(place), None, place[0])
        waiting = self._waiting_calls() if self.pairing.orphans else {}
        for position, number in self.pairing.orphans:
            result = self._messages[position].results[number]
            if lost := _pop(waiting.get(result.id)):
                yield lineage.report(lost, result)
            elif position >= self._shared and lineage.is_new_orphan(result):
                yield Outcome(lineage.label, Status.ORPHAN, None, result)

    def _last_reply(self) -> int:
        positions = range(len(self._messages) - 1, -1, -1)
        return next((n for n in positions if self._messages[n].role == "assistant"), -1)

    def _waiting_calls(self) -> dict[str | None, list[Tracked[Origin]]]:
        """The delivered calls without a result, by id, of the latest reply last, each reply's
        first one last: a result may answer one although the client dropped the call."""
        calls: dict[str | None, list[Tracked[Origin]]] = {}
        for attempt in self._attempts:
            for call in reversed(attempt.calls):
                if waits(call):
                    calls.setdefault(call.id, []).append(call)
        return calls

    def _dropped(self, lineage: Lineage[Origin]) -> Iterator[Outcome[Origin]]:
        """Delivered calls that the conversation went on without."""
        rivals_at = _by_place(self._attempts)
        passed = sorted(at for at in rivals_at if at < len(self._messages))
        placed = {id(call) for row in self._rows[min(passed, default=0) :] for call in row}
        for at in passed:
            rivals = rivals_at[at]
            used = {
                attempt.number
                for attempt in rivals
                if any(id(c) in placed or _is_reported(c) for c in attempt.calls)
            }
            if not used and not self._rows[at]:
                used = {rivals[-1].number}
            for attempt in rivals:
                for call in attempt.calls:
                    if not waits(call) or id(call) in placed:
                        continue
                    if attempt.number in used:
                        yield lineage.report(call, None, dropped=True)
                    else:
                        call.state = State.SUPERSEDED


def _pop[Origin](waiting: list[Tracked[Origin]] | None) -> Tracked[Origin] | None:
    while waiting:
        if waits(call := waiting.pop()):
            return call
    return None


def _latest_first[Origin](attempts: Sequence[_Attempt[Origin]]) -> Iterator[Tracked[Origin]]:
    return (call for attempt in reversed(attempts) for call in attempt.calls)


def _by_place[Origin](attempts: Sequence[_Attempt[Origin]]) -> dict[int, list[_Attempt[Origin]]]:
    found: dict[int, list[_Attempt[Origin]]] = {}
    for attempt in attempts:
        found.setdefault(attempt.at, []).append(attempt)
    return found


def _is_reported[Origin](call: Tracked[Origin]) -> bool:
    return call.state is State.REPORTED


def _close[Origin](branch: _Branch[Origin]) -> Iterator[Outcome[Origin]]:
    """What still waits is unanswered; of several replies to one request, the last one's."""
    last = {attempt.at: attempt for attempt in branch.attempts}
    for attempt in last.values():
        for call in attempt.calls:
            if waits(call):
                yield branch.lineage.report(call, None)
