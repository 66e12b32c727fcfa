"""A user turn that says nothing, or that holds what clients put in place of nothing."""

from collections.abc import Iterator

from moontap.findings.check import Check
from moontap.findings.excerpts import excerpt
from moontap.findings.steps import is_empty_turn
from moontap.findings.turn import Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity


def look(turn: Turn) -> Iterator[Found]:
    """The new user messages without a result, an image or a word of anybody's."""
    for position, message in turn.sent.fresh if turn.sent else ():
        if not is_empty_turn(message):
            continue
        shown = excerpt(message.text.strip())
        what = f"holds nothing but `{shown}`" if shown else "is empty"
        yield Found(
            f"The user turn in message {position} {what}.",
            about=position,
            evidence=Evidence(message=position, excerpt=shown),
            remedy=_ALONE if shown and Part.TURNS not in turn.parts else None,
        )


_ALONE = (
    "This is the usual sign of a client that has lost a call with its result; one request alone "
    "cannot show which. Record a run with `moontap run -- COMMAND`: it shows that, and its unique "
    "ids mostly end it."
)

CHECK = Check(
    code="empty-user-turn",
    needs=Part.HISTORY,
    severity=Severity.WARNING,
    party=Party.CLIENT,
    title="The user says nothing",
    explained="""\
A user turn of the request is empty, or holds a placeholder such as `(no content)`. No person sent
that: the client had to put something where a tool result stood that it lost. It is the usual sign
of a client that pairs calls and results by id, and of ids that come back (`id-reused`,
`pair-dropped-by-client`).

The model reads it as a user who answers with silence. It does not see that its tool has run, so it
asks what is wanted, or makes the same call again. Some endpoints refuse an empty message instead,
with a 400 that says `must not be empty`.""",
    example="""\
{"role": "assistant", "content": [{"type": "text", "text": "[Tool use interrupted]"}]}
{"role": "user", "content": [{"type": "text", "text": "(no content)"}]}""",
    remedy="Run the agent behind `moontap run`, which makes ids unique, so that the client keeps "
    "each result; in your own client never send a user turn without content.",
    look=look,
)
