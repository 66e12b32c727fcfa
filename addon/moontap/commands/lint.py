"""`moontap lint`: what is wrong in the evidence that people have.

Files or standard input in; a report, JSON or annotations on stdout, and on stderr what could not be
read. It changes no file.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from moontap.commands import UsageError
from moontap.commands.options import Commands
from moontap.commands.terminal import put

if TYPE_CHECKING:
    from moontap.evidence.examine import Examined
    from moontap.rules import Rules

_LEVELS = ("error", "warning", "info", "never")

_EXAMPLE = """\
example:
  moontap lint moontap-captures                            what went wrong in the runs there
  moontap lint ~/.claude/projects/-home-me-shop            sessions of Claude Code
  moontap lint request.json reply.sse                      bodies that a log has kept
  pbpaste | moontap lint -                                 whatever is on the clipboard
  moontap lint --github --fail-on warning captures/        annotations in a GitHub workflow

FILE is told by what it holds: a capture folder, flow file or HAR; the body of a request, reply or
error as JSON; an event stream; a messages array; a transcript or debug log (--debug-file) of Claude
Code; context.jsonl or wire.jsonl of Kimi CLI. gzip and zstd are unpacked. Keys are masked.

exit code: 1 where something at or above --fail-on was found; else 2 where an input, or a part of
it, could not be read; else 0.
"""


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "lint",
        help="say what is wrong in a capture, a body, a transcript, a log",
        description="Runs every check that the given evidence allows, and says which it does not.",
        epilog=_EXAMPLE,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="file or folder; - for stdin")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="one JSON object")
    how.add_argument("--github", action="store_true", help="annotations of a GitHub workflow")
    how.add_argument(
        "--all", action="store_true", help="each place, and each check that could not run"
    )
    parser.add_argument(
        "--fail-on",
        metavar="LEVEL",
        choices=_LEVELS,
        default="error",
        help=f"exit with 1 from here on: {', '.join(_LEVELS)} (default: error)",
    )
    parser.add_argument(
        "--rules", metavar="FILE", help="YAML file with rules; default: a captured run's own"
    )
    parser.set_defaults(execute=lint)


def lint(options: argparse.Namespace) -> int:
    """Examine the files; the exit code. Raises UsageError."""
    # Slow to import: mitmproxy.
    from moontap.commands.inforce import rules_for

    own, _ = rules_for((), options.rules)
    if options.files.count("-") > 1:
        raise UsageError("standard input can be read but once: give one -")

    from moontap.capture.reader import Once
    from moontap.evidence.inputs import STANDARD_INPUT, files
    from moontap.evidence.source import Unknown, Unusable

    said: list[str] = []
    found: list[Examined] = []
    once = Once()
    for given in options.files:
        try:
            names = [one for one in files(given) if one == STANDARD_INPUT or once(Path(one))]
        except Unusable as error:
            if str(error) not in said:
                said.append(str(error))
            continue
        passed_over = 0
        for name in names:
            try:
                one = _examined(name, given, own, options.rules)
            except Unusable as error:
                if isinstance(error, Unknown) and len(names) > 1:
                    passed_over += 1  # a folder may hold anything
                else:
                    said.append(str(error))
                continue
            except MemoryError:
                said.append(f"{name}: too large for the memory of this machine: give a part of it")
                continue
            found.append(one)
            if not options.json:
                _show(one, github=options.github, full=options.all)
        if passed_over and passed_over == len(names):
            said.append(f"{given}: none of its {passed_over} files is of a kind that can be read")
    if options.json:
        _write(found, said)
    _tell(said, found)
    return _code(found, said, options.fail_on)


def _examined(name: str, given: str, own: "Rules", file: str | None) -> "Examined":
    """One input. own: the rules that hold where it is no capture of ours; file: of --rules. Raises
    Unusable."""
    from moontap.capture.reader import TRAFFIC
    from moontap.commands.inforce import rules_for
    from moontap.evidence.examine import examine
    from moontap.evidence.inputs import STANDARD_INPUT, opened, standard_input

    stdin = standard_input() if name == STANDARD_INPUT else None
    source, kind = opened(name, stdin, given)
    if name == STANDARD_INPUT or Path(name).name != TRAFFIC:
        return examine(source, own, kind)
    rules, note = rules_for([name], file)
    one = examine(source, rules, kind)
    one.notes += [note] if note else []
    return one


def _show(one: "Examined", *, github: bool, full: bool) -> None:
    from rich.console import Console

    from moontap.report.lint import annotations, report
    from moontap.report.text import harmless

    if github:
        put("".join(f"{line}\n" for line in annotations(one)), sys.stdout)
        return
    console = Console(highlight=False, markup=False, emoji=False)
    with console.capture() as captured:
        console.print(report(one, full=full), soft_wrap=not console.is_terminal)
    put(harmless(captured.get()), sys.stdout)


def _write(found: "list[Examined]", said: list[str]) -> None:
    from moontap.redact.flow import Redactor
    from moontap.report.lint import as_json

    mask = Redactor().mask_text
    whole = {"v": 1, "inputs": [as_json(one) for one in found], "unreadable": list(map(mask, said))}
    # A runner of workflows looks for its old commands anywhere in a line.
    put(json.dumps(whole, indent=2).replace("##[", "#\\u0023[") + "\n", sys.stdout)


def _tell(said: list[str], found: "list[Examined]") -> None:
    """On stderr: what could not be read, and checks that failed."""
    from moontap.redact.flow import Redactor
    from moontap.report.text import harmless, plain

    mask = Redactor().mask_text
    faults = {code: why for one in found for code, why in one.faults.items()}
    lines = [*said, *(f"the check {code} failed: {why}" for code, why in faults.items())]
    lines += [f"{one.name}: damaged: {damage}" for one in found for damage in one.damage]
    for line in lines:
        put(harmless(f"moontap lint: {plain(mask(line))}\n"), sys.stderr)


def _code(found: "list[Examined]", said: list[str], fail_on: str) -> int:
    from moontap.findings.types import Severity

    if fail_on != "never":
        least = Severity(fail_on).rank
        if any(one.finding.severity.rank >= least for ex in found for one in ex.findings):
            return 1
    return 2 if said or any(one.damage for one in found) else 0
