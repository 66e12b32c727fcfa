"""`moontap rules`: whether a rules file is right, and which rules are in force.

A rules file, or none, in; a line or YAML on stdout. It changes no file.
"""

import argparse
import sys
from pathlib import Path

from moontap.commands import UsageError
from moontap.commands.options import Commands, shown
from moontap.commands.terminal import put
from moontap.report.text import plain

_EXAMPLE = """\
example:
  moontap rules                          the defaults
  moontap rules rules.yaml               is anything wrong in it?
  moontap rules rules.yaml --explain     every rule in force, and the line it comes from
  moontap rules --explain > rules.yaml   a file to begin with

docs/rules.md says what each is for. Exit code 2 where the file has a mistake.
"""


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "rules",
        help="check a rules file; show the rules in force, and where each comes from",
        description="Checks a rules file, or shows every rule in force with its source.",
        epilog=_EXAMPLE,
    )
    parser.add_argument("file", nargs="?", metavar="FILE", help="a YAML file; none: the defaults")
    parser.add_argument(
        "--explain", action="store_true", help="print every rule with its value and its source"
    )
    parser.set_defaults(execute=rules)


def rules(options: argparse.Namespace) -> int:
    """Print them; exit code 0. Raises UsageError where the file has a mistake."""
    # Slow to import: the checks, whose codes a file may name.
    from moontap.rules import RulesError, hints_of
    from moontap.rules.explained import explained, sections_of

    try:
        if options.explain or options.file is None:
            put(explained(options.file), sys.stdout)
        else:
            sections, hints = sections_of(options.file), hints_of(options.file)
            put(_checked(options.file, sections, hints), sys.stdout)
    except RulesError as error:
        raise UsageError(plain(str(error))) from None
    return 0


def _checked(path: str, sections: list[str], hints: list[str]) -> str:
    """A line about the file, and one for each thing in it that may not be meant."""
    wrong = "nothing is wrong in it, but look at this" if hints else "nothing is wrong in it"
    has = f"{wrong}; it has {', '.join(sections)}"
    head = f"{shown(Path(path))}: {has if sections else 'no rules in it, so the defaults hold'}"
    return "".join(f"{line}\n" for line in (head, *map(plain, hints)))
