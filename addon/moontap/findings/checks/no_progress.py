"""The same calls with the same results, again and again."""

from collections.abc import Iterator

from moontap.findings.check import Check
from moontap.findings.progress import Streak
from moontap.findings.repeats import is_opening
from moontap.findings.turn import Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity
from moontap.report.text import short

_INFO, _WARNING, _ERROR = Severity.INFO, Severity.WARNING, Severity.ERROR

# By how many thresholds were reached. Three equal calls are a person's test run, too, or a job that
# is waited for; a result that never comes back is a fault at once.
_SAME = (_INFO, _WARNING, _WARNING, _ERROR)
_LOST = (_WARNING, _WARNING, _ERROR, _ERROR)
# An opening that is sent again and again, and never followed up, is a program that takes samples.
_OPENING = (_INFO,)
# Texts that are masked may have differed: a token that is fetched anew each time.
_MASKED = (_INFO, _WARNING)
_NAMED = 4


def look(turn: Turn) -> Iterator[Found]:
    """Once at each threshold that a streak reaches."""
    streak = turn.streak
    if streak is None:
        return
    thresholds = turn.rules.progress.thresholds
    reached = sum(streak.count >= threshold for threshold in thresholds)
    if not reached:
        return
    lost = any(step.result is None for step in streak.cycle)
    sent_again = bool(turn.sent and turn.sent.is_repeat)
    opening = lost and sent_again and turn.sent is not None and is_opening(turn.sent.request)
    masked = any(step.masked for step in streak.cycle)
    scale = _OPENING if opening else _MASKED if masked else _LOST if lost else _SAME
    # A client drops a call for its id where its history has that id already.
    kept = set(turn.sent.request.call_ids) if lost and turn.sent else None
    reused = [
        step.id
        for step in streak.cycle
        if turn.before.is_reused(step.id, step.flow) and (kept is None or step.id in kept)
    ]
    yield Found(
        f"{_named(streak)} {streak.count} times in a row with the same arguments, "
        f"{_came(lost, sent_again, reused)}{_UNSURE if masked else ''}.",
        about=(streak.first, thresholds[reached - 1]),
        evidence=_evidence(streak, lost, bool(reused), masked),
        severity=scale[min(reached, len(scale)) - 1],
        party=Party.CLIENT if lost else Party.API,
        remedy=_remedy(lost, sent_again, reused),
    )


def _named(streak: Streak) -> str:
    cycle = streak.cycle
    if len(cycle) == 1:
        return f"{_tool(cycle[0].tool)} was called"
    tools = list(dict.fromkeys(_tool(step.tool) for step in cycle))
    left = len(tools) - _NAMED
    names = " and ".join(tools[:_NAMED]) + (f" and {left} more" if left > 0 else "")
    return f"The same {len(cycle)} calls of {names} were made"


_UNSURE = "; but there are masked secrets in them, and these may have differed"


def _came(lost: bool, sent_again: bool, reused: list[str | None]) -> str:
    ids = ", ".join(dict.fromkeys(str(id_) for id_ in reused))
    if not lost:
        under = f" (also under the same id, {ids})" if reused else ""
        return f"and the result was the same each time{under}"
    if reused:
        return (
            f"and no result came back: {ids} had been used as an id before, and the client most "
            "likely pairs by id and drops the later calls"
        )
    if sent_again:
        return "and the client sent the same request again each time, without the reply it had got"
    return "and no result came back"


def _remedy(lost: bool, sent_again: bool, reused: list[str | None]) -> str | None:
    if lost and reused:
        return "Make the ids unique: run with moontap_rewrite=all (moontap run does)."
    if lost and sent_again:
        return "Append each reply to the history, with its calls, and one result for each call."
    if lost:
        return "See that the client sends a result for every call, also for one that failed."
    if reused:
        return (
            "Make the ids unique first (moontap_rewrite=all); if it goes on, tell the model what "
            "came of the call, or stop it with moontap_guard."
        )
    return None


def _tool(name: str) -> str:
    return short(name, 60) or "a tool without a name"


def _evidence(streak: Streak, lost: bool, reused: bool, masked: bool) -> Evidence:
    last = streak.cycle[-1]
    return Evidence(
        ids=tuple(step.id for step in streak.cycle),
        excerpt=short(last.text.decode("utf-8", "replace"), 160),
        facts={
            "tools": [step.tool for step in streak.cycle],
            "count": streak.count,
            "lost": lost,
            "ids_reused": reused,
            "masked": masked,
            "first_flow": streak.first.flow,
            "last_flow": last.flow,
        },
    )


CHECK = Check(
    code="no-progress",
    needs=Part.HISTORY,
    severity=Severity.WARNING,
    party=Party.API,
    title="The agent does the same thing again and again",
    explained="""\
The same tool was called with the same arguments and gave the same result, several times in a row;
or the calls of two, three or four replies went round in a cycle. Replies are counted: calls made
side by side are one decision, in whatever order. It is said at 3 times (`info`), 5 and 8
(`warning`) and 12 (`error`); where the result never comes back at 3 and 5 (`warning`), 8 and 12
(`error`). Arguments are compared as JSON, results byte by byte. Times and counters in them are what
your rules leave out (`progress.ignore`); nothing is guessed. A result that changes is progress, so
polling is none of this, and `$web_search` is exempt, as are the tools in `progress.exempt`.
Whatever a person says in between starts the count again. Secrets are masked in what is looked at:
where there is one, it may have changed, so that this is at most a warning.

A call whose result never comes back, and which is made again, counts as well. Then it is the client
that lost it, and the finding names a reused id as the cause where there is one. The same id with
*other* arguments is not this: the agent gets on, and [`id-reused`](#id-reused) tells of the id. The
first words of a conversation sent again and again, with no reply in them, are mostly a program that
takes samples: `info`. A reply that had to be a call (`tool_choice`) needs no result.""",
    example="""\
assistant  tool_use     toolu_a  Bash {"command":"make test"}
user       tool_result  toolu_a  "1 failed"
assistant  tool_use     toolu_b  Bash {"command":"make test"}
user       tool_result  toolu_b  "1 failed"
assistant  tool_use     toolu_c  Bash {"command":"make test"}
user       tool_result  toolu_c  "1 failed\"""",
    remedy="Tell the model what came of the call and what to try instead, or let moontap_guard "
    "remind it or stop it.",
    look=look,
)
