"""The same id for another call of the conversation, in another response."""

from collections.abc import Iterator

from moontap.findings.check import Check
from moontap.findings.conversation import Use, digest
from moontap.findings.losses import doomed
from moontap.findings.naming import Minting, is_empty, minting, named, tool_named
from moontap.findings.turn import Sent, Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity
from moontap.lineage import Tracked
from moontap.origin import Origin


def look(turn: Turn) -> Iterator[Found]:
    """Once for each id: in the reply, and in a history that came with reused ids."""
    yield from _in_reply(turn)
    yield from _in_history(turn)


def _in_reply(turn: Turn) -> Iterator[Found]:
    if not any(call.duplicate for call in turn.delivered):
        return
    how: Minting | None = None
    again = {call.origin.upstream_id for call in turn.sent.again} if turn.sent else set()
    visible = {id(call) for call in doomed(turn)}
    for call in turn.delivered:
        upstream = call.origin.upstream_id
        use = turn.before.uses.get(upstream or "")
        if not call.duplicate or use is None or is_empty(upstream):
            continue
        if upstream in again and id(call) not in visible:
            continue  # another answer to the same request: the client takes one of the two
        harmless = call.id != upstream or turn.before.given_up(use)
        severity = Severity.INFO if harmless else Severity.WARNING
        if id(call) in visible:
            severity = Severity.ERROR
        said = turn.before.found.get((CHECK.code, upstream))
        if said is None or said.rank < severity.rank:  # the words cost a look at the history
            how = how or minting(turn)
            yield _found(call, use, severity, len(visible), how)


def _found(
    call: Tracked[Origin], use: Use, severity: Severity, predicted: int, how: Minting
) -> Found:
    upstream, renamed = call.origin.upstream_id, call.id != call.origin.upstream_id
    same = (use.tool, use.arguments) == (call.name, digest(call.arguments))
    what = "the same call" if same else _other(use, call)
    first = f"in exchange {use.exchange}" if use.exchange else "earlier in the history"
    gone = not renamed and severity is Severity.INFO
    seen = f"; the client got {named(call.id)} in its place" if renamed else ""
    seen = "; the client went back before that one, and has it once" if gone else seen
    return Found(
        f"The id {named(upstream)} was used {first} and came again for {what}{seen}: "
        f"the API {how.words}.",
        about=upstream,
        evidence=Evidence(
            choice=call.origin.choice,
            index=call.origin.index,
            ids=(call.id,),
            facts={
                "upstream_id": upstream,
                "tool": call.name,
                "first_exchange": use.exchange or None,
                "first_flow": use.flow,
                "same_call": same,
                "minting": how.scope.value,
                "form": how.form,
                "predicted_drops": predicted,
            },
        ),
        severity=severity,
        remedy=_RENAMED if renamed else _GONE if gone else None,
    )


def _other(use: Use, call: Tracked[Origin]) -> str:
    if use.tool == call.name:
        return f"a call of {tool_named(call.name)} with other arguments"
    return f"another tool ({tool_named(call.name)} after {tool_named(use.tool)})"


def _in_history(turn: Turn) -> Iterator[Found]:
    """Calls that no reply of this evidence delivered, with an id that the history holds before."""
    sent = turn.sent
    places: dict[str | None, int] = {}
    for outcome in turn.outcomes:
        call, at = outcome.call, outcome.at
        if sent is None or call is None or at is None or not call.duplicate:
            continue
        if call.origin.flow is not None or is_empty(call.id):
            continue
        places = places or _first_places(sent)
        first = places.get(call.id, at)
        if first == at:
            continue  # twice in one message: that is `id-reused-in-response`
        healed = "; the tap made them unique on the way to the server" if sent.healed else ""
        yield Found(
            f"The history has the id {named(call.id)} for calls in messages {first} and {at}"
            f"{healed}.",
            about=call.id,
            evidence=Evidence(
                message=at,
                ids=(call.id,),
                facts={"tool": call.name, "first_message": first, "healed": sent.healed},
            ),
            severity=Severity.INFO if sent.healed else Severity.ERROR,
            remedy=_RENAMED if sent.healed else None,
        )


def _first_places(sent: Sent) -> dict[str | None, int]:
    """The first message with each id."""
    places: dict[str | None, int] = {}
    for position, message in enumerate(sent.request.messages):
        for call in message.calls:
            places.setdefault(call.id, position)
    return places


_GONE = "Nothing to do: the client sees it once."
_RENAMED = "Nothing to do while the tap rewrites; without it the client would see the id twice."

CHECK = Check(
    code="id-reused",
    needs=Part.HISTORY,
    severity=Severity.WARNING,
    party=Party.API,
    title="A tool-call id was used before in the conversation",
    explained=(
        "Each tool call should have an id that its conversation has not seen. Some servers name a "
        "call after its place: `Bash_0` or `Bash:0` for the first call of *each* response, or the "
        "number of calls that the request shows, which comes again after a compaction, a rewind "
        "or a lost pair. Kimi K3 accepts such histories; K2 on Chat Completions and Kimi Code "
        "answer 400 `tool call id … is duplicated`, and then on every later turn as well.\n\n"
        "A client that pairs calls and results by id takes the later call for the earlier one. "
        "Claude Code keeps the first pair and drops the later ones with their results "
        "(`pair-dropped-by-client`), so the model never sees them and repeats itself. "
        "`error`: the client sees the id twice in the history it keeps. `warning`: the first use "
        "is no longer in its history. `info`: the tap has renamed it, or the client went back "
        "before the first use: a rewind, or another run that begins with the same words. "
        "`predicted_drops` is how many calls of that response such a client will drop."
    ),
    example=(
        'response 1:  tool_use Bash_0 {"command": "pwd"}\n'
        'response 2:  tool_use Bash_0 {"command": "ls"}     <- the same id, another call'
    ),
    remedy=(
        "Run the agent behind `moontap run -- COMMAND`, or set `moontap_rewrite=all` (in "
        "mitmproxy, type `moontap.rewrite all`): each reused id then reaches the client under a "
        "new name."
    ),
    look=look,
)
