"""Pairs that a client loses because it pairs by id: those that it dropped, and those it will drop.

A turn in, calls out. Pure. The rule is Claude Code's (2.1.197 and 2.1.328, measured): the first
pair of an id stays, each later call with that id is left out together with its result.
"""

from dataclasses import dataclass

from moontap.findings.steps import says_nothing
from moontap.findings.turn import Sent, Turn
from moontap.lineage import Tracked
from moontap.origin import Origin
from moontap.wire.types import Message

_INTERRUPTED = "[tool use interrupted]"  # Claude Code, in place of an assistant message's calls


@dataclass(frozen=True, slots=True)
class Loss:
    """A delivered call that a request went on without.

    at: where its reply should stand in the request. exchange: which one delivered it, None where
    that was too long ago. reused: the client had seen its id before. sign: the request has
    `(no content)` or the like where something is gone. replaced: an assistant message stands where
    the reply should.
    """

    call: Tracked[Origin]
    at: int
    exchange: int | None
    reused: bool
    sign: bool
    replaced: bool

    @property
    def is_choice(self) -> bool:
        """Whether the client may have meant it: the whole reply is gone, as after a rewind."""
        return not (self.reused or self.sign or self.replaced)


def lost(turn: Turn) -> list[Loss]:
    """What this request went on without. Left out: calls of a reply that broke off, which no client
    can use, and those of the choices that the client did not pick."""
    sent = turn.sent
    dropped = [o.call for o in turn.outcomes if o.dropped and o.call]
    if sent is None or not dropped:
        return []
    sign = any(_is_sign(message) for _, message in sent.fresh)
    picked = _picked(turn)
    losses = [
        _loss(turn, sent, call, sign=sign)
        for call in dropped
        if call.origin.choice == picked.get(call.origin.flow, call.origin.choice)
    ]
    return [loss for loss in losses if loss]


def _loss(turn: Turn, sent: Sent, call: Tracked[Origin], *, sign: bool) -> Loss | None:
    at, exchange = sent.new, None
    for position, said in turn.before.replies.items():
        if said.flow is not None and said.flow == call.origin.flow:
            if not said.complete:
                return None
            at, exchange = position, said.exchange
    messages = sent.request.messages
    replaced = at < len(messages) and messages[at].role == "assistant"
    return Loss(call, at, exchange, _visible(call), sign, replaced)


def _is_sign(message: Message) -> bool:
    """Whether a message is what clients put where there is nothing left to say."""
    if message.calls or message.results:
        return False
    if message.role == "assistant" and message.text.strip().lower() == _INTERRUPTED:
        return True
    return message.role in ("user", "assistant") and says_nothing(message.text)


def doomed(turn: Turn) -> list[Tracked[Origin]]:
    """The calls of this reply that the client will drop next: those whose id, as it sees it, stands
    in the history that it keeps, or earlier in the reply. Exact also after a compaction, for the
    first use of an id is still in the history where the client still knows it."""
    sent, calls = turn.sent, turn.delivered
    # A reused id is a duplicate already; most replies have none, and the history stays unread.
    if sent is None or not any(map(_visible, calls)):
        return []
    first = min(call.origin.choice or 0 for call in calls)
    seen = set(sent.request.call_ids)
    found = []
    for call in calls:
        if (call.origin.choice or 0) != first:
            continue
        if call.id in seen:
            found.append(call)
        elif call.id:
            seen.add(call.id)
    return found


def _visible(call: Tracked[Origin]) -> bool:
    """Whether the client itself sees that a call's id was used before."""
    return call.duplicate and call.id == call.origin.upstream_id


def _picked(turn: Turn) -> dict[str | None, int | None]:
    """Of each reply of which the client kept a call: the choice it belongs to; of the others, of
    which it kept nothing, the first."""
    picked: dict[str | None, int | None] = {}
    for outcome in turn.outcomes:
        if outcome.call and not outcome.dropped:
            picked[outcome.call.origin.flow] = outcome.call.origin.choice
    for outcome in turn.outcomes:
        if outcome.call and outcome.dropped:
            picked.setdefault(outcome.call.origin.flow, outcome.call.origin.choice)
    return picked
