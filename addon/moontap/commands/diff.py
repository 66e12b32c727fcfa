"""`moontap diff`: where two captures of the same task part.

Two captures in; the first parting and all differences on stdout, and an exit code. It reads no
`pairs.jsonl` and changes no file.
"""

import argparse
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from moontap.commands import UsageError
from moontap.commands.options import Commands
from moontap.commands.terminal import put
from moontap.report.text import plain

if TYPE_CHECKING:
    from moontap.care.difference import Conversation
    from moontap.rules import Rules

_RESULT = 16_384

_EXAMPLE = """\
example:
  moontap diff moontap-captures/20261129T131500Z-4711 moontap-captures/20261130T080000Z-99
  moontap diff yesterday.flow today.flow --ids

A and B: flow files, capture folders or HAR files. Conversations are matched by the names of session
and agent, else by the calls that they have in common. Ids are compared only with --ids: where they
are unique, they are other ones in each run.
Exit code 0: the same; 1: they differ; 2: something could not be read.
"""


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "diff",
        help="show where two captures of the same task part",
        description="Compares the calls, arguments, results and statuses of two captures.",
        epilog=_EXAMPLE,
    )
    parser.add_argument("a", metavar="A", help="flow file, folder or HAR file")
    parser.add_argument("b", metavar="B", help="the same of the other run")
    parser.add_argument("--ids", action="store_true", help="ids of calls count, too")
    parser.add_argument("--jsonl", action="store_true", help="one JSON object a difference")
    parser.add_argument("--rules", metavar="FILE", help="YAML file with rules for redaction")
    parser.set_defaults(execute=diff)


def diff(options: argparse.Namespace) -> int:
    """Compare; exit code 0 the same, 1 different, 2 unreadable. Raises UsageError."""
    # Slow to import: mitmproxy.
    from moontap.capture.folder import json_line
    from moontap.care.difference import compare
    from moontap.report.difference import as_json, lines
    from moontap.rules import RulesError, load_rules

    try:
        rules = load_rules(options.rules)
    except RulesError as error:
        raise UsageError(f"--rules: {error}") from None
    (a, code_a), (b, code_b) = (_read(path, rules) for path in (options.a, options.b))
    compared = compare(a, b, ids=options.ids)
    if options.jsonl:
        for one in as_json(compared):
            put(json_line(one).decode(), sys.stdout)
    else:
        for line in lines(compared, options.ids):
            put(f"{line}\n", sys.stdout)
    return max(code_a, code_b) or int(any(one.differences for one in compared))


def _read(path: str, rules: "Rules") -> "tuple[list[Conversation], int]":
    """The conversations of a capture, and 2 where a part of it could not be read, else 0."""
    from moontap.care.difference import Calls
    from moontap.care.relog import Seen, relog
    from moontap.commands.saved import Saved
    from moontap.report.tally import Tally, nothing

    # Two captures are held at once: of a long result its hash, and enough to show the difference.
    limits = replace(rules.limits, result_bytes=min(rules.limits.result_bytes, _RESULT))
    rules = replace(rules, limits=limits)
    saved, calls, before = Saved("diff", [path]), Calls(), 0
    whole, exchanges, paired = Tally(), 0, 0
    for file, flows in saved.each():
        seen = Seen()
        for line in relog(flows, seen, rules):
            # Where its own flow is not known: when it became certain.
            flow = line["call_flow"] or seen.flows[-1]
            calls.add(line, before + seen.number(flow))
            whole.add(line, chosen=True)
        before += seen.exchanges
        exchanges += seen.exchanges
        paired += seen.paired
        saved.unread(file, seen.unread)
    code = saved.close()
    if not whole.all:
        _say(f"{path}: {nothing(whole, exchanges, paired)}")
    return calls.conversations(), code


def _say(line: str) -> None:
    put(f"moontap diff: {plain(line)}\n", sys.stderr)
