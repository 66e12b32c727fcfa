"""The guard told the model that it repeats itself."""

from collections.abc import Iterator

from moontap.findings.check import Check
from moontap.findings.turn import Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity
from moontap.report.text import short


def look(turn: Turn) -> Iterator[Found]:
    """Once for each reminder; the same request sent again carries the same one."""
    count, streak = turn.reminded, turn.streak
    if count is None:
        return
    steps = streak.cycle if streak else ()
    tools = [step.tool for step in steps]
    said = short(" then ".join(filter(None, tools)), 120) or "a tool"
    yield Found(
        f"moontap reminded the model: {said} was called {count} times in a row to no avail.",
        about=(count, streak.first.flow if streak else None),
        evidence=Evidence(
            ids=tuple(step.id for step in steps), facts={"tools": tools, "count": count}
        ),
    )


CHECK = Check(
    code="guard-reminded",
    needs=Part.HISTORY | Part.TURNS,
    severity=Severity.INFO,
    party=Party.API,
    title="moontap reminded the model that it repeats itself",
    explained="""\
`moontap_guard=remind` was on, and the same calls had been made to no avail. The request went out
with a reminder behind its newest user turn, which the client did not send and will not see
([The guard](guard.md)). Whether it helped, the next turns show; a reminder stops nothing.""",
    example="""\
{"type": "text", "text": "<system-reminder>\\n3 times in a row now you have called Bash with …"}""",
    remedy="Nothing to do where the model took another way; else stop it with moontap_guard=block.",
    look=look,
)
