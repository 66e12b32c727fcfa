"""`moontap pairs`: the pairs of saved flows, made anew.

Flow files, capture folders or HAR exports in; a table or the lines of `pairs.jsonl` on stdout, and
on stderr what could not be read. It reads no `pairs.jsonl` and changes no file.
"""

import argparse
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moontap.commands import UsageError
from moontap.commands.options import Commands, shown
from moontap.commands.terminal import put
from moontap.report.tally import Tally, nothing
from moontap.report.text import plain, short

if TYPE_CHECKING:
    from moontap.care.relog import Seen

_STATUS = ("ok", "error", "unanswered", "orphan")
_SHORT = 200
_WIDE = 150

_EXAMPLE = """\
example:
  moontap pairs moontap-captures                       all runs that were captured there
  moontap pairs traffic.flow --status unanswered       which calls lost their result?
  moontap pairs export.har --jsonl > pairs.jsonl       the lines that a capture would have

FILE is a flow file (mitmdump -w writes one, too), a capture folder, a folder of these, or a HAR
file that mitmproxy exported. Keys are masked in what is printed.
"""


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "pairs",
        help="show the tool calls and results in saved flows",
        description="Makes the pairs of saved flows anew, as a table or as lines of JSON.",
        epilog=_EXAMPLE,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="flow file, folder or HAR file")
    parser.add_argument(
        "--jsonl", action="store_true", help="one JSON object a line, as pairs.jsonl has them"
    )
    parser.add_argument("--session", metavar="S", help="only sessions whose name begins so")
    parser.add_argument("--tool", metavar="T", action="append", help="only this tool; repeatable")
    parser.add_argument(
        "--status",
        metavar="S",
        action="append",
        choices=_STATUS,
        help=f"only this status: {', '.join(_STATUS)}; repeatable",
    )
    parser.add_argument("--rules", metavar="FILE", help="YAML file with rules for redaction")
    parser.set_defaults(execute=pairs)


def pairs(options: argparse.Namespace) -> int:
    """Print the pairs; exit code 0, or 2 where something could not be read. Raises UsageError."""
    # Slow to import: mitmproxy.
    from moontap.care.relog import Seen, relog
    from moontap.commands.saved import Saved
    from moontap.rules import RulesError, load_rules

    try:
        rules = load_rules(options.rules)
    except RulesError as error:
        raise UsageError(f"--rules: {error}") from None
    # Lines on a terminal show by themselves that it goes on, and a bar would get among them.
    saved = Saved("pairs", options.files, bar=not (options.jsonl and sys.stdout.isatty()))
    found: list[_File] = []
    try:
        for path, flows in saved.each():
            one = _File(path, Seen())
            found.append(one)
            for line in relog(flows, one.seen, rules):
                chosen = _wanted(line, options)
                one.tally.add(line, chosen)
                if chosen and options.jsonl:
                    _write(line)
                elif chosen:
                    one.sessions.setdefault(line["session"], []).append(_in_short(line))
        if not options.jsonl:
            _show(found)
        sys.stdout.flush()
    except BrokenPipeError:  # `| head`: nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    _say(found, jsonl=options.jsonl)
    for one in found:
        saved.unread(one.path, one.seen.unread)
    return saved.close()


@dataclass(slots=True)
class _File:
    """A file and what it came to. sessions: the lines for the tables."""

    path: Path
    seen: "Seen"
    tally: Tally = field(default_factory=Tally)
    sessions: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


def _wanted(line: Mapping[str, Any], options: argparse.Namespace) -> bool:
    return (
        (not options.session or str(line["session"]).startswith(options.session))
        and (not options.tool or line["tool"] in options.tool)
        and (not options.status or line["status"] in options.status)
    )


def _write(line: Mapping[str, Any]) -> None:
    from moontap.capture.folder import json_line

    sys.stdout.buffer.write(json_line(line))


def _in_short(line: Mapping[str, Any]) -> dict[str, Any]:
    """The line without what a table has no room for: results may come to gigabytes."""
    shortened = {name: short(line[name], _SHORT) for name in ("arguments", "result")}
    return {**line, **shortened}


def _show(found: list[_File]) -> None:
    """A table for each session of each file."""
    from rich.console import Console
    from rich.text import Text

    from moontap.report.pairs import pairs_table

    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:  # then it has no width either
        console.width = _WIDE
    several = len(found) > 1
    for one in found:
        for session, lines in one.sessions.items():
            title = f"session {plain(session)}"
            if several:
                title = f"{shown(one.path)}, {title}"
            # Not the table's own title, which is folded at its width.
            console.print(Text(title, "bold"), soft_wrap=True)
            console.print(pairs_table(lines, width=console.width))
        if one.tally.chosen:
            where = f"{shown(one.path)}: " if several else ""
            star = " (*)" if one.tally.duplicates else ""
            console.print(f"{where}{one.tally}{star}", soft_wrap=True)


def _say(found: list[_File], *, jsonl: bool) -> None:
    """On stderr: what the lines come to, and why there are none to see."""
    several, any_ = len(found) > 1, any(one.tally.chosen for one in found)
    for one in found:
        if one.tally.chosen and jsonl and several:
            _tell(f"{shown(one.path)}: {one.tally}")
    if found and not any_:
        whole = Tally()
        for one in found:
            whole.include(one.tally)
        exchanges = sum(one.seen.exchanges for one in found)
        paired = sum(one.seen.paired for one in found)
        where = "" if several else f"{shown(found[0].path)}: "
        _tell(where + nothing(whole, exchanges, paired, len(found)))


def _tell(line: str) -> None:
    put(f"moontap pairs: {plain(line)}\n", sys.stderr)
