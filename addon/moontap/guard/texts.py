"""What the guard says: to the model within a request, and to the person in its place.

A streak or a limit in, texts out. What they quote is masked and cut. Pure.
"""

from collections.abc import Callable

from moontap.findings.progress import Streak
from moontap.report.text import plain

type Mask = Callable[[str], str]
"""Takes secrets out of a text."""

MOST_ARGUMENTS = 200
"""Characters of a call's arguments that a reminder quotes. Kimi's own clients found that quoting
them in full keeps the repeated call before the model's eyes (MoonshotAI/kimi-code pull 1518)."""

_QUOTED = 4
"""Calls of a cycle that are quoted."""

_RELEASE = ", and so does mitmproxy's command moontap.guard.release"
_UNIQUE = (
    "The cure: have moontap make the ids unique, by `moontap run` without `--rewrite off` or by "
    "moontap_rewrite=all; that they come back is why this client loses the results. "
)
_GRANT = ", or let this one go on with mitmproxy's command moontap.guard.release"
_NAMELESS = "a tool without a name"
_ANSWER = "See that the client sends a result for every call. "

# What to do instead goes before what not to do: bare prohibitions work worse (the same pull).
_ADVICE = (
    "Read that result once more: it is the answer. If the task needs more, take another step "
    "now: another tool, or other arguments.",
    "One more call like that will bring nothing new either. Say in a sentence what you know by "
    "now and what is missing; then get the missing part in another way, or ask the user for it.",
    "Bring this to an end: without another tool call, tell the user what you found out, what you "
    "tried that brought nothing new, and what you would need to go on.",
)
_LOST_ADVICE = (
    "Its results do not arrive. Take another step now: another tool, or other arguments, or go on "
    "with what you know.",
    "The next result will not arrive either. Say in a sentence what you know by now and what is "
    "missing; then get the missing part in another way, or ask the user for it.",
    "Bring this to an end: without another tool call, tell the user what you know and that the "
    "results of this tool do not reach you.",
)


def reminder(streak: Streak, level: int, mask: Mask) -> str:
    """The text that goes to the model, in the tags that Kimi's own clients use for such notes.

    level: from 0 on, the higher the stronger.
    """
    calls = " and then ".join(
        f"{step.tool} with {_quoted(step.text, mask)}" for step in streak.cycle[:_QUOTED]
    )
    if (left := len(streak.cycle) - _QUOTED) > 0:
        calls += f", and {left} more"
    lost = is_lost(streak)
    came = "no result came back" if lost else "the result was the same each time"
    advice = _LOST_ADVICE if lost else _ADVICE
    said = (
        f"{streak.count} times in a row now you have called {calls}, and {came}. "
        f"{advice[min(level, len(advice) - 1)]}"
    )
    said = said.encode("utf-8", "replace").decode()
    return f"<system-reminder>\n{said}\n</system-reminder>"


def is_lost(streak: Streak) -> bool:
    """Whether results are missing, rather than the same."""
    return any(step.result is None for step in streak.cycle)


def tools(streak: Streak) -> str:
    """The tools of a streak's cycle, in words."""
    names = [step.tool for step in streak.cycle[:_QUOTED]]
    left = len(streak.cycle) - len(names)
    return plain(" then ".join(names) + (f" and {left} more" if left else "")) or _NAMELESS


def no_progress(streak: Streak, allowed: int, *, reused: bool, commands: bool) -> str:
    """Why a request is not sent on, and what to do. reused: ids of its calls were used before.
    commands: the person can type mitmproxy's."""
    lost = is_lost(streak)
    came = "no result came back" if lost else "the result was the same each time"
    cure = (_UNIQUE if reused else _ANSWER) if lost else ""
    return (
        f"moontap stopped this agent: {tools(streak)} was called {streak.count} times in a row "
        f"with the same arguments, and {came} (the limit is {allowed}). Nothing was sent on. {cure}"
        "Look at what it does; something new that you say to it, or another request, lifts this"
        f"{_RELEASE if commands else ''}."
    )


def over_limit(what: str, used: float, allowed: float, *, commands: bool) -> str:
    """Why a request of a session that used up a limit is not sent on, and what to do. commands:
    the person can type mitmproxy's."""
    return (
        f"moontap stopped this session: it has used {used:g} {what}, and its limit is {allowed:g}. "
        f"Nothing was sent on. A new session begins anew; to give each more, raise "
        f"guard.session.{what} in the rules file and start moontap again"
        f"{_GRANT if commands else ''}."
    )


def _quoted(arguments: bytes, mask: Mask) -> str:
    text = plain(mask(arguments.decode("utf-8", "replace")))
    if len(text) > MOST_ARGUMENTS:
        text = text[: MOST_ARGUMENTS - 1] + "…"
    return text.replace("</", "<\\/") or "no arguments"  # so that nothing in it closes the tag
