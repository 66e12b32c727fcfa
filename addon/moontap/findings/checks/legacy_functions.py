"""The functions of the time before tools: `functions`, `function_call`, the role `function`."""

from collections.abc import Iterator

from moontap.findings.check import Check
from moontap.findings.turn import Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity
from moontap.wire.types import Protocol

_NOTHING = (b"", b"null", b"[]")


def look(turn: Turn) -> Iterator[Found]:
    """Once for the request, and once for its messages."""
    if turn.sent is None or turn.protocol is not Protocol.OPENAI:
        return
    asked = turn.sent.request.asked
    used = [
        name
        for name, value in (("functions", asked.functions), ("function_call", asked.function_call))
        if value not in _NOTHING
    ]
    if used:
        names = " and ".join(f"`{name}`" for name in used)
        yield Found(
            f"The request uses {names}, the form before `tools`.",
            about="request",
            evidence=Evidence(facts={"fields": used}),
        )
    for position, message in turn.sent.fresh:
        if message.legacy:
            what = "the role `function`" if message.role == "function" else "`function_call`"
            yield Found(
                f"Message {position} has {what}, the form before `tool_calls`.",
                about="history",
                evidence=Evidence(message=position),
            )
            return


CHECK = Check(
    code="legacy-functions",
    needs=Part.HISTORY,
    severity=Severity.WARNING,
    party=Party.CLIENT,
    title="Functions instead of tools",
    explained="""\
The request uses `functions` and `function_call`, or its history has messages of the role
`function`. That is the form which OpenAI replaced by `tools` and `tool_calls` in November 2023.

It knows no ids and one call a reply. Kimi documents tools alone; what becomes of functions depends
on the endpoint: they are left out, so that the model answers in text, or the request is refused.
moontap does not pair such calls, so nothing else that it says about them can be complete.""",
    example="""\
{"functions": [{"name": "get_weather", …}], "messages": [
  {"role": "assistant", "content": null, "function_call": {"name": "get_weather", …}},
  {"role": "function", "name": "get_weather", "content": "rain"}]}""",
    remedy="Declare `tools`, and answer `tool_calls` with messages of the role `tool`.",
    look=look,
)
