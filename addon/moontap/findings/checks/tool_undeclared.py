"""A call of a tool that the request does not declare."""

from collections.abc import Iterator

from moontap.findings.check import Check
from moontap.findings.declared import declared
from moontap.findings.naming import tool_named
from moontap.findings.turn import Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity


def look(turn: Turn) -> Iterator[Found]:
    """The calls of the reply. Where no tools are declared at all nothing is said: the caller knows
    of them in another way. `$…` is a tool that the server runs."""
    if turn.sent is None or turn.got is None or not turn.got.calls:
        return
    names = declared(turn.sent.request.asked).names
    if not names:
        return
    for call in turn.got.calls:
        if call.name in names or call.name.startswith("$"):
            continue
        like = _alike(call.name, names)
        says = f"The model called {tool_named(call.name)}, which the request does not declare"
        if not call.name:
            says = "The model called a tool without naming it"
        elif like:
            says += f"; it declares {tool_named(like)}"
        yield Found(
            f"{says}.",
            about=call.name,
            evidence=Evidence(
                choice=call.choice,
                index=call.index,
                ids=(call.id,),
                facts={"tool": call.name, "declared": len(names), "like": like},
            ),
        )


def _alike(name: str, names: frozenset[str]) -> str | None:
    """A declared tool with the same name but for case, marks and what stands before it."""
    key = _key(name)
    return min((one for one in names if key and _key(one) == key), default=None)


def _key(name: str) -> str:
    bare = name.lower().removeprefix("functions.")
    return "".join(one for one in bare if one.isalnum())


CHECK = Check(
    code="tool-undeclared",
    needs=Part.TOOLS | Part.REPLY,
    severity=Severity.WARNING,
    party=Party.API,
    title="A tool that is not there",
    explained="""\
The model called a tool whose name is not among those that the request declares: one that it knows
from elsewhere, one that an earlier turn had, or a declared one in another spelling (`bash` for
`Bash`, `functions.Bash`). A call can also come without any name.

A client has nothing to run then. Most answer with an error result, after which the model goes on
with another tool; some end the turn, and some leave the call without a result, so that the next
request is refused.""",
    example="""\
"tools": [{"name": "Bash", …}, {"name": "Read", …}]
{"type": "tool_use", "id": "ls_0", "name": "ls", "input": {"path": "."}}""",
    remedy="Answer the call with an error result that lists the tools there are, and keep the list "
    "of tools the same throughout a conversation.",
    look=look,
)
