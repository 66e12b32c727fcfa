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
from moontap.report.text import plain

if TYPE_CHECKING:
    from moontap.capture.diagnosis import Looked
    from moontap.report.story.conversation import Account
    from moontap.report.story.remedy import Ran

_WIDE = 100

_NOTHING_KEPT = (
    'A run keeps its traffic under moontap-captures, or where moontap_dir (--dir) says; with "" it '
    "keeps nothing"
)
_FOREIGN = (" is not a flow file: ", " holds lines, not flows: ", " holds no readable exchange: ")
_OTHER = "What is no flow file, a transcript, log or body, say, is read by: moontap lint {}"
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
    parser.add_argument(
        "--rules",
        metavar="FILE",
        help="YAML file with rules for what is found; default: the run's own",
    )
    parser.set_defaults(execute=explain)


def explain(options: argparse.Namespace) -> int:
    """Print the accounts; exit code 0, 2 where something could not be read. Raises UsageError."""
    # Slow to import: mitmproxy.
    from moontap.capture.diagnosis import Diagnosis
    from moontap.commands.inforce import rules_for
    from moontap.commands.saved import Saved

    rules_for((), options.rules)  # a bad one is said before anything is read
    try:
        saved = Saved("explain", options.files, empty=False)
    except UsageError as error:
        raise UsageError(f"{error}. {_NOTHING_KEPT}") from None
    try:
        told, sessions = 0, dict[str, None]()
        for path, flows in saved.each():
            rules, note = rules_for([path], options.rules)
            diagnosis, file, said = Diagnosis(rules), _File(path, note or ""), len(saved.said)
            for looked in diagnosis.flows(flows):
                file.add(looked)
            saved.unread(path, file.unread)
            sessions |= dict.fromkeys(one.session for one in file.accounts.values())
            chosen = file.chosen(options.session)
            if options.session and not chosen:
                continue
            if not file.exchanges and len(saved.said) > said:
                continue  # `saved` says that it cannot be read
            if told:
                _print([""])
            told += 1
            failed = tuple(sorted(diagnosis.judge.faults))
            off = tuple(sorted(rules.findings.off))
            lines = _told(file, chosen, off, failed, full=options.full)
            # Once more: a key that an error echoes may be known from a later request's headers.
            _print([diagnosis.redactor.mask_text(line) for line in lines])
        sys.stdout.flush()
        if options.session and not told:
            saved.close()
            there = f"there are {', '.join(sessions)}" if sessions else "there is none"
            raise UsageError(plain(f"--session {options.session}: {there}"))
    except BrokenPipeError:  # `| head`: nobody reads on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except UsageError as error:
        if saved.count or not saved.said:
            raise
        raise UsageError(f"{error}. {_OTHER.format(shown(saved.files[0]))}") from None
    if any(mark in line for line in saved.said for mark in _FOREIGN):
        saved.said.append(_OTHER.format("FILE"))
    return saved.close()


@dataclass(slots=True)
class _File:
    """A file and what it came to. rules: what there is to say of the rules in force. accounts: by
    the number of their conversation."""

    path: Path
    rules: str = ""
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
                repeats=int(looked.flow.metadata.get(metadata.REPEATS, 0)),
            )

    def chosen(self, session: str | None) -> "dict[int, Account]":
        """Those of sessions whose name begins so, or all, by their numbers."""
        return {
            number: one
            for number, one in self.accounts.items()
            if one.session.startswith(session or "")
        }


def _told(
    file: _File,
    chosen: "dict[int, Account]",
    off: tuple[str, ...],
    failed: tuple[str, ...],
    *,
    full: bool,
) -> list[str]:
    from moontap.report.story.account import account
    from moontap.report.story.limits import Source

    counts = (file.exchanges, file.paired, file.tapped)
    ran, unread = _ran(file.path), len(file.unread)
    source = Source(shown(file.path), *counts, off, failed, file.rules, ran, unread)
    return account(source, chosen, width=_width(), full=full)


def _ran(path: Path) -> "Ran":
    """How the tap ran, from the run.json beside the file."""
    from moontap.capture import runfile
    from moontap.report.story.remedy import Ran

    options = runfile.read(path.parent).get("options")
    known = options if isinstance(options, dict) else {}
    rewrite, guard = (str(known.get(f"moontap_{name}") or "") for name in ("rewrite", "guard"))
    return Ran(rewrite, guard)


def _width() -> int:
    """Of the terminal, as long as lines stay readable. Elsewhere lines are not broken: grep finds
    what stands in one."""
    if not sys.stdout.isatty():
        return sys.maxsize
    return max(60, min(os.get_terminal_size(sys.stdout.fileno()).columns, _WIDE + 20))


def _print(lines: list[str]) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
