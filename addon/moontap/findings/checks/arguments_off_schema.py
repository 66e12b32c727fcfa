"""Arguments of a call that do not match what its tool declares."""

from collections.abc import Iterator

from moontap.findings import arguments
from moontap.findings.check import Check
from moontap.findings.cutoff import cut_calls
from moontap.findings.declared import declared
from moontap.findings.echoes import was_delivered
from moontap.findings.effort import Allowance
from moontap.findings.excerpts import excerpt
from moontap.findings.misformed import is_misformed
from moontap.findings.naming import tool_named
from moontap.findings.schemas import Verdict
from moontap.findings.turn import Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity


def look(turn: Turn) -> Iterator[Found]:
    """The calls of the reply, and those of the history that no reply delivered."""
    allowance = Allowance()
    for tool, text, where, party in _calls(turn):
        assert turn.sent  # else there are no tools to look at
        schema = declared(turn.sent.request.asked).schemas.get(tool)
        if schema is None:
            continue
        read = arguments.read(text)
        if read.runs:
            verdict = schema.check(read.value, allowance)
            yield from _mismatches(tool, verdict, where, party)


def _calls(turn: Turn) -> Iterator[tuple[str, str | bytes, Evidence, Party | None]]:
    """Tool, arguments and place of each call, and who wrote it, where that is plain."""
    if turn.sent is None:
        return
    cut = cut_calls(turn)
    for number, call in enumerate(turn.got.calls if turn.got else ()):
        if number not in cut:
            text = call.arguments
            yield (
                call.name,
                text,
                Evidence(
                    choice=call.choice, index=call.index, ids=(call.id,), excerpt=excerpt(text)
                ),
                None,
            )
    for position, message in turn.sent.fresh:
        for one in message.calls:
            if not was_delivered(turn, position, one):
                short = excerpt(one.arguments)
                where = Evidence(position, one.block, ids=(one.id,), excerpt=short)
                # No model writes them in another form than the protocol's.
                party = Party.CLIENT if is_misformed(message, one) else None
                yield one.name, one.arguments, where, party


def _mismatches(
    tool: str, verdict: Verdict, where: Evidence, party: Party | None
) -> Iterator[Found]:
    found = verdict.found
    if verdict.why is not None:
        what = "is not used for every call" if verdict.sound else "cannot be used"
        then = "" if verdict.sound else ", so its calls are not checked"
        yield Found(
            f"The schema of {tool_named(tool)} {what}{then}: {verdict.why}.",
            about=("schema", tool),
            evidence=Evidence(facts={"tool": tool}),
            severity=Severity.INFO,
            party=Party.CLIENT,
            remedy=_FLATTER if verdict.sound else _CHECK_IT,
        )
        return
    if not found:
        return
    paths = {one.path: one.keyword for one in found}
    yield Found(
        f"The arguments of {tool_named(tool)} do not match its schema: "
        f"{'; '.join(m.says for m in found[:3])}.",
        about=(tool, tuple(sorted(paths.items()))),
        evidence=Evidence(
            where.message,
            where.block,
            where.choice,
            where.index,
            where.ids,
            where.excerpt,
            {"tool": tool, "paths": list(paths)},
        ),
        severity=Severity.INFO if all(one.null for one in found) else None,
        party=party,
        remedy=_BY_HAND if party else None,
    )


_CHECK_IT = "Check the tool's schema against the JSON Schema draft that it names."
_FLATTER = "Keep the schema flatter: branches that hold each other multiply with every level."
_BY_HAND = "Correct the call where the request is made: no model has written it like that."


CHECK = Check(
    code="arguments-off-schema",
    needs=Part.TOOLS,
    severity=Severity.WARNING,
    party=Party.API,
    title="Arguments that do not match the tool's schema",
    explained="""\
A request declares each tool with a JSON Schema of its arguments. A call came whose arguments are
JSON, yet do not match it: a member is missing, has another type, or is not known. The draft is the
one that the schema's `$schema` names, else 2020-12; nothing is ever fetched for a `$ref`. A `null`
where a member could have been left out is told as `info`.

Kimi models are not held to the schema while they write, so this happens with any of them, more so
with long lists of tools, large schemas and `anyOf`. Clients that check refuse the call, and the
model tries again; clients that do not run the tool with what there is.""",
    example="""\
"tools": [{"name": "Read", "input_schema": {"type": "object", "required": ["file_path"], …}}]
{"type": "tool_use", "id": "Read_0", "name": "Read", "input": {"path": "a.py"}}""",
    remedy="Check arguments before you run a tool, answer with an error result that names what is "
    "wrong, and keep schemas small and flat.",
    look=look,
)
