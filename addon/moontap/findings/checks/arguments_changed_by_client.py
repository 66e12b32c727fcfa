"""Arguments that came back other than they were delivered."""

from collections.abc import Iterator

from moontap.findings import arguments
from moontap.findings.check import Check
from moontap.findings.echoes import echoes, matched
from moontap.findings.excerpts import excerpt
from moontap.findings.naming import tool_named
from moontap.findings.turn import Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity


def look(turn: Turn) -> Iterator[Found]:
    """The calls that came back with this request; once for each tool in a conversation. Of
    arguments that were no JSON object nothing better can come back."""
    for position, message, said in echoes(turn):
        for call, (_, _, text) in matched(message, said):
            if text == call.arguments:
                continue
            given, back = arguments.read(text), arguments.read(call.arguments)
            if not given.runs or arguments.same(given, back):
                continue
            emptied = given.value and back.runs and not back.value
            what = "emptied" if emptied else "changed"
            yield Found(
                f"The arguments of {tool_named(call.name)} came back {what} in message {position}.",
                about=(what, call.name),
                evidence=Evidence(
                    message=position,
                    block=call.block,
                    ids=(call.id,),
                    excerpt=excerpt(call.arguments),
                    facts={
                        "tool": call.name,
                        "delivered": excerpt(text),
                        "delivered_in": said.exchange,
                    },
                ),
                severity=Severity.WARNING if emptied or not back.runs else None,
            )


CHECK = Check(
    code="arguments-changed-by-client",
    needs=Part.HISTORY | Part.TURNS,
    severity=Severity.INFO,
    party=Party.CLIENT,
    title="The client changed the arguments of a call",
    explained="""\
A call was delivered with some arguments and came back in the next request's history with others.
Blanks, order, escapes and `1` for `1.0` do not count.

Where they came back empty, or not as JSON any more, that is a fault: a client that put the pieces
of a stream together wrongly, or kept the `{}` with which a streamed call begins. The model then
sees that it called the tool with nothing, and calls it again. Where they were only changed it is
told as `info`, for some clients do that on purpose: they shorten a command, or add a default.
Numbers of more than 53 bits lose their last digits in JavaScript clients.""",
    example="""\
reply: {"type": "tool_use", "id": "Bash_0", "name": "Bash", "input": {"command": "ls"}}
next request: {"type": "tool_use", "id": "Bash_0", "name": "Bash", "input": {}}""",
    remedy="Send the arguments back as they came; put streamed ones together from all "
    "`input_json_delta` or `arguments` pieces of the call.",
    look=look,
)
