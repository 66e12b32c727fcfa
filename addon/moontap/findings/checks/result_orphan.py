"""Results that name a call which is not there."""

from collections.abc import Iterator

from moontap.findings.check import Check
from moontap.findings.mismatch import by_result
from moontap.findings.naming import call_of, is_empty, named, tool_named
from moontap.findings.strays import Why, strays
from moontap.findings.turn import Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity
from moontap.wire.types import Call


def look(turn: Turn) -> Iterator[Found]:
    """Once for each result."""
    found = list(strays(turn))
    waiting = by_result(turn) if found else {}
    for stray in found:
        if stray.why not in (Why.UNKNOWN, Why.DROPPED) or is_empty(stray.result.id):
            continue
        at, call = waiting.get((stray.message, stray.result.block), (None, None))
        if stray.call:
            end = f"names a call of {tool_named(stray.call.name)} that was delivered, and that the "
            end += "client left out of the history"
        elif call:
            end = "names a call that no message before it has: the one that waits for a result is "
            end += f"the {call_of(call.id, call.name)} in message {at}"
        else:
            end = "names a call that no message before it has"
        yield Found(
            f"The result {named(stray.result.id)} in message {stray.message} {end}.",
            about=(stray.message, stray.result.id, stray.result.block),
            evidence=Evidence(
                message=stray.message,
                block=stray.result.block,
                ids=(stray.result.id,),
                facts={
                    "tool": stray.call.name if stray.call else None,
                    "call_flow": stray.call.origin.flow if stray.call else None,
                }
                | ({"waiting": call.id} if call else {}),
            ),
            remedy=_rename(call),
        )


def _rename(waiting: Call | None) -> str | None:
    """Where the call has no id itself, no result can name it."""
    known = waiting is not None and waiting.id
    return (
        f"Give the result the id of its call, {named(waiting.id)}." if waiting and known else None
    )


CHECK = Check(
    code="result-orphan",
    needs=Part.HISTORY,
    severity=Severity.ERROR,
    party=Party.CLIENT,
    title="A result without its call",
    explained=(
        "A tool result names the call that it answers, and that call must stand in the assistant "
        "message before it. Where it does not, Anthropic's API answers 400 `unexpected tool_use_id "
        "found in tool_result blocks`, Moonshot `tool_call_id … not found`, others `role 'tool' "
        "must be a response to a preceding message`; and since the history is sent again with each "
        "turn, so do all later turns.\n\n"
        "Mostly the client has cut its history (compaction, a limit of messages) between a call "
        "and its result, or has rebuilt the assistant message without its calls."
    ),
    example=(
        '{"role": "user", "content": "Summary: …"}\n'
        '{"role": "tool", "tool_call_id": "Bash:7", "content": "…"}     <- no call Bash:7'
    ),
    remedy="Cut the history only where no call waits for its result, and send the assistant "
    "message back as it came, calls included.",
    look=look,
)
