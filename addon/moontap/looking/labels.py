"""An exchange in words to filter by: `~meta tool=Bash`, `~meta finding=id-reused`.

Facts in, one line of `key=value;` out, see `capture.metadata.LABELS`; and what the views show of
later exchanges. Pure.
"""

import re
from collections.abc import Iterator
from itertools import islice

from moontap.looking.facts import Facts
from moontap.report.text import lasted

_LONG = 200  # characters of a value
_MOST = 200  # tools, ids, answers: mitmproxy makes a text of them for each letter of a filter

UNDER_WAY = re.compile(r"\b(?:waiting|streaming)=")
"""In labels of an exchange that has not ended."""


def labels_of(facts: Facts) -> str:
    """Only what applies, in this order. A `;` ends each value, so that `id=Bash_0;` finds it alone:
    the backslash of `id=Bash_0\\b` is lost in some of the places where filters are typed."""
    return " ".join(f"{key}={word(value)};" for key, value in dict.fromkeys(_pairs(facts)))


def findings_of(facts: Facts) -> str:
    """See `capture.metadata.FINDINGS`."""
    return ", ".join(f"{severity} {code}" for severity, code in facts.ranked())


def answers_of(facts: Facts) -> list[list[str]]:
    """See `capture.metadata.ANSWERS`."""
    answered = (call for call in facts.calls if call.id is not None and call.answer is not None)
    return [
        [
            str(call.id),
            str(call.answer) if call.latency_s is None else _took(call.answer, call.latency_s),
        ]
        for call in islice(answered, _MOST)
    ]


def _took(answer: object, seconds: float) -> str:
    return f"{answer} in {lasted(seconds)}"


def _pairs(facts: Facts) -> Iterator[tuple[str, str]]:
    tools = dict.fromkeys(call.tool for call in facts.calls)
    ids = dict.fromkeys(id_ for call in facts.calls for id_ in (call.upstream_id, call.id) if id_)
    for key, values in (("tool", tools), ("id", ids)):
        for value in islice(values, _MOST):
            yield key, value
    if more := sum(max(0, len(values) - _MOST) for values in (tools, ids)):
        yield "more", str(more)
    for key, text in (
        ("session", facts.session),
        ("agent", facts.agent),
        ("model", facts.model),
        ("exchange", facts.number),
        ("conversation", facts.conversation),
    ):
        if text:
            yield key, str(text)
    ranked = facts.ranked()
    for _, code in ranked:
        yield "finding", code
    if ranked:
        yield "severity", ranked[0][0]
    for key, count in (
        ("rewritten", facts.rewritten),
        ("pairs", facts.answered("ok", "error")),
        ("failed", facts.answered("error")),
        ("unanswered", facts.answered("unanswered")),
        ("reused", sum(call.duplicate for call in facts.calls)),
        ("orphans", len(facts.orphans)),
        ("healed", facts.healed),
    ):
        if count:
            yield key, str(count)
    for key, text in (("stop", facts.stop), ("error", facts.error), ("guard", _guard(facts))):
        if text:
            yield key, text
    if ended := _ended(facts):
        yield "ended", ended
    if facts.asked:
        yield "waiting", "yes"
    if facts.streaming:
        yield "streaming", "yes"


def _guard(facts: Facts) -> str | None:
    return facts.blocked or ("reminded" if facts.reminded else None)


def _ended(facts: Facts) -> str | None:
    """How, where it did not end well."""
    if facts.left:
        return "left"
    if facts.killed:
        return "killed"
    if facts.cut:
        return "cut"
    return "unfinished" if facts.unfinished else None


def word(value: str) -> str:
    """A value of `key=value;`: shortened, and without what would end it."""
    cut = value[:_LONG]
    return "".join(
        one if one.isprintable() and not one.isspace() and one != ";" else "_" for one in cut
    )
