"""`moontap bundle`: one zip with what a maintainer asks for.

Saved flows in; a zip out with the few exchanges that show a fault, scrubbed, a report and a program
that asks again. It writes nothing where the scrub check fails, and never shows what stands there.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from moontap.commands import UsageError
from moontap.commands.options import Commands, shown
from moontap.commands.terminal import put
from moontap.report.tally import names
from moontap.report.text import many, plain

if TYPE_CHECKING:
    from moontap.bundle.choice import Choice
    from moontap.bundle.make import Bundle
    from moontap.bundle.source import Source
    from moontap.care.identities import Known
    from moontap.care.words import Kind
    from moontap.commands.saved import Saved
    from moontap.rules import Rules

OUT = "moontap-bundle.zip"
_MOST_SAID = 20

_EXAMPLE = f"""\
example:
  moontap bundle moontap-captures/20261129T131500Z-4711           -> {OUT}
  moontap bundle traffic.flow --around Bash_0 --rules scrub.yaml -o loop.zip

The zip holds REPORT.md, bundle.flow (cut and scrubbed), pairs.jsonl, findings.jsonl and
reproduce.py, which asks a server again and needs httpx alone. It is about the worst finding unless
--around or --finding says otherwise. Exit code 1: nothing to show, or the scrub check failed.
"""


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "bundle",
        help="make a zip for a bug report: what shows the fault, without secrets",
        description="Makes a zip of what a maintainer asks for, cut and scrubbed.",
        epilog=_EXAMPLE,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="flow file, folder or HAR file")
    parser.add_argument("-o", "--out", metavar="OUT", default=OUT, help=f"default: {OUT}, here")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--around", metavar="ID", help="about this tool call (its id, either one) or flow"
    )
    what.add_argument("--finding", metavar="CODE", help="about the worst finding of this code")
    parser.add_argument(
        "--rules",
        metavar="FILE",
        help="YAML file with rules: section `scrub` says what to take out",
    )
    parser.add_argument(
        "--salt",
        metavar="TEXT",
        help="a secret of your own to make replacements from, as in `moontap scrub`",
    )
    parser.add_argument("--force", action="store_true", help="replace OUT where it exists")
    parser.set_defaults(execute=bundle)


def bundle(options: argparse.Namespace) -> int:
    """Write it; exit code 0, 1 where there is nothing to show or it is not clean, 2 where
    something could not be read. Raises UsageError."""
    # Slow to import: mitmproxy.
    from moontap.bundle.archive import zipped
    from moontap.bundle.clean import Cleaner
    from moontap.bundle.make import asks
    from moontap.bundle.make import bundle as make
    from moontap.capture.reader import Unreadable
    from moontap.care.identities import Known
    from moontap.care.outfile import Refused, check, write
    from moontap.care.scrub import SALT
    from moontap.commands.inforce import rules_for
    from moontap.commands.saved import Saved

    out, code = Path(options.out), 0
    try:
        rules_for((), options.rules)  # a bad one is said before anything else
        _check_code(options.finding)
        saved = Saved("bundle", options.files, empty=False)
        check(out, force=options.force, given=[*saved.files, options.rules])
        rules, note = rules_for(saved.files, options.rules)
        if note:
            _say(note)
        known = Known(rules.redact)
        sources, code, count = _read(saved, rules, known)
        choice = _choose(sources, options, rules)
        cleaner = Cleaner(rules, known, SALT if options.salt is None else options.salt)
        whole = Counter(finding.code for source in sources for finding in source.findings)
        made = make(choice, cleaner, rules, whole, count)
        if made.left:
            return _refuse(made.left)
        size = write(out, [zipped(made.files)], force=options.force)
    except _Nothing as error:
        _say(f"in what could be read, {error}" if code else str(error))
        return code or 1
    except Refused as error:
        raise UsageError(f"--out: {error}") from None
    except Unreadable as error:
        raise UsageError(str(error)) from None
    put(_summary(made, choice, cleaner.counts, out, size, count), sys.stdout)
    stopped = choice.source.stopped
    if stopped and not set(stopped) & set(choice.numbers):
        put(_STOPPED, sys.stdout)
    if not asks(rules):
        put(_NAMES, sys.stdout)
    return code


_STOPPED = "moontap's guard stopped this run: --finding no-progress shows the loop and the stop\n"
_NAMES = (
    "names and paths in texts stay: say which in a rules file, section `scrub` (--rules FILE), "
    "and look at the files before you send them\n"
)


class _Nothing(Exception):
    """What was asked for is not there; what there is, in a line."""


def _read(saved: "Saved", rules: "Rules", known: "Known") -> "tuple[list[Source], int, int]":
    """The sources, the exit code so far, and the number of exchanges."""
    from moontap.bundle.source import read

    sources = [read(path, records, rules, known) for path, records in saved.records()]
    for source in sources:
        for fault in source.faults:
            _say(f"{shown(source.path)}: the check {fault} failed on it; please report that")
        saved.unread(source.path, source.unread)
    return sources, saved.close(), saved.count


def _check_code(code: str | None) -> None:
    if code is None:
        return
    from moontap.findings.registry import all_checks

    known = [check.code for check in all_checks()]
    if code not in known:
        raise UsageError(f"--finding: {plain(code)} is none of: {', '.join(known)}")


def _choose(sources: "list[Source]", options: argparse.Namespace, rules: "Rules") -> "Choice":
    """What was asked for. Raises _Nothing."""
    from moontap.bundle.choice import around, of_finding, worst

    if options.around is not None:
        choice = around(sources, options.around, rules)
        if choice is None:
            calls = dict.fromkeys(
                id_ for one in sources for pair in one.book.pairs for id_ in pair.names()
            )
            raise _Nothing(
                f"no tool call or flow has the id {options.around}; calls are: "
                f"{names(calls) or 'none'}"
            )
        if choice.among > 1:
            _say(
                f"{options.around} stands for {choice.among} calls or flows; this is about the "
                "first, of those that went wrong if any did"
            )
        return choice
    found = worst(sources, options.finding)
    if found is None:
        others = dict.fromkeys(finding.code for one in sources for finding in one.findings)
        # What is left where no code was asked for is good to know, and no fault.
        known = "found were" if options.finding else "only good to know, shown with --finding"
        what = f"no {options.finding} was found" if options.finding else "nothing wrong was found"
        said = f"; {known}: {names(others)}" if others else ""
        raise _Nothing(f"{what}{said}; --around ID makes a bundle about any tool call or flow")
    return of_finding(*found, rules)


def _refuse(left: Sequence[str]) -> int:
    for line in left[:_MOST_SAID]:
        _say(f"not clean: {line}")
    if (more := len(left) - _MOST_SAID) > 0:
        _say(f"and {more} more places")
    _say("nothing was written: the scrub check failed, and a bundle is for others to read")
    return 1


def _summary(
    made: "Bundle", choice: "Choice", counts: "Counter[Kind]", out: Path, size: int, of: int
) -> str:
    kept = len(choice.numbers)
    lines = [
        f"{shown(out)}: {', '.join(sorted(made.files))} ({max(1, round(size / 1000))} KB)",
        f"it shows, with {kept} of {many(of, 'exchange')}:",
        *(f"  {plain(line)}" for line in made.verdict),
        "removed:",
        *(f"  {kind}: {many(count, 'place')} replaced" for kind, count in sorted(counts.items())),
    ]
    if of > kept:
        lines.append(f"  {many(of - kept, 'exchange')} left out")
    return "\n".join(lines) + "\n"


def _say(line: str) -> None:
    put(f"moontap bundle: {plain(line)}\n", sys.stderr)
