"""Calls that the client received, and that its next request goes on without."""

from collections.abc import Iterator

from moontap.findings.check import Check
from moontap.findings.losses import Loss, doomed, lost
from moontap.findings.naming import call_of
from moontap.findings.turn import Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity
from moontap.report.text import many


def look(turn: Turn) -> Iterator[Found]:
    """Once for each call that was dropped."""
    losses = lost(turn)
    predicted = len(doomed(turn)) if losses else 0
    for loss in losses:
        yield _found(turn, loss, predicted)


def _found(turn: Turn, loss: Loss, predicted: int) -> Found:
    call, before = loss.call, turn.before
    severity = Severity.WARNING
    if loss.reused or loss.sign:
        severity = Severity.ERROR
    elif loss.is_choice:
        severity = Severity.INFO
    return Found(
        _sentence(turn, loss, predicted),
        about=(call.origin.flow, call.origin.choice, call.origin.index),
        evidence=Evidence(
            message=loss.at,
            ids=(call.id,),
            facts={
                "tool": call.name,
                "delivered_exchange": loss.exchange,
                "delivered_flow": call.origin.flow,
                "reused_id": loss.reused,
                "sign": loss.sign,
                "lost": before.lost,
                "repaired": before.repaired,
                "predicted_drops": predicted,
            },
        ),
        severity=severity,
        remedy=None if loss.reused else _OTHERWISE,
    )


def _sentence(turn: Turn, loss: Loss, predicted: int) -> str:
    call = loss.call
    where = f" of exchange {loss.exchange}" if loss.exchange else ""
    what = f"the {call_of(call.id, call.name)}{where}"
    if loss.is_choice:
        return f"The client went on without the reply that held {what}."
    mark = " and put `(no content)` where it was" if loss.sign else ""
    lost_, sent = turn.before.lost, turn.before.repaired
    far = f"{many(lost_, 'call')} lost so far, {many(sent, 'request')} sent without"
    more = f"; {many(predicted, 'call')} of the next reply will go the same way"
    return f"The client dropped {what} with its result{mark}: {far}{more if predicted else ''}."


_OTHERWISE = (
    "Look at how the client builds its history: the assistant message must go back with its calls, "
    "each followed by its result."
)

CHECK = Check(
    code="pair-dropped-by-client",
    needs=Part.HISTORY | Part.TURNS,
    severity=Severity.ERROR,
    party=Party.CLIENT,
    title="The client dropped a call that it had received",
    explained=(
        "The response held a tool call; the next request has neither the call nor its result. The "
        "model does not learn what its call came to, and makes it again: a loop without end. "
        "Claude Code does so with a call whose id it has seen before: it keeps the first pair of "
        "an id, leaves out the later ones, and puts `[Tool use interrupted]` and `(no content)` in "
        "their place (`ensureToolResultPairing` in its debug log, one line for each such request). "
        "The cause is then `id-reused`, and unique ids end it.\n\n"
        "`lost` counts the calls dropped so far, `repaired` the requests that went out without "
        "them, `predicted_drops` the calls of the reply to this very request that will be dropped "
        "next if their ids stay as they are. `warning`: the client kept the rest of the reply and "
        "no id explains it. `info`: it left out the whole reply, as after a rewind or a change of "
        "mind."
    ),
    example=(
        "response:      tool_use Bash_0 (an id that the history has already)\n"
        'next request:  {"role": "assistant", "content": "[Tool use interrupted]"}\n'
        '               {"role": "user", "content": "(no content)"}'
    ),
    remedy=(
        "Run the agent behind `moontap run -- COMMAND`, or set `moontap_rewrite=all` (in "
        "mitmproxy, type `moontap.rewrite all`): with unique ids the client drops nothing."
    ),
    look=look,
)
