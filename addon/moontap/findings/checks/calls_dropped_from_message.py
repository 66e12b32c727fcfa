"""An assistant message that came back without calls which its reply had."""

from collections import Counter
from collections.abc import Iterator

from moontap.findings.check import Check
from moontap.findings.echoes import echoes
from moontap.findings.excerpts import excerpt
from moontap.findings.losses import lost
from moontap.findings.turn import Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity


def look(turn: Turn) -> Iterator[Found]:
    """Once in a conversation for messages that lost all of their calls, once for some."""
    missing = Counter(
        (one.call.origin.flow, one.call.id, one.call.name) for one in lost(turn) if one.call
    )
    if not missing:
        return
    for position, message, said in echoes(turn):
        gone = [id_ for id_, name, _ in said.calls if missing[said.flow, id_, name] > 0]
        if not gone:
            continue
        left = len(message.calls)
        shown = excerpt(message.text)
        rest = f"{left} of its {left + len(gone)} calls" if left else "its text alone"
        yield Found(
            f"The assistant message {position} came back with {rest}.",
            about="some" if left else "all",
            evidence=Evidence(
                message=position,
                ids=tuple(gone),
                excerpt=shown,
                facts={"delivered_in": said.exchange, "delivered_flow": said.flow},
            ),
        )


CHECK = Check(
    code="calls-dropped-from-message",
    needs=Part.HISTORY | Part.TURNS,
    severity=Severity.INFO,
    party=Party.CLIENT,
    title="An assistant message rebuilt without its calls",
    explained="""\
A reply brought text and tool calls; in the next request the assistant message at its place has the
text, or a placeholder such as `[Tool use interrupted]`, and not the calls. The client built the
message anew and left out what it could not pair. This tells where it happened;
`pair-dropped-by-client` tells which pairs were lost, and why.

The model reads that it only talked. It repeats the call, or claims results that it never saw.""",
    example="""\
reply: {"role": "assistant", "content": [{"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "Bash_0", …}]}
next request: {"role": "assistant", "content": [{"type": "text", "text": "I look."}]}""",
    remedy="Send assistant messages back with all their calls, each with its result; with a client "
    "that pairs by id, make ids unique with `moontap run`.",
    look=look,
)
