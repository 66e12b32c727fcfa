"""Ids of K2 models that do not have K2's own shape."""

from collections.abc import Iterator

from moontap.findings.check import Check
from moontap.findings.naming import is_empty, named, tool_named
from moontap.findings.turn import Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity
from moontap.ids import Style, style_for


def look(turn: Turn) -> Iterator[Found]:
    """Once a conversation for ids that lost their shape, once for those of another kind."""
    if turn.got is None or style_for(Style.AUTO, turn.model) is not Style.NATIVE:
        return
    for call, upstream in zip(turn.got.calls, turn.got.upstream_ids, strict=True):
        if upstream is None or is_empty(upstream) or _has_shape(upstream, call.name):
            continue
        broken, name = _is_broken(upstream, call.name), tool_named(call.name, "name")
        what = "has lost its shape" if broken else "is of another kind"
        yield Found(
            f"The id {named(upstream)} {what}: {turn.model} counts its calls as "
            f"`functions.{name}:0`, `functions.{name}:1`, and so on.",
            about=broken,
            evidence=Evidence(
                choice=call.choice,
                index=call.index,
                ids=(call.id,),
                facts={"upstream_id": upstream, "tool": call.name},
            ),
            severity=Severity.WARNING if broken else Severity.INFO,
        )


def _has_shape(id_: str, tool: str) -> bool:
    head, colon, number = id_.rpartition(":")
    fits = head in (tool, f"functions.{tool}") if tool else bool(head)
    return bool(colon) and fits and number.isascii() and number.isdigit()


def _is_broken(id_: str, tool: str) -> bool:
    """Whether it is made of what K2's ids are made of."""
    return id_.startswith("functions") or bool(tool and id_.startswith(tool))


CHECK = Check(
    code="id-k2-shape",
    needs=Part.REPLY,
    severity=Severity.WARNING,
    party=Party.API,
    title="A K2 model's id is out of shape",
    explained=(
        "For K2 models the id is text of the prompt: the model writes `functions.get_weather:3` "
        "itself, and counts over the whole conversation (on Moonshot's wire it is often "
        "`get_weather:3`). An id such as `functionsget_weather5` is the model's, gone wrong; with "
        "it in the history, later calls tend to come out worse: as text, or malformed.\n\n"
        "`info`: the server gives ids of another kind (`call_…`, `chatcmpl-tool-…`). That is fine "
        "if it turns them back for the model, which cannot be seen from outside."
    ),
    example='{"id": "functionsexec5", "type": "function", "function": {"name": "exec", …}}',
    remedy=(
        "Keep ids as the server sends them (no `moontap_id_style=opaque` for K2) and start the "
        "conversation anew where calls get worse; a provider whose ids are always so has its "
        "parser to mend."
    ),
    look=look,
)
