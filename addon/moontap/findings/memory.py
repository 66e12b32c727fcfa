"""Keeps what is remembered of a conversation.

A turn's request is taken in before the checks look at it, its reply after that.
Changes the `Conversation` that it is given, and nothing else.
"""

import re

from moontap.findings import losses, repeats
from moontap.findings.conversation import Conversation, Last, Said, Use, digest
from moontap.findings.cutoff import cut_calls
from moontap.findings.steps import steps_of
from moontap.findings.turn import Sent, Turn

_REPLIES = 16
_MOST_IDS = 100_000


def take_request(known: Conversation, turn: Turn) -> None:
    """The request of a turn, before the checks look at it."""
    known.exchanges += 1
    sent = turn.sent
    if sent is None:
        return
    _note_return(known, turn, sent)
    for at, message in sent.fresh:
        for call in message.calls:
            if call.id and call.id not in known.uses and len(known.uses) < _MOST_IDS:
                known.uses[call.id] = Use(0, None, call.name, digest(call.arguments), at)
    _count_losses(known, turn, sent)
    moved = False
    for steps in steps_of(turn, known.last):
        if steps:
            known.progress.add(steps)
        else:
            known.progress.reset()
        moved = True
    if moved:
        turn.streak = known.progress.streak


def take_reply(known: Conversation, turn: Turn) -> None:
    """The reply of a turn, after the checks have looked at it."""
    got, sent = turn.got, turn.sent
    messages = len(sent.request.messages) if sent else 0
    if got and got.calls:
        known.minted.append(got.upstream_ids)
        for call, id_ in zip(got.calls, got.upstream_ids, strict=True):
            use = known.uses.get(id_ or "")
            if id_ and len(known.uses) < _MOST_IDS and (use is None or known.given_up(use)):
                said = digest(call.json)
                known.uses[id_] = Use(turn.number, turn.flow, call.name, said, messages)
    if sent is None:
        return
    known.due = len(losses.doomed(turn))
    if got and not got.is_refusal:
        known.replies[messages] = _said(turn)
        while len(known.replies) > _REPLIES:
            del known.replies[next(iter(known.replies))]
    known.last = Last(
        turn.number,
        turn.flow,
        messages,
        repeats.history_of(sent.request.messages),
        repeats.asked_of(sent.request),
        sent.size,
        sent.request.stream,
        got.status if got else 0,
        bool(got and got.streamed),
        got.ending if got else None,
        turn.at,
        got.ended if got else None,
        sent.agent,
    )


def _note_return(known: Conversation, turn: Turn, sent: Sent) -> None:
    """Remember that the client went back, or began anew with the same words. Not where it has cut
    its history to save room: then the calls behind the cut stand further up than they did, or
    nothing is as it was."""
    at = sent.new
    if not at or known.last is None or not (sent.is_repeat or at < known.last.messages):
        return
    if sent.is_repeat and repeats.continues(turn, known.last):
        return  # such a run goes on
    for position, message in sent.fresh:
        for call in message.calls:
            use = known.uses.get(call.id or "")
            if use and use.at > position:
                return
    while known.returns and known.returns[-1][1] >= at:
        known.returns.pop()
    known.returns.append((turn.number, at))


def _count_losses(known: Conversation, turn: Turn, sent: Sent) -> None:
    if sent.is_repeat:  # the reply before was not used: nothing of it can be lost
        known.due = 0
        return
    lost = sum(not loss.is_choice for loss in losses.lost(turn))
    known.lost += lost
    if known.last and sent.new >= known.last.messages:  # else it went on without that reply
        known.predicted += known.due
    if known.gap is not None and known.gap >= sent.new:
        known.gap = None  # compacted or rewound: the client has forgotten that pair
    if lost and known.gap is None:
        known.gap = sent.new
    known.repaired += known.gap is not None


def _said(turn: Turn) -> Said:
    got = turn.got
    assert got is not None
    calls = tuple((call.id, call.name, call.json) for call in got.calls)
    body = got.body
    return Said(
        turn.number,
        turn.flow,
        calls,
        bool(calls) and any(mark.search(body) for mark in _THINKING),
        bool(calls) and _SIGNED.search(body) is not None,
        # Some SDKs hang up at a stream's last event, which mitmproxy may or may not call a fault.
        got.reply.complete and (got.streamed or not got.cut) and not cut_calls(turn),
        turn.sent is not None and repeats.forces_call(turn.sent.request),
    )


# Not an empty one: Chat Completions streams often open with `"reasoning_content":""`.
_THINKING = (re.compile(rb'"reasoning_content":\s*"[^"]'), re.compile(rb'"thinking":\s*"[^"]'))
_SIGNED = re.compile(rb'"signature":\s*"[^"]')
