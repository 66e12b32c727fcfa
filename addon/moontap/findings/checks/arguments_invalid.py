"""Arguments of a call that are not JSON, or JSON that is no object."""

import hashlib
from collections.abc import Hashable, Iterator

from moontap.findings import arguments
from moontap.findings.arguments import Arguments, Shape
from moontap.findings.check import Check
from moontap.findings.cutoff import cut_calls
from moontap.findings.echoes import was_delivered
from moontap.findings.excerpts import excerpt
from moontap.findings.misformed import is_misformed
from moontap.findings.naming import tool_named
from moontap.findings.turn import Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity

_NAMES = {str: "a string", list: "an array", bool: "a boolean", int: "a number", float: "a number"}


def look(turn: Turn) -> Iterator[Found]:
    """The calls of the reply, and those of the history that no reply delivered. A call that was cut
    off is `call-truncated`, one that the client wrote in another form `message-malformed`."""
    cut = cut_calls(turn)
    for number, call in enumerate(turn.got.calls if turn.got else ()):
        text = call.arguments
        read = arguments.read(text)
        if number in cut or read.shape is Shape.OBJECT:
            continue
        where = Evidence(
            choice=call.choice,
            index=call.index,
            ids=(call.id,),
            excerpt=excerpt(text),
            facts={"tool": call.name},
        )
        yield _found(
            read, f"The call of {tool_named(call.name, 'a tool')}", call.name, call.id, text, where
        )
    for position, message in turn.sent.fresh if turn.sent else ():
        for one in message.calls:
            read = arguments.read(one.arguments)
            if read.shape is Shape.OBJECT or was_delivered(turn, position, one):
                continue
            if is_misformed(message, one):
                continue
            where = Evidence(
                message=position,
                block=one.block,
                ids=(one.id,),
                excerpt=excerpt(one.arguments),
                facts={"tool": one.name},
            )
            who = f"The call of {tool_named(one.name, 'a tool')} in message {position}"
            text = one.arguments.decode("utf-8", "replace")
            yield _found(read, who, one.name, one.id, text, where)


def _found(
    read: Arguments, who: str, tool: str, id_: str | None, text: str, where: Evidence
) -> Found:
    if read.shape is Shape.EMPTY:
        says = "has no arguments at all, where `{}` would stand for none"
        return Found(f"{who} {says}.", ("empty", tool), where, severity=Severity.INFO)
    about = (id_, tool, _digest(text))
    if read.shape is Shape.OTHER:
        kind = _NAMES.get(type(read.value), "something else")
        says = f"{who} has arguments that are {kind}, not an object."
        return Found(says, about, where, severity=Severity.WARNING)
    return Found(f"{who} has arguments that are not JSON: {excerpt(read.why)}.", about, where)


def _digest(text: str) -> Hashable:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


CHECK = Check(
    code="arguments-invalid",
    needs=Part(0),
    severity=Severity.ERROR,
    party=Party.API,
    title="Arguments that are not JSON",
    explained="""\
The arguments of a tool call have to be the JSON text of an object. Models write them token by token
and slip: a quote that is not closed, a line break within a string, an object put into a string
once more. Where the call was cut off, it is `call-truncated` instead.

What happens then is up to the client. Some report an error as the tool's result, and the model
tries again; some run the tool with `{}`; a bare `json.loads(arguments)` ends the program. No
arguments at all count as `{}` for most clients, but not for `json.loads("")`: that is told as
`info`. In a saved history such a call can make the API refuse every later request.""",
    example="""\
{"id": "Bash_0", "type": "function",
 "function": {"name": "Bash", "arguments": "{\\"command\\": \\"ls"}}""",
    remedy="Answer such a call with an error result that says what is wrong, so that the model can "
    "repeat it; never run it with empty arguments.",
    look=look,
)
