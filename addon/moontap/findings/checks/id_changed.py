"""Another id for a call that has one already, later in its stream."""

from collections.abc import Iterator

from moontap.findings.check import Check
from moontap.findings.naming import call_of, named
from moontap.findings.turn import Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity
from moontap.report.text import many


def look(turn: Turn) -> Iterator[Found]:
    """Once a conversation: a server that does it, does it always."""
    for call in turn.got.calls if turn.got else ():
        if call.others:
            count = len(call.others)
            yield Found(
                f"The {call_of(call.id, call.name)} got "
                f"{many(count, 'other id')} later in its stream, "
                f"{named(call.others[0])} first.",
                evidence=Evidence(
                    choice=call.choice,
                    index=call.index,
                    ids=(call.id, *call.others[:4]),
                    facts={"tool": call.name, "count": count},
                ),
            )


CHECK = Check(
    code="id-changed",
    needs=Part.EVENTS,
    severity=Severity.WARNING,
    party=Party.API,
    title="The id of a call changes within its stream",
    explained=(
        "A streamed call has its id in its first piece; later pieces belong to it by their "
        "`index`. Some servers put a new id on every piece. A client that keeps the first is "
        "fine; one that keeps the last answers an id that nobody knows, and one that takes a new "
        "id for a new call gets several calls with a part of the arguments each.\n\n"
        "While the tap rewrites ids, all ids of one index become the same one, and this is not "
        "seen by the client."
    ),
    example=(
        'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_a","function":…}]}}]}\n'
        'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"call_b","function":…}]}}]}'
    ),
    remedy=(
        "Run the agent behind `moontap run -- COMMAND` with `moontap_rewrite=all`, which gives "
        "each call one id, and tell the provider."
    ),
    look=look,
)
