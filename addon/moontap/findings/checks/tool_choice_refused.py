"""A `tool_choice` that the model refuses while it thinks."""

from collections.abc import Iterator

from moontap.findings.check import Check
from moontap.findings.models import model_of, thinks
from moontap.findings.turn import Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity
from moontap.wire import jsontext


def look(turn: Turn) -> Iterator[Found]:
    """By the table of models; where the API took the request after all, the table is behind, and
    nothing is said."""
    if turn.sent is None or not turn.sent.request.asked.tool_choice:
        return
    asked, got = turn.sent.request.asked, turn.got
    if got and 200 <= got.status < 300:
        return
    model, kind = model_of(turn.model), _kind(asked.tool_choice)
    if model is None or kind not in model.choices or not thinks(model, asked):
        return
    seen = got is not None and got.is_refusal and b"tool_choice" in got.body
    what = "a certain tool" if kind == "named" else "some tool to be called"
    yield Found(
        f"`tool_choice` demands {what}, which {model.family} "
        f"{'refused' if seen else 'refuses'} because it thinks.",
        about=kind,
        evidence=Evidence(
            excerpt=asked.tool_choice.decode("utf-8", "replace")[:160],
            facts={"kind": kind, "model": turn.model, "source": model.source},
        ),
        severity=Severity.ERROR if seen else None,
        remedy=_ALWAYS if model.always else None,
    )


def _kind(raw: bytes) -> str | None:
    """`named`, `required`, or None: Messages says the latter `any`."""
    try:
        choice = jsontext.loads(raw)
    except ValueError:
        return None
    if isinstance(choice, dict):
        choice = "named" if choice.get("type") in ("function", "tool") else choice.get("type")
    return {"named": "named", "required": "required", "any": "required"}.get(str(choice))


_ALWAYS = "Leave `tool_choice` at `auto`, and say in the prompt which tool is to be used."

CHECK = Check(
    code="tool-choice-refused",
    needs=Part.TOOLS,
    severity=Severity.WARNING,
    party=Party.CLIENT,
    title="A tool choice that the model refuses",
    explained="""\
With `tool_choice` a request can demand that some tool, or a certain one, is called. Kimi models
that think do not take that: `tool_choice 'specified' is incompatible with thinking enabled`, or the
same with `'required'` (400). K3 refuses a certain tool alone; K2.5, K2.6 and K2.7 refuse both. K2.5
and K2.6 take it where thinking is turned off; K3 and K2.7 always think.

What is known of each model comes from a table with source and date; `source` in the evidence names
it. Where the request was answered all the same, nothing is said.""",
    example="""\
{"model": "kimi-k2.6", "tool_choice": {"type": "function", "function": {"name": "ls"}}, …}
400 {"error": {"message": "tool_choice 'specified' is incompatible with thinking enabled", …}}""",
    remedy='Leave `tool_choice` at `auto`, or send `"thinking": {"type": "disabled"}` with it.',
    look=look,
)
