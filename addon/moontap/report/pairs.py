"""Lines of `pairs.jsonl` as a table.

Log lines in, a rich table out. It prints nothing, and nothing from the wire reaches the terminal
as markup or control sequence.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from moontap.report.text import latency, plain, short

WIDE = 130
"""Terminal columns from which each thing gets a column of its own."""

_STATUS = {"ok": "green", "error": "red", "unanswered": "yellow", "orphan": "yellow"}
_LONGEST, _LONGEST_ID = 32, 42


def pairs_table(
    lines: Iterable[Mapping[str, Any]], title: str | None = None, width: int = WIDE
) -> Table:
    """The pairs in the order of the log; below `WIDE` columns each takes two lines.

    A star marks an upstream id that was used before in its conversation.
    """
    wide = width >= WIDE
    rows = [(line, _ids(line)) for line in lines]
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.HEAVY_HEAD if wide else box.SIMPLE_HEAD,
        padding=(0, 1) if wide else (0, 1, 0, 0),
    )
    columns = ("tool", "arguments", "result") if wide else ("call, result",)
    table.add_column("#", justify="right", min_width=2)
    # rich narrows the columns that may wrap before it touches any other. Ids are what the table is
    # about: whatever else is cut, they are whole. Each cell says for itself what its text does.
    for name in columns:
        table.add_column(name)
    for at, name in enumerate(("upstream id", "id") if wide else ("upstream id, id",)):
        shown = [len(text) for _, ids in rows for text in (ids[at : at + 1] if wide else ids)]
        table.add_column(name, no_wrap=True, min_width=min(max(shown, default=0), _LONGEST_ID))
    table.add_column("status", no_wrap=True)
    table.add_column("latency", justify="right", no_wrap=True)
    for number, (line, ids) in enumerate(rows, 1):
        call = _call(line)
        if not wide:
            tool, arguments, result = call
            call = (_cut("\n").join((_cut(" ").join((tool, arguments)), result)),)
            ids = (_whole("\n").join(ids),)
        status = plain(str(line.get("status")))
        table.add_row(
            Text(str(number)),
            *call,
            *ids,
            Text(status, style=_STATUS.get(status, "")),
            Text(latency(line.get("latency_s"))),
        )
    return table


def _call(line: Mapping[str, Any]) -> tuple[Text, ...]:
    return (
        _cut(plain(str(line.get("tool") or ""))),
        _cut(short(line.get("arguments"), _LONGEST)),
        _cut(short(line.get("result"), _LONGEST)),
    )


def _cut(text: str) -> Text:
    return Text(text, no_wrap=True, overflow="ellipsis")


def _whole(text: str, style: str = "") -> Text:
    return Text(text, style, no_wrap=False, overflow="fold")


def _ids(line: Mapping[str, Any]) -> tuple[Text, ...]:
    upstream = plain(str(line.get("upstream_id") or ""))
    return (
        _whole(upstream + (" *" if line.get("duplicate") else "")),
        _whole(plain(str(line.get("id") or "")), "green" if line.get("rewritten") else ""),
    )
