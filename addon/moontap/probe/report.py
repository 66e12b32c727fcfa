"""What a probe puts on the screen: lines of text that no server can use to write elsewhere on it.

Rounds, verdicts and refusals in, text out. Pure.
"""

from collections.abc import Sequence

from moontap.probe.refusal import Mask
from moontap.probe.rounds import Round
from moontap.probe.verdict import MEANING, ROUNDS, Verdict
from moontap.report.text import short

_ID = 80
_COMPACTED = "  (after a compaction)"


def heading(protocol: str, streamed: bool) -> str:
    """What a block is about."""
    return f"\n{protocol}, {'streamed' if streamed else 'whole'}"


def line(one: Round, mask: Mask) -> str:
    """One round. mask: takes the secrets out of an id, before it is cut."""
    ids = ", ".join(short(mask(id_), _ID) for id_ in one.ids)
    message = short(mask(one.message_id or ""), _ID) or "(no message id)"
    after = _COMPACTED if one.number == ROUNDS else ""
    return f"  ROUND {one.number}  message {message}  tool call {ids}{after}"


def judged(verdict: Verdict, rounds: Sequence[Round]) -> str:
    """The verdict, and what it means."""
    what, *cost = MEANING[verdict].splitlines()
    text = "\n  ".join([f"  {verdict}: {what}", *cost])
    messages = [one.message_id for one in rounds if one.message_id]
    if len(set(messages)) < len(messages):
        text += "\n  note: the message id came back, too. Does a cache or a replay answer here?"
    return text


def not_asked(reason: str) -> str:
    """A case without a verdict."""
    return f"  could not ask: {reason}"


def ending(verdicts: Sequence[Verdict], cases: int) -> str:
    """All cases in a line, and the remedy where there is something to mend."""
    counts = {one: verdicts.count(one) for one in Verdict}
    said = [f"{count} {one}" for one, count in counts.items() if count]
    if missing := cases - len(verdicts):
        said.append(f"{missing} could not be asked")
    text = f"\nof {cases}: {', '.join(said)}"
    if any(one.wanting for one in verdicts):
        text += "\nremedy: moontap run -- COMMAND makes every id unique on its way to the agent"
    return text
