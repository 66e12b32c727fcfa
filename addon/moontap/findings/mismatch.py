"""Results that stand where a call's result belongs, and name another call: an id mistyped.

A turn in, calls and results that go together out. Pure. It looks at nothing where every result has
its call, as is the rule. It only tells what stands there: nothing is paired by it.
"""

from collections.abc import Mapping

from moontap.findings.strays import Stray, Why, strays
from moontap.findings.turn import Turn
from moontap.pairing import Place
from moontap.wire.types import Call, Message


def by_call(turn: Turn) -> Mapping[Place, Stray]:
    """By the place of a call without a result, the result behind its message that names none of
    the calls before it. Where several wait, in their order, and only where none is left over."""
    unknown: dict[int, list[Stray]] = {}
    for stray in strays(turn):
        if stray.why is Why.UNKNOWN:
            unknown.setdefault(stray.message, []).append(stray)
    if not unknown or turn.sent is None:
        return {}
    messages, answers = turn.sent.request.messages, turn.sent.pairing.answers
    loose: dict[int, list[Stray]] = {}
    known: dict[int, int | None] = {}
    for position, found in unknown.items():
        at = known[position] = _asked(messages, position, known)
        if at is not None:
            loose.setdefault(at, []).extend(found)
    together: dict[Place, Stray] = {}
    for at, found in loose.items():
        waiting = [(at, n) for n in range(len(messages[at].calls)) if (at, n) not in answers]
        if len(waiting) == len(found):
            together |= dict(zip(waiting, found, strict=True))
    return together


def by_result(turn: Turn) -> Mapping[Place, tuple[int, Call]]:
    """The same by the result's message and block: the call's message, and the call."""
    if turn.sent is None:
        return {}
    messages = turn.sent.request.messages
    return {
        (stray.message, stray.result.block): (at, messages[at].calls[number])
        for (at, number), stray in by_call(turn).items()
    }


def _asked(
    messages: tuple[Message, ...], position: int, known: Mapping[int, int | None]
) -> int | None:
    """The message whose calls the results there answer: nothing but results lies between. known:
    what that is for earlier positions, for a broken client may send thousands of results."""
    at = position - 1
    while at >= 0 and messages[at].results and not messages[at].calls:
        if at in known:
            return known[at]
        at -= 1
    return at if at >= 0 and messages[at].calls else None
