"""What a test asks of the calls of its agent.

Pairs in (of a tap, a capture folder, a flow file, or lines); nothing out, or an AssertionError
that shows the calls in question. It never changes what it is given, but for a tap, whose run it
ends.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from moontap.report.text import many, plain, short
from moontap.testing.sources import Ends, Line, lines_of

LOG = "pairs.jsonl"
"""The log of them in a capture folder; docs/capture.md names the fields of a line."""


class Pairs(Ends, Protocol):
    """A tap that has pairs."""

    @property
    def pairs(self) -> list[dict[str, Any]]: ...


type Source = Pairs | Iterable[Line] | str | PathLike[str]
"""What has pairs: a tap, lines, the path of a capture folder or of a flow file."""

_PAIRED = ("ok", "error")
_MOST = 20
_LONGEST = 44
_REUSED = (
    "*: the server gave this id before in the conversation. An agent that pairs by id loses such "
    'a call;\nwith moontap_tap(…, rewrite="all"), or behind `moontap run`, every id is unique.'
)


def pairs_of(source: Source) -> list[Line]:
    """The pairs of a source. A tap's run ends with it, so that the calls that wait are told.

    Of a flow file they are made anew. Raises FileNotFoundError, and `Unreadable` for a file that
    is none of flows.
    """
    return lines_of(source, lambda tap: tap.pairs, LOG, _anew)


def assert_all_paired(source: Source, *, at_least: int = 1) -> None:
    """Every call has come back with its result (status `ok` or `error`), and every result had a
    call.

    at_least: how many calls there must be; 0 allows a session without any.
    """
    __tracebackhide__ = True
    lines = pairs_of(source)
    if text := lost(lines):
        raise AssertionError(text)
    if len(lines) < at_least:
        raise AssertionError(_too_few(len(lines), at_least))


def assert_unique_ids(source: Source, *, at_least: int = 1) -> None:
    """No two calls of one conversation have the same id, as the agent saw it."""
    __tracebackhide__ = True
    lines = [line for line in pairs_of(source) if line.get("status") != "orphan"]
    count = Counter(map(_named, lines))
    if any(number > 1 for number in count.values()):
        twice = {id_[-1] for id_, number in count.items() if number > 1}
        table = _table(lines, lambda one: count[_named(one)] > 1)
        raise AssertionError(f"ids came more than once: {', '.join(map(str, twice))}\n{table}")
    if len(lines) < at_least:
        raise AssertionError(_too_few(len(lines), at_least))


def assert_same_calls(source: Source, expected: Source) -> None:
    """Both made the same calls (tool and arguments) in the same order; ids do not matter."""
    __tracebackhide__ = True
    calls, wanted = _calls(pairs_of(source)), _calls(pairs_of(expected))
    for at, (one, other) in enumerate(zip(calls, wanted, strict=False)):
        if one != other:
            raise AssertionError(
                f"call {at + 1} is another one\n  expected: {other}\n  was:      {one}"
            )
    if len(calls) != len(wanted):
        more, what = (wanted, "missing") if len(wanted) > len(calls) else (calls, "not expected")
        at = min(len(calls), len(wanted))
        raise AssertionError(
            f"{many(len(calls), 'call')}, expected were {len(wanted)}; {what}, first: {more[at]}"
        )


def lost(lines: Sequence[Line]) -> str:
    """The calls without a result and the results without a call, as text; empty where none is."""
    chosen = [line for line in lines if line.get("status") not in _PAIRED]
    if not chosen:
        return ""
    of = f"{len(chosen)} of {many(len(lines), 'tool call')}"
    table = _table(lines, lambda line: line.get("status") not in _PAIRED)
    return f"{of} did not come back with a result\n{table}"


def _named(line: Line) -> tuple[Any, ...]:
    return tuple(line.get(name) for name in ("protocol", "session", "agent", "id"))


def _calls(lines: Iterable[Line]) -> list[str]:
    return [
        f"{line.get('tool')} {json.dumps(line.get('arguments'), sort_keys=True)}"
        for line in lines
        if line.get("status") != "orphan"
    ]


def _too_few(count: int, at_least: int) -> str:
    if count:
        came = many(count, "tool call")
        return f"{came} came through the tap, expected were at least {at_least}"
    return (
        "no tool call came through the tap: the agent made none, or it does not use the tap's URL"
    )


def _table(lines: Sequence[Line], marked: Callable[[Line], bool]) -> str:
    """The marked calls with their numbers; a star for an upstream id that was used before."""
    rows = [("#", "tool", "arguments", "upstream id", "id", "status")]
    starred = False
    chosen = [(number, line) for number, line in enumerate(lines, 1) if marked(line)]
    for number, line in chosen[:_MOST]:
        again = bool(line.get("duplicate"))
        starred |= again
        rows.append(
            (
                str(number),
                plain(str(line.get("tool") or "?")),
                short(line.get("arguments"), _LONGEST),
                plain(str(line.get("upstream_id") or "")) + (" *" if again else ""),
                plain(str(line.get("id") or "")),
                plain(str(line.get("status"))),
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    texts = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    if len(chosen) > _MOST:
        texts.append(f"and {len(chosen) - _MOST} more")
    return "\n".join([*texts, *([_REUSED] if starred else [])])


def _anew(path: Path) -> list[Line]:
    # mitmproxy, which reads flow files, is slow to import: not for a test that reads none.
    from moontap.testing.flows import lines

    return list[Line](lines(path))
