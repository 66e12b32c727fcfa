"""A call of the history that the history goes on without answering."""

from collections.abc import Iterator

from moontap.findings.check import Check
from moontap.findings.mismatch import by_call
from moontap.findings.naming import call_of, named
from moontap.findings.strays import Why, strays
from moontap.findings.turn import Sent, Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity
from moontap.pairing import Place
from moontap.report.text import many
from moontap.wire.types import Call


def look(turn: Turn) -> Iterator[Found]:
    """Once for each call: as soon as a message stands behind it that does not hold its result."""
    sent = turn.sent
    if sent is None:
        return
    early = {stray.result.id for stray in strays(turn) if stray.why is Why.EARLY}
    together = by_call(turn)
    for (position, number), call in _unanswered(sent):
        if call.id in early:
            continue  # its result is there, in the wrong place
        other = together.get((position, number))
        behind = len(sent.request.messages) - 1 - position
        end = f"has no result, and {many(behind, 'message')} came after it"
        if other:
            names = named(other.result.id) if other.result.id else "no call at all"
            end = f"has no result: the one in message {other.message} names {names}"
        yield Found(
            f"The {call_of(call.id, call.name)} in message {position} {end}.",
            about=(position, call.id, call.block),
            evidence=Evidence(
                message=position,
                block=call.block,
                ids=(call.id,),
                facts={"tool": call.name} | ({"named_instead": other.result.id} if other else {}),
            ),
            remedy=_rename(call) if other else None,
        )


def _rename(call: Call) -> str | None:
    """Where the call has no id itself, no result can name it."""
    return f"Give that result the id of its call, {named(call.id)}." if call.id else None


def _unanswered(sent: Sent) -> Iterator[tuple[Place, Call]]:
    """From the last message seen before on: it may have ended its request with calls."""
    messages, answers = sent.request.messages, sent.pairing.answers
    for position in range(max(sent.new - 1, 0), len(messages) - 1):
        for number, call in enumerate(messages[position].calls):
            if (position, number) not in answers:
                yield (position, number), call


CHECK = Check(
    code="call-unanswered",
    needs=Part.HISTORY,
    severity=Severity.ERROR,
    party=Party.CLIENT,
    title="A call has no result, and the conversation goes on",
    explained=(
        "Each tool call must be answered before anything else is said, also where the tool "
        "failed or a person broke in. Anthropic's API refuses such a history with `tool_use ids "
        "were found without tool_result blocks`, Chat Completions with `tool_call_ids did not "
        "have response messages`. Servers that let it pass show the model a call that came to "
        "nothing, and it tends to repeat it.\n\n"
        "It is the client that builds the history: one that stops a tool, times out or cuts the "
        "history between a call and its result has to put a result there that says so."
    ),
    example=(
        '{"role": "assistant", "content": [{"type": "tool_use", "id": "a1", …}]}\n'
        '{"role": "user", "content": "never mind, do this"}          <- no result for a1'
    ),
    remedy="Have the client answer every call, with an error as the result where the tool did not "
    "run, or leave out the call as well.",
    look=look,
)
