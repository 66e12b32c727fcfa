"""Results that stand where the protocol does not look for them."""

import sys
from bisect import bisect_right
from collections.abc import Iterator

from moontap.findings.check import Check
from moontap.findings.naming import result_of
from moontap.findings.strays import Why, strays
from moontap.findings.turn import Sent, Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity
from moontap.report.text import short
from moontap.wire.types import Protocol, Result

_TELLING = frozenset({"text", "image", "document"})


def look(turn: Turn) -> Iterator[Found]:
    """Once a conversation for each way: a client that does it, does it always."""
    sent = turn.sent
    if sent is None:
        return
    for stray in strays(turn):
        if stray.why is Why.EARLY:
            yield _found(
                "before-its-call",
                f"stands in message {stray.message}, before its call in message {stray.at}",
                stray.message,
                stray.result,
                stray.at,
            )
    if turn.protocol is Protocol.ANTHROPIC:
        yield from _after_text(sent)
        yield from _apart(sent)
    else:
        yield from _broken_off(sent)


def _found(way: str, how: str, message: int, result: Result, call: int | None) -> Found:
    return Found(
        f"The {result_of(result.id)} {how}.",
        about=way,
        evidence=Evidence(
            message=message,
            block=result.block,
            ids=(result.id,),
            facts={"way": way, "call_message": call},
        ),
    )


def _after_text(sent: Sent) -> Iterator[Found]:
    for position, message in sent.fresh:
        if not message.results:
            continue
        first = next((n for n, kind in enumerate(message.blocks) if kind in _TELLING), None)
        late = [r for r in message.results if first is not None and r.block > first]
        if late:
            how = f"stands in message {position} behind a {message.blocks[first or 0]} block"
            yield _found("after-text", how, position, late[0], None)


def _pairs(sent: Sent) -> list[tuple[int, int, Result]]:
    """The positions of a call's message and of its result's, and the result; the new ones, but for
    those that stand side by side, as they should."""
    return [
        (call, at, sent.request.messages[at].results[number])
        for (call, _), (at, number) in sent.pairing.answers.items()
        if at >= sent.new and at > call + 1
    ]


def _without(sent: Sent, role: str, pairs: list[tuple[int, int, Result]]) -> list[int]:
    """The positions of messages of any other role, from the first of these calls on: a long
    history is not walked for the few that are new."""
    messages, first = sent.request.messages, min(call for call, _, _ in pairs)
    return [at for at in range(first, len(messages)) if messages[at].role != role]


def _apart(sent: Sent) -> Iterator[Found]:
    """Messages: not in the user message that follows the call, system messages left out."""
    if not (pairs := _pairs(sent)):
        return
    others = _without(sent, "system", pairs)
    holders = [at for at in others if sent.request.messages[at].results]
    for call, at, result in pairs:
        if _next(others, call) >= at:
            continue
        split = _next(holders, call) < at
        where = f"stands in message {at}, its call in message {call}"
        end = "the results of one message are split over several" if split else "not the next one"
        yield _found("split" if split else "not-next", f"{where}: {end}", at, result, call)


def _broken_off(sent: Sent) -> Iterator[Found]:
    """Chat Completions: something other than tool messages between a call and its result."""
    if not (pairs := _pairs(sent)):
        return
    messages = sent.request.messages
    others = _without(sent, "tool", pairs)
    for call, at, result in pairs:
        first = _next(others, call)
        if first < at:
            role = messages[first].role or "nameless"
            how = f"stands in message {at}, behind a {short(role, 20)} message; its call "
            yield _found("not-next", f"{how}is in message {call}", at, result, call)


def _next(positions: list[int], after: int) -> int:
    """The first of these positions behind another one; past all where there is none."""
    at = bisect_right(positions, after)
    return positions[at] if at < len(positions) else sys.maxsize


CHECK = Check(
    code="result-misplaced",
    needs=Part.HISTORY,
    severity=Severity.WARNING,
    party=Party.CLIENT,
    title="A result stands in the wrong place",
    explained=(
        "Messages wants all results of an assistant message in the *next* user message, and there "
        "before any text. Chat Completions wants one `tool` message for each call right behind the "
        "assistant message, with nothing between. The order of the results among themselves is "
        "free. Kimi's API often lets other places pass; Anthropic and OpenAI answer 400, and the "
        "model may take a late result for that of another call.\n\n"
        "Usual causes: a reminder or a user's message that a client puts in while a tool runs, "
        "parallel tools whose results are sent one by one, and sorting by time."
    ),
    example=(
        '{"role": "assistant", "tool_calls": [{"id": "Bash:0", …}]}\n'
        '{"role": "user", "content": "are you there?"}\n'
        '{"role": "tool", "tool_call_id": "Bash:0", "content": "…"}     <- too late'
    ),
    remedy="Have the client send the results first and all together, and what else it has to say "
    "behind them.",
    look=look,
)
