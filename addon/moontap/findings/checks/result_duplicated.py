"""Several results for one call."""

from collections.abc import Iterator

from moontap.findings.check import Check
from moontap.findings.naming import is_empty, named
from moontap.findings.strays import Why, strays
from moontap.findings.turn import Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity


def look(turn: Turn) -> Iterator[Found]:
    """Once for each call with more than one result."""
    for stray in strays(turn):
        if stray.why is Why.AGAIN and not is_empty(stray.result.id):
            yield Found(
                f"The call {named(stray.result.id)} in message {stray.at} has a result already, "
                f"and another one in message {stray.message}.",
                about=(stray.at, stray.result.id),
                evidence=Evidence(
                    message=stray.message,
                    block=stray.result.block,
                    ids=(stray.result.id,),
                    facts={"call_message": stray.at},
                ),
            )


CHECK = Check(
    code="result-duplicated",
    needs=Part.HISTORY,
    severity=Severity.WARNING,
    party=Party.CLIENT,
    title="Several results for one call",
    explained=(
        "A call takes one result. A second one comes from a client that retried the tool, or ran "
        "it twice, and kept both; from one that resumed a saved session and added its results "
        "again; or from ids that came twice, where one result was meant for another call.\n\n"
        "Anthropic's API refuses it (`each tool_use must have a single result`), Chat Completions "
        "refuses the second `tool` message or shows the model both."
    ),
    example=(
        '{"role": "tool", "tool_call_id": "Bash:0", "content": "one"}\n'
        '{"role": "tool", "tool_call_id": "Bash:0", "content": "two"}     <- again'
    ),
    remedy="Have the client keep one result for each call, the last one where a tool was retried.",
    look=look,
)
