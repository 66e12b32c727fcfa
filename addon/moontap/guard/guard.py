"""Decides what happens to a request before it goes out, from what its conversation has done so far.

Requests and the replies to them in, in the order in which they begin and end; a reminder, a refusal
or nothing out. It counts as the check `no-progress` does. Pure.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from moontap.conversation import Placed, Tracker
from moontap.findings import memory
from moontap.findings.conversation import Conversation
from moontap.findings.progress import Step, Streak
from moontap.findings.repeats import is_opening
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
from moontap.recent import keep, recent
from moontap.rules import Rules
from moontap.wire.types import Protocol, Reply, Request

_MOST = 512  # conversations, and sessions; the one that was quiet the longest is forgotten first
_MOST_FLOWS = 4096


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
    """One conversation. told: the streak that was reminded of, and the level. reminded, blocked:
    what the newest turn of the request said that was reminded, or refused, and what it got; of the
    former also how many messages it had."""

    known: Conversation = field(default_factory=Conversation)
    told: tuple[Step, int] | None = None
    reminded: tuple[tuple[int, Newest], Reminder] | None = None
    blocked: tuple[Newest, Refusal] | None = None


@dataclass(frozen=True, slots=True)
class _Open:
    """A request under way. told, reminded, blocked: the thread's, as they were before it."""

    turn: Turn
    placed: Placed[Origin]
    thread: _Thread
    usage: Usage
    told: tuple[Step, int] | None
    reminded: tuple[tuple[int, Newest], Reminder] | None
    blocked: tuple[Newest, Refusal] | None


class Guard:
    """The conversations and sessions of one run. mask: takes secrets out of what is quoted.
    commands: whether the person has a place to type mitmproxy's commands.

    Bounded; not for two threads at once.
    """

    def __init__(
        self, rules: Rules, mask: Mask, commands: Callable[[], bool] = lambda: False
    ) -> None:
        self._rules = rules
        self._mask = mask
        self._commands = commands
        self._numbers = count(1)
        self._tracker: Tracker[Origin] = Tracker()
        self._threads: OrderedDict[int, _Thread] = OrderedDict()
        self._usages: OrderedDict[object, Usage] = OrderedDict()
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._places: OrderedDict[str, tuple[int, object]] = OrderedDict()

    def ask(self, asked: Asked, guarding: Guarding) -> Decision:
        """What is to happen to a request. A refused one must be `heard` without a reply; where it
        did not happen after all, say so with `undone`."""
        request, identity = asked.request, asked.identity
        origin = Origin(asked.protocol, identity.agent, request.model)
        placed = self._tracker.place(
            (asked.protocol, identity), request.messages, origin, session_of(identity, request)
        )
        session = identity.session or placed.number
        thread = recent(self._threads, placed.number, _Thread, _MOST)
        usage = recent(self._usages, (asked.protocol, session), Usage, _MOST)
        usage.ask(asked.at)
        turn = self._turn(asked, placed)
        turn.before = thread.known
        before = thread.told, thread.reminded, thread.blocked
        self._open[asked.flow] = _Open(turn, placed, thread, usage, *before)
        self._places[asked.flow] = placed.number, (asked.protocol, session)
        keep(self._open, _MOST_FLOWS)
        keep(self._places, _MOST_FLOWS)
        says = newest(request.messages, self._rules.progress)
        # With no reply in it, it is no loop of the model: a program that takes samples sends it.
        counts = not is_opening(request)
        if not counts:
            thread.blocked = None
        if guarding is Guarding.BLOCK and counts and thread.blocked and not placed.outcomes:
            said, refusal = thread.blocked
            if says == said:  # refused before, and nothing new in it but what clients add
                return refusal
        streak = thread.known.progress.streak
        memory.take_request(thread.known, turn)
        if guarding is Guarding.BLOCK:
            refused = self._refused(thread, streak, says) if counts else None
            return refused or self._limited(usage, asked)
        if guarding is Guarding.REMIND and counts:
            return self._reminded(thread, turn, says)
        return None

    def undone(self, flow: str) -> None:
        """What was decided about a request was not done: there was no place for the reminder, or no
        time. The next request gets it."""
        if opened := self._open.get(flow):
            thread = opened.thread
            thread.told, thread.reminded = opened.told, opened.reminded
            thread.blocked = opened.blocked

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
                call.json,
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
        said = f"{texts.tools(streak)} was called {streak.count} times in a row to no avail"
        if level == len(self._rules.guard.remind) - 1:
            said += "; that was the last reminder, and nothing stops the agent (block does)"
        reminder = Reminder(texts.reminder(streak, level, self._mask), streak.count, said)
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
        text = texts.no_progress(
            streak,
            allowed,
            reused=any(thread.known.is_reused(step.id, step.flow) for step in streak.cycle),
            commands=self._commands(),
        )
        refusal = Refusal(NO_PROGRESS, text, facts, streak.count)
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
        text = texts.over_limit(what, used, allowed, commands=self._commands())
        return Refusal(LIMIT, text, facts)

    def _lift(self, thread: _Thread) -> None:
        thread.known.progress.reset()
        thread.blocked = thread.told = thread.reminded = None
