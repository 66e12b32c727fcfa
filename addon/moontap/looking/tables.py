"""Pairs and findings as lines of text, for a console and for mitmweb's event log.

What is known of exchanges in, lines without any colour out, none wider than asked for, save where
an id is. Pure. An id is never cut: it is what people look for.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from moontap.findings.types import Severity
from moontap.looking.facts import CallFact, Facts, FindingFact
from moontap.looking.views.page import wrapped
from moontap.looking.views.words import columns
from moontap.report.text import latency, many, plain, short

WIDE = 132
"""Columns from which a pair takes one line; below it takes two or three."""

WAITING = "no result yet"
"""The status of a call whose result has not come yet; the others are those of `pairs.jsonl`."""

_MEANT = {"error": "failed"}

_MOST = 400  # characters of a value that are looked at
_LEAST = 16  # columns of arguments and result
_LONGEST_TOOL = 28
_STAR = " *"
_EXPLAINED = "* the model had used this id before in its conversation"

type Pair = Mapping[str, Any]
"""A line of `pairs.jsonl`, or as much of one as is known."""


def pairs_of(exchanges: Iterable[Facts]) -> list[Pair]:
    """The pairs that began in these exchanges, and results of theirs that belong to no call."""
    pairs: list[Pair] = []
    for facts in exchanges:
        pairs += facts.orphans
        pairs += [call.line or waiting(call) for call in facts.calls]
    return pairs


def waiting(call: CallFact) -> Pair:
    """What is known of a call whose line is not there yet."""
    return {
        "status": call.answer or WAITING,
        "tool": call.tool,
        "id": call.id,
        "upstream_id": call.upstream_id,
        "duplicate": call.duplicate,
        "rewritten": call.rewritten,
        "latency_s": call.latency_s,
    }


def pairs_gist(pairs: Sequence[Pair]) -> str:
    """`3 pairs: 2 ok, 1 unanswered; 1 id used before, 1 rewritten`."""
    if not pairs:
        return "no pairs"
    statuses = Counter(str(pair.get("status")) for pair in pairs)
    said = f"{many(len(pairs), 'pair')}: " + ", ".join(
        f"{count} {_MEANT.get(status, plain(status))}" for status, count in statuses.most_common()
    )
    reused = sum(bool(pair.get("duplicate")) for pair in pairs)
    rewritten = sum(bool(pair.get("rewritten")) for pair in pairs)
    more = [f"{many(reused, 'id')} used before"] if reused else []
    more += [f"{rewritten} rewritten"] if rewritten else []
    return "; ".join([said, *([", ".join(more)] if more else [])])


def pairs_table(pairs: Sequence[Pair], width: int) -> list[str]:
    """The pairs in order, under a heading. A star marks a reused id."""
    if not pairs:
        return []
    rows = [_Row(number, pair) for number, pair in enumerate(pairs, 1)]
    lines = _in_one(rows, width) if width >= WIDE else None
    lines = lines or list(_in_two(rows, width))
    return [*lines, *([_EXPLAINED] if any(row.reused for row in rows) else [])]


class _Row:
    """A pair as texts."""

    def __init__(self, number: int | None, pair: Pair) -> None:
        self.number = "" if number is None else str(number)
        self.tool = _cut(plain(str(pair.get("tool") or "")), _LONGEST_TOOL)
        self.arguments = short(pair.get("arguments"), _MOST)
        self.result = short(pair.get("result"), _MOST)
        self.reused = bool(pair.get("duplicate"))
        self.upstream_id = plain(str(pair.get("upstream_id") or "")) + self.reused * _STAR
        self.id = plain(str(pair.get("id") or ""))
        self.rewritten = bool(pair.get("rewritten"))
        self.status = plain(str(pair.get("status") or ""))
        self.latency = latency(pair.get("latency_s"))

    @property
    def ids(self) -> str:
        return f"{self.upstream_id} → {self.id}" if self.rewritten else self.upstream_id


def _in_one(rows: Sequence[_Row], width: int) -> list[str] | None:
    """A line each; None where the ids leave no room for the rest."""
    heads = ("#", "tool", "arguments", "result", "upstream id", "id", "status", "latency")
    fixed = [
        [getattr(row, name) for row in rows]
        for name in ("number", "tool", "upstream_id", "id", "status", "latency")
    ]
    names = [head for head in heads if head not in ("arguments", "result")]
    sizes = [max(map(columns, (name, *cells))) for name, cells in zip(names, fixed, strict=True)]
    room = width - sum(sizes) - 2 * (len(heads) - 1)
    if room < 2 * _LEAST:
        return None
    most = [
        max(columns(head), *(columns(getattr(row, head)) for row in rows)) for head in heads[2:4]
    ]
    first = min(most[0], max(room // 2, room - most[1]))
    number, tool, *rest = sizes
    widths = (number, tool, first, min(most[1], room - first), *rest)
    lines = [heads]
    lines += [
        (r.number, r.tool, r.arguments, r.result, r.upstream_id, r.id, r.status, r.latency)
        for r in rows
    ]
    return [
        "  ".join(
            _right(cell, size) if at in (0, len(heads) - 1) else _left(cell, size)
            for at, (cell, size) in enumerate(zip(cells, widths, strict=True))
        ).rstrip()
        for cells in lines
    ]


def _in_two(rows: Sequence[_Row], width: int) -> Iterator[str]:
    """Tool, status and ids in a line, the call with its result in one below; the ids in a line of
    their own where one of them is too long."""
    number = max(len(row.number) for row in rows)
    tool, status, took = (
        max(columns(head), *(columns(getattr(row, head)) for row in rows))
        for head in ("tool", "status", "latency")
    )
    before = number + tool + status + took + 4 * 2
    inline = before + max(columns(row.ids) for row in rows) <= width
    indent = " " * (number + 2)

    def line(number_: str, tool_: str, status_: str, latency_: str, ids: str) -> str:
        cells = (
            _right(number_, number),
            _left(tool_, tool),
            _left(status_, status),
            _right(latency_, took),
            ids,
        )
        return "  ".join(cells).rstrip()

    ids = "id (upstream id → id)" if any(row.rewritten for row in rows) else "id"
    yield line("#", "tool", "status", "latency", ids if inline else "")
    if not inline:
        yield indent + ids
    yield f"{indent}arguments → result"
    for row in rows:
        yield line(row.number, row.tool, row.status, row.latency, row.ids if inline else "")
        if not inline:
            yield from _own_line(row, width, indent)
        yield (indent + _call(row, width - len(indent))).rstrip()


def _own_line(row: _Row, width: int, indent: str) -> Iterator[str]:
    if columns(row.ids) + len(indent) <= width or not row.rewritten:
        yield indent + row.ids
    else:
        yield indent + row.upstream_id
        yield f"{indent}→ {row.id}"


def _call(row: _Row, width: int) -> str:
    if not row.result:
        return _cut(row.arguments, width)
    room = width - 3
    half = max(room // 2, room - columns(row.result))
    arguments = _cut(row.arguments, half)
    return f"{arguments} → {_cut(row.result, room - columns(arguments))}"


# findings


type Found = tuple[int | None, FindingFact]
"""A finding with the number of its exchange."""


def findings_of(exchanges: Iterable[Facts]) -> list[Found]:
    """The findings with the number of their exchange; the worst first, else in their order."""
    found = [(facts.number, finding) for facts in exchanges for finding in facts.findings]
    return sorted(found, key=lambda one: Severity(one[1].severity).rank, reverse=True)


def findings_gist(found: Sequence[Found]) -> str:
    """`2 findings: 1 error (id-reused), 1 info (stream-slow)`."""
    if not found:
        return "nothing was found"
    by_severity: dict[str, Counter[str]] = {}
    for _, one in found:
        by_severity.setdefault(one.severity, Counter())[one.code] += 1
    said = [
        f"{_of_severity(codes.total(), severity)} ({', '.join(map(plain, codes))})"
        for severity, codes in by_severity.items()
    ]
    return f"{many(len(found), 'finding')}: {', '.join(said)}"


def _of_severity(count: int, severity: str) -> str:
    return f"{count} info" if severity == Severity.INFO else many(count, plain(severity))


def findings_table(found: Sequence[Found], width: int) -> list[str]:
    """Code and severity in a line, below it what was seen, what to do, and where it is explained.

    What to do is said once for each code: it is the same for all.
    """
    return list(_findings(((one, [one]) for one in found), width))


def findings_in_short(found: Sequence[Found], width: int) -> list[str]:
    """The same with one entry for all of a code and severity: how often, from which exchange to
    which, and what the last of them says. A loop of hundreds finds hundreds."""
    alike: dict[tuple[str, str], list[Found]] = {}
    for one in found:
        alike.setdefault((one[1].severity, one[1].code), []).append(one)
    return list(_findings(((_last(group), group) for group in alike.values()), width))


def _findings(entries: Iterable[tuple[Found, Sequence[Found]]], width: int) -> Iterator[str]:
    """Entries: the finding that is told, and all that it stands for."""
    told = set[tuple[str, str]]()
    for (_, one), group in entries:
        yield "  ".join(filter(None, (plain(one.severity), plain(one.code), _where(group))))
        yield from _paragraph("", one.message, width)
        if (one.code, one.remedy) not in told:
            told.add((one.code, one.remedy))
            yield from _paragraph("do: ", one.remedy, width)
            yield f"  see: {plain(one.link)}"


def _last(group: Sequence[Found]) -> Found:
    return max(reversed(group), key=lambda one: one[0] or 0)


def _where(group: Sequence[Found]) -> str:
    """`105 times, exchanges 3 to 107`."""
    numbers = sorted({number for number, _ in group if number is not None})
    often = f"{len(group):,} times" if len(group) > 1 else ""
    if not numbers:
        return often
    first, last = numbers[0], numbers[-1]
    span = f"exchange {first}" if first == last else f"exchanges {first} to {last}"
    return f"{often}, {span}" if often else span


def _paragraph(lead: str, text: str, width: int) -> Iterator[str]:
    indent = "  " + " " * len(lead)
    for at, part in enumerate(wrapped(plain(text), width - len(indent))):
        yield (indent if at else f"  {lead}") + part


# cells


def _cut(text: str, width: int) -> str:
    """At most so many columns; what was cut ends in `…`."""
    if columns(text) <= width:
        return text
    taken = 0
    for at, character in enumerate(text):
        taken += columns(character)
        if taken > width - 1:
            return text[:at] + "…"
    return text


def _left(text: str, width: int) -> str:
    text = _cut(text, width)
    return text + " " * (width - columns(text))


def _right(text: str, width: int) -> str:
    return " " * (width - columns(text)) + text
