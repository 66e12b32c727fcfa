"""`moontap explain`: what happened in saved flows, told in order.

Flow files, capture folders or HAR exports in; an account of each conversation on stdout, and on
stderr what could not be read. It changes no file.
"""

import argparse
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from moontap.commands import UsageError
from moontap.commands.options import Commands, shown
from moontap.commands.terminal import put
from moontap.report.text import plain

if TYPE_CHECKING:
    from moontap.capture.diagnosis import Looked
    from moontap.report.story.conversation import Account

_WIDE = 100
_MOST_SAID = 3

_NOTHING_KEPT = (
    'A run keeps its traffic under moontap-captures, or where moontap_dir (--dir) says; with "" it '
    "keeps nothing"
)
_EXAMPLE = """\
example:
  moontap explain moontap-captures          what went wrong in the runs captured there
  moontap explain traffic.flow --full       every exchange, and what is only good to know
  moontap explain export.har --session 8f3c

For each conversation: turn by turn what was called and what came back, where it went wrong first,
who most likely did it, and what to try. docs/findings.md explains each code. For a check that fails
a build take moontap lint. Keys are masked in what is printed.
"""


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "explain",
        help="tell what happened in saved flows, and where it went wrong",
        description="Tells what happened, in order: where it went wrong, who did it, what to try.",
        epilog=_EXAMPLE,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="flow file, folder or HAR file")
    parser.add_argument(
        "--full", action="store_true", help="every exchange, and what is only good to know"
    )
    parser.add_argument("--session", metavar="S", help="only sessions whose name begins so")
    parser.add_argument("--rules", metavar="FILE", help="YAML file with rules for what is found")
    parser.set_defaults(execute=explain)


def explain(options: argparse.Namespace) -> int:
    """Print the accounts; exit code 0, 2 where something could not be read. Raises UsageError."""
    # Slow to import: mitmproxy.
    from moontap.capture.diagnosis import Diagnosis
    from moontap.commands.saved import Saved
    from moontap.rules import RulesError, load_rules

    try:
        rules = load_rules(options.rules)
    except RulesError as error:
        raise UsageError(f"--rules: {error}") from None
    try:
        saved = Saved("explain", options.files)
    except UsageError as error:
        raise UsageError(f"{error}. {_NOTHING_KEPT}") from None
    try:
        for number, (path, flows) in enumerate(saved.each()):
            diagnosis, file = Diagnosis(rules), _File(path)
            for looked in diagnosis.flows(flows):
                file.add(looked)
            if number:
                _print([""])
            failed = tuple(sorted(diagnosis.judge.faults))
            _show(file, options, tuple(sorted(rules.findings.off)), failed)
        sys.stdout.flush()
    except BrokenPipeError:  # `| head`: nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return saved.close()


@dataclass(slots=True)
class _File:
    """A file and what it came to. accounts: by the number of their conversation."""

    path: Path
    exchanges: int = 0
    paired: int = 0
    tapped: bool = False
    unread: list[str] = field(default_factory=list)
    accounts: "dict[int, Account]" = field(default_factory=dict)

    def add(self, looked: "Looked") -> None:
        from moontap.capture import metadata
        from moontap.report.story.conversation import Account

        self.exchanges += 1
        if looked.unread:
            self.unread.append(looked.unread)
        # The tap notes these of every exchange that it pairs; nobody else does.
        self.tapped |= metadata.CALLS in looked.flow.metadata
        if turn := looked.turn:
            self.paired += 1
            account = self.accounts.setdefault(turn.conversation, Account.of(turn))
            account.add(
                turn,
                looked.findings,
                reminded=metadata.REMINDED in looked.flow.metadata,
                stopped=str(looked.flow.metadata.get(metadata.BLOCKED, "")),
            )


def _show(
    file: _File, options: argparse.Namespace, off: tuple[str, ...], failed: tuple[str, ...]
) -> None:
    from moontap.report.story.account import account
    from moontap.report.story.limits import Source

    source = Source(shown(file.path), file.exchanges, file.paired, file.tapped, off, failed)
    chosen = {
        number: one
        for number, one in enumerate(file.accounts.values(), 1)
        if not options.session or one.session.startswith(options.session)
    }
    if file.accounts and not chosen:
        names = ", ".join(dict.fromkeys(one.session for one in file.accounts.values()))
        raise UsageError(plain(f"--session {options.session}: there are {names}"))
    _print(account(source, chosen, width=_width(), full=options.full))
    for line in file.unread[:_MOST_SAID]:
        put(f"moontap explain: {source.name}: not read: {plain(line)}\n", sys.stderr)
    if (more := len(file.unread) - _MOST_SAID) > 0:
        put(f"moontap explain: {source.name}: and {more} more that were not read\n", sys.stderr)


def _width() -> int:
    """Of the terminal, as long as lines stay readable."""
    if not sys.stdout.isatty():
        return _WIDE
    return max(60, min(os.get_terminal_size(sys.stdout.fileno()).columns, _WIDE + 20))


def _print(lines: list[str]) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
