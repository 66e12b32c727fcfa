"""Decides what happens to a request before it goes out, from what its conversation has done so far.

Requests and the replies to them in, in the order in which they begin and end; a reminder, a refusal
or nothing out. It counts as the check `no-progress` does. Pure.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from moontap.conversation import Placed, Tracker
from moontap.findings import memory
from moontap.findings.conversation import Conversation
from moontap.findings.progress import Step, Streak
from moontap.findings.turn import Got, Sent, Turn
from moontap.findings.types import Part
from moontap.guard import texts
from moontap.guard.newest import Newest, newest
from moontap.guard.texts import Mask
from moontap.guard.types import LIMIT, NO_PROGRESS, Decision, Guarding, Refusal, Reminder
from moontap.guard.usage import Usage
from moontap.identity import Identity, session_of
from moontap.lineage import Tracked
from moontap.origin import Origin
from moontap.rules import Rules
from moontap.wire.types import Protocol, Reply, Request

_MOST = 512  # conversations, and sessions; the one that was quiet the longest is forgotten first
_MOST_FLOWS = 4096
_QUOTED = 16  # calls whose arguments are kept, to be quoted


@dataclass(frozen=True, slots=True)
class Asked:
    """A request about to go out. flow: its id. at: when it began, seconds since the epoch. size:
    bytes of its body. retry: what the SDK's retry header says."""

    flow: str
    protocol: Protocol
    identity: Identity
    request: Request
    at: float | None = None
    size: int = 0
    retry: int | None = None


@dataclass(slots=True)
class _Thread:
    """One conversation. quoted: arguments of its latest calls, by tool and digest. told: the
    streak that was reminded of, and the level. reminded, blocked: what the newest turn of the
    request said that was reminded, or refused, and what it got; of the former also how many
    messages it had."""

    known: Conversation = field(default_factory=Conversation)
    quoted: OrderedDict[tuple[str, bytes], bytes] = field(default_factory=OrderedDict)
    told: tuple[Step, int] | None = None
    reminded: tuple[tuple[int, Newest], Reminder] | None = None
    blocked: tuple[Newest, Refusal] | None = None


@dataclass(frozen=True, slots=True)
class _Open:
    turn: Turn
    placed: Placed[Origin]
    thread: _Thread
    usage: Usage


class Guard:
    """The conversations and sessions of one run. mask: takes secrets out of what is quoted.

    Bounded; not for two threads at once.
    """

    def __init__(self, rules: Rules, mask: Mask) -> None:
        self._rules = rules
        self._mask = mask
        self._numbers = count(1)
        self._tracker: Tracker[Origin] = Tracker()
        self._threads: OrderedDict[int, _Thread] = OrderedDict()
        self._usages: OrderedDict[object, Usage] = OrderedDict()
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._places: OrderedDict[str, tuple[int, object]] = OrderedDict()

    def ask(self, asked: Asked, guarding: Guarding) -> Decision:
        """What is to happen to a request. A refused one must be `heard` without a reply."""
        request, identity = asked.request, asked.identity
        origin = Origin(asked.protocol, identity.agent, request.model)
        placed = self._tracker.place(
            (asked.protocol, identity), request.messages, origin, session_of(identity, request)
        )
        session = identity.session or placed.number
        thread = _recent(self._threads, placed.number, _Thread)
        usage = _recent(self._usages, (asked.protocol, session), Usage)
        usage.ask(asked.at)
        turn = self._turn(asked, placed)
        turn.before = thread.known
        self._open[asked.flow] = _Open(turn, placed, thread, usage)
        self._places[asked.flow] = placed.number, (asked.protocol, session)
        _keep(self._open, _MOST_FLOWS)
        _keep(self._places, _MOST_FLOWS)
        says = newest(request.messages, self._rules.progress)
        if guarding is Guarding.BLOCK and thread.blocked and not placed.outcomes:
            said, refusal = thread.blocked
            if says == said:  # refused before, and nothing new in it but what clients add
                return refusal
        before = thread.known.progress.streak
        memory.take_request(thread.known, turn)
        self._quote(thread, turn)
        if guarding is Guarding.BLOCK:
            return self._refused(thread, before, says) or self._limited(usage, asked)
        if guarding is Guarding.REMIND:
            return self._reminded(thread, turn, says)
        return None

    def heard(self, flow: str, reply: Reply | None, status: int = 0, *, cut: bool = False) -> None:
        """The reply to a request has ended, as the client got it. reply: None where upstream sent
        none, or was not asked. cut: it broke off."""
        opened = self._open.pop(flow, None)
        if opened is None:
            return
        if reply is None:
            memory.take_reply(opened.thread.known, opened.turn)
            return
        turn, sent = opened.turn, opened.turn.sent
        assert sent is not None
        calls = [
            Tracked(
                call.id,
                call.name,
                call.arguments.encode("utf-8", "surrogatepass"),
                Origin(turn.protocol, turn.agent, turn.model, flow=flow),
            )
            for call in reply.calls
        ]
        turn.got = Got(reply, tuple(call.id for call in calls), status, cut=cut)
        self._tracker.deliver(opened.placed, calls)
        memory.take_reply(opened.thread.known, turn)
        opened.usage.add(flow, len(calls), reply.usage)

    def release(self, flows: Sequence[str] = ()) -> int:
        """Let conversations go on that were stopped: those of these flows, or all. How many
        conversations and sessions that was. Their counts begin anew."""
        places = [self._places[flow] for flow in flows if flow in self._places]
        numbers, sessions = {number for number, _ in places}, {session for _, session in places}
        every, released = not flows, 0
        for number, thread in self._threads.items():
            if thread.blocked is not None and (every or number in numbers):
                self._lift(thread)
                released += 1
        for session, usage in self._usages.items():
            if usage.blocked and (every or session in sessions):
                self._usages[session] = Usage()
                released += 1
        return released

    def _turn(self, asked: Asked, placed: Placed[Origin]) -> Turn:
        request = asked.request
        sent = Sent(request, placed.new, placed.pairing, placed.again, asked.size, asked.retry)
        return Turn(
            number=next(self._numbers),
            conversation=placed.number,
            protocol=asked.protocol,
            session=placed.label,
            agent=asked.identity.agent,
            model=request.model,
            parts=Part.HISTORY | Part.TURNS,
            rules=self._rules,
            sent=sent,
            outcomes=tuple(placed.outcomes),
            flow=asked.flow,
            at=asked.at,
        )

    def _quote(self, thread: _Thread, turn: Turn) -> None:
        """Remember the arguments of the latest calls."""
        assert turn.sent is not None
        made = [outcome.call for outcome in turn.outcomes[-_QUOTED:]]
        for call in [*made, *turn.sent.again[-_QUOTED:]]:
            if call:
                key = call.name, self._rules.progress.arguments(call.name, call.arguments)
                thread.quoted[key] = call.arguments
                thread.quoted.move_to_end(key)
        _keep(thread.quoted, _QUOTED)

    def _reminded(self, thread: _Thread, turn: Turn, says: Newest) -> Reminder | None:
        streak, sent = thread.known.progress.streak, turn.sent
        assert sent is not None
        request = len(sent.request.messages), says
        level = -1
        if streak:
            level = sum(streak.count >= one for one in self._rules.guard.remind) - 1
        told, reminded = thread.told, thread.reminded
        if streak is None or level < 0 or (told and told[0] == streak.first and told[1] >= level):
            if streak is None:
                thread.told = None
            if sent.is_repeat and reminded and reminded[0] == request:
                return replace(reminded[1], again=True)
            return None
        thread.told = streak.first, level
        arguments = [thread.quoted.get((s.tool, s.arguments), b"") for s in streak.cycle]
        said = f"{texts.tools(streak)} was called {streak.count} times in a row to no avail"
        reminder = Reminder(
            texts.reminder(streak, arguments, level, self._mask), streak.count, said
        )
        thread.reminded = request, reminder
        return reminder

    def _refused(self, thread: _Thread, before: Streak | None, says: Newest) -> Refusal | None:
        """before: the streak as it was before this request."""
        streak = thread.known.progress.streak
        allowed = self._allowed(streak) if streak else 0
        if streak is None or streak.count < allowed:
            thread.blocked = None
            return None
        if thread.blocked and streak == before:
            self._lift(thread)  # other arguments, another result, something that a person says
            return None
        names = [step.tool for step in streak.cycle]
        facts = {
            "tool": names[-1],
            "tools": names,
            "count": streak.count,
            "limit": allowed,
            "first_exchange": streak.first.flow,
            "last_exchange": streak.cycle[-1].flow,
        }
        refusal = Refusal(NO_PROGRESS, texts.no_progress(streak, allowed), facts, streak.count)
        thread.blocked = says, refusal
        return refusal

    def _allowed(self, streak: Streak) -> int:
        """How often the same may be done: the lowest limit of the tools concerned."""
        rules = self._rules
        classes = (rules.tools.of(step.tool) for step in streak.cycle)
        return min(rules.guard.classes.get(kind or "", rules.guard.block) for kind in classes)

    def _limited(self, usage: Usage, asked: Asked) -> Refusal | None:
        over = usage.over(self._rules.guard, asked.at)
        usage.blocked = over is not None
        if over is None:
            return None
        what, used, allowed = over
        facts = {
            "limit": what,
            "used": used,
            "allowed": allowed,
            "first_exchange": usage.first,
            "last_exchange": usage.last,
        }
        return Refusal(LIMIT, texts.over_limit(what, used, allowed), facts)

    def _lift(self, thread: _Thread) -> None:
        thread.known.progress.reset()
        thread.blocked = thread.told = thread.reminded = None


def _recent[Key, Value](known: OrderedDict[Key, Value], key: Key, make: type[Value]) -> Value:
    if key not in known:
        known[key] = make()
    known.move_to_end(key)
    _keep(known, _MOST)
    return known[key]


def _keep[Key, Value](known: OrderedDict[Key, Value], most: int) -> None:
    while len(known) > most:
        known.popitem(last=False)
