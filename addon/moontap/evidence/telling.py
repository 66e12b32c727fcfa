"""Turns for the checks, from evidence that is no flow.

Requests and replies in, in the order of the evidence; a `Turn` each out, as `capture.turns` makes
them of flows: placed by the same tracker, ids counted by the same memory. Pure.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from moontap.conversation import Tracker
from moontap.evidence.place import Place
from moontap.findings.turn import Got, Sent, Turn
from moontap.findings.types import Part
from moontap.identity import derived
from moontap.ids import IdMemory
from moontap.lineage import Tracked
from moontap.origin import Origin
from moontap.rules import Rules
from moontap.wire.protocol import Wire
from moontap.wire.types import Reply, ReplyCall, Request


@dataclass(frozen=True, slots=True)
class Told:
    """A turn and where it stands in the file."""

    turn: Turn
    place: Place = field(default_factory=Place)


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known of a response. read_body, read_text, status, ended: as in `Got`."""

    reply: Reply
    status: int = 0
    streamed: bool = False
    kind: str = ""
    cut: bool = False
    trouble: str | None = None
    ended: float | None = None
    read_body: Callable[[], bytes] = bytes

    def got(self) -> Got:
        """The response as the checks see it."""
        texts = {number: choice.text for number, choice in self.reply.choices.items()}
        return Got(
            reply=self.reply,
            upstream_ids=tuple(call.id for call in self.reply.calls),
            status=self.status,
            streamed=self.streamed,
            kind=self.kind,
            cut=self.cut,
            trouble=self.trouble,
            ended=self.ended,
            read_body=self.read_body,
            read_text=lambda: texts,
        )


class Teller:
    """The exchanges of one input."""

    def __init__(self, wire: Wire, rules: Rules) -> None:
        self.wire = wire
        self._rules = rules
        self._tracker: Tracker[Origin] = Tracker()
        self._used = IdMemory()
        self._number = 0

    def exchange(
        self,
        request: Request | None,
        answer: Answer | None,
        parts: Part,
        *,
        session: str | None = None,
        agent: str | None = None,
        size: int = 0,
        label: str | None = None,
        at: float | None = None,
    ) -> Turn:
        """The next one. parts: what of it the evidence holds. size: bytes of the request.

        label: what goes by a flow's id in the facts of findings, as `line 12`.
        """
        self._number += 1
        reply = answer.reply if answer else None
        model = (request.model if request else None) or (reply.model if reply else None)
        stranger = Origin(self.wire.protocol, agent, model)
        name = session or derived(request.opening if request else "")
        delivered = (
            [_tracked(call, reply, stranger, label) for call in reply.calls] if reply else []
        )
        turn = Turn(
            number=self._number,
            conversation=1,
            protocol=self.wire.protocol,
            session=name,
            agent=agent,
            model=model,
            parts=parts,
            rules=self._rules,
            got=answer.got() if answer else None,
            delivered=tuple(delivered),
            flow=label,
            at=at,
        )
        if request is not None:
            key = (session, agent)
            placed = self._tracker.exchange(key, request.messages, delivered, stranger, name)
            turn.conversation, turn.session = placed.number, placed.label
            turn.outcomes = tuple(placed.outcomes)
            turn.sent = Sent(request, placed.new, placed.pairing, placed.again, size)
            self._mark_reused(delivered, f"{name}\0{agent or ''}", turn)
        else:
            self._mark_reused(delivered, name, turn)
        return turn

    def _mark_reused(self, delivered: list[Tracked[Origin]], memory: str, turn: Turn) -> None:
        """Which calls have an id that their conversation used before, as `capture.pairlog` says.

        A history's ids are taken in once, where they are new: to go through all of them at each
        turn would cost the square of their number.
        """
        if turn.sent:
            fresh = turn.sent.request.messages[turn.sent.new :]
            self._used.add(memory, (call.id for one in fresh for call in one.calls if call.id))
        used = self._used.used(memory)
        own: set[str] = set()
        for call in delivered:
            if call.id:
                call.duplicate = call.id in used or call.id in own
                own.add(call.id)
        self._used.add(memory, own)


def _tracked(call: ReplyCall, reply: Reply, stranger: Origin, label: str | None) -> Tracked[Origin]:
    origin = Origin(
        protocol=stranger.protocol,
        agent=stranger.agent,
        model=stranger.model,
        upstream_id=call.id,
        message_id=reply.message_id,
        choice=call.choice,
        index=call.index,
        flow=label,
    )
    return Tracked(call.id, call.name, call.json, origin)
