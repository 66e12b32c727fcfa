"""REPORT.md: what a maintainer reads first.

What a bundle holds in, Markdown out. Pure. Whatever came from the wire stands in blocks of code,
where no server can make links or headings of it.
"""

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moontap.bundle.rounds import Round
from moontap.care.words import Kind
from moontap.report.text import many, plain, short

_ARGUMENTS, _ID, _MESSAGE = 60, 80, 400
_MOST_FIRST, _MOST_LAST, _MOST_FINDINGS = 12, 4, 20

PARTIES = {
    "api": "the model or the API",
    "client": "the client",
    "sdk-retry": "a retry of the SDK",
    "network": "the network",
    "tool": "the tool",
}
"""Who most likely caused a finding, in words."""


@dataclass(frozen=True, slots=True)
class Told:
    """title: what it is about. environment, captured: names and values. findings: lines of
    findings.jsonl, of the sequence; whole: how many of each code there were in all. kept, of:
    exchanges. asks_for_it: whether reproduce.py asks for what is shown here."""

    title: str
    environment: Sequence[tuple[str, str]]
    captured: Sequence[tuple[str, str]]
    rounds: Sequence[Round]
    verdict: Sequence[str]
    findings: Sequence[Mapping[str, Any]]
    whole: Counter[str]
    kept: int
    of: int
    removed: Counter[Kind]
    named: bool
    asks_for_it: bool
    base_url: str
    key: str
    file: str


def report(told: Told) -> str:
    """The text."""
    sections = [
        f"# {_inline(told.title)}\n",
        "## The shortest sequence that shows it\n",
        _code([*_rounds(told.rounds), *told.verdict]),
        f"Ids are as the server sent them. `{told.file}` holds these exchanges: "
        f"{told.kept} of {told.of}. `moontap show ID {told.file}` prints one, "
        f"`mitmweb -nr {told.file}` all.\n",
        "## Environment\n",
        _code(_table([*told.environment, *told.captured])),
        "## Findings\n",
        _findings(told),
        "## Request ids\n",
        _code(_request_ids(told.rounds)),
        "## Asking again\n",
        _asking(told),
        "## What was removed\n",
        _removed(told),
    ]
    return "\n".join(sections)


def _rounds(rounds: Sequence[Round]) -> list[str]:
    lines = [_round(one) for one in rounds]
    if (left := len(lines) - _MOST_FIRST - _MOST_LAST) > 1:
        lines[_MOST_FIRST:-_MOST_LAST] = [f"… {left} more"]
    return lines or ["no exchange of a protocol that is paired"]


def _round(one: Round) -> str:
    if one.stopped:
        history = many(one.messages, "message")
        return f"ROUND {one.number}  after {history}, moontap stopped it here ({one.stopped})"
    message = short(one.message_id, _ID) or "(no message id)"
    if not one.calls:
        return f"ROUND {one.number}  message {message}  no tool call ({one.ending})"
    ids = ", ".join(short(call.upstream_id, _ID) or "(no id)" for call in one.calls)
    said = ", ".join(f"{call.tool} {short(call.arguments, _ARGUMENTS)}" for call in one.calls[:3])
    seen = ", ".join(
        f"{call.upstream_id} as {call.id}" for call in one.calls if call.id != call.upstream_id
    )
    rewritten = f"  (the client got {seen})" if seen else ""
    return f"ROUND {one.number}  message {message}  tool call {ids}  {said}{rewritten}"


def _request_ids(rounds: Sequence[Round]) -> list[str]:
    rows = [
        (
            f"ROUND {one.number}",
            f"{one.request_id or '(none)'}  {one.at or ''}  "
            + ("answered by moontap" if one.stopped else f"status {one.status}"),
        )
        for one in rounds
    ]
    return list(_table(rows)) or ["none"]


def _findings(told: Told) -> str:
    lines = []
    for one in told.findings[:_MOST_FINDINGS]:
        party = PARTIES.get(one["party"], one["party"])
        lines.append(f"{one['severity']}  {one['code']}  most likely {party}")
        lines.append(f"  {short(one['message'], _MESSAGE)}")
        if one["remedy"]:
            lines.append(f"  what to do: {short(one['remedy'], _MESSAGE)}")
        lines.append(f"  {one['link']}")
    if (more := len(told.findings) - _MOST_FINDINGS) > 0:
        lines.append(f"… {more} more, in findings.jsonl")
    counts = ", ".join(f"{code} {count}" for code, count in sorted(told.whole.items()))
    lines = lines or ["nothing was found in these exchanges"]
    return _code(lines) + f"\nIn the whole capture: {counts or 'nothing'}.\n"


def _asking(told: Told) -> str:
    note = (
        ""
        if told.asks_for_it
        else "It asks whether ids come back; what is shown above it does not show by itself:\n"
        f"`moontap replay {told.file}` serves the recorded replies to an agent.\n"
    )
    return (
        f"```sh\npip install httpx\n{told.key}=… python reproduce.py --base-url "
        f"{shlex.quote(_inline(told.base_url))}\n```\n\n"
        "Two rounds with the tool concerned, and a third where two do not settle it. Exit code 1: "
        f"an id came back; 0: none did.\nA server on loopback needs no key.\n{note}"
    )


def _removed(told: Told) -> str:
    left = told.of - told.kept
    lines = [f"{many(left, 'exchange')} left out" if left else "no exchange"]
    lines += [
        f"{kind}: {many(count, 'place')} replaced" for kind, count in sorted(told.removed.items())
    ]
    names = "" if told.named else "Names and paths in texts are as they were: no rule said which.\n"
    return _code(lines) + f"\nSecrets became `*`, the rest something that looks alike.\n{names}"


def _table(rows: Iterable[tuple[str, str]]) -> Iterable[str]:
    rows = list(rows)
    width = max((len(name) for name, _ in rows), default=0)
    return [f"{name:<{width}}  {value}" for name, value in rows]


def _code(lines: Iterable[str]) -> str:
    body = "\n".join(plain(line).replace("```", "'''") for line in lines)
    return f"```\n{body}\n```\n"


def _inline(text: str) -> str:
    """A text without what Markdown or HTML would act on."""
    return "".join("'" if one in "`<>[]|*" else one for one in plain(text))
