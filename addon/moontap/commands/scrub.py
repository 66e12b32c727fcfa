"""`moontap scrub`: a saved flow file that can be committed or handed on, and whether one is.

A flow file, capture folder or HAR in; a clean flow file out, and a table of what was replaced; with
`--check` nothing out but a line for each place that is not clean. It never shows a value.
"""

import argparse
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from moontap.commands import UsageError
from moontap.commands.options import Commands, shown
from moontap.commands.terminal import put
from moontap.report.text import many

if TYPE_CHECKING:
    from mitmproxy import http

    from moontap.care.words import Kind
    from moontap.rules import Rules

_EXAMPLE = """\
example:
  moontap scrub moontap-captures/20261129T131500Z-4711 tests/loop.flow --rules scrub.yaml
  moontap scrub --check tests/*.flow --rules scrub.yaml

Secrets become `*`. Session and account ids, and what the rules name under `scrub:`, become others
that look alike, the same ones wherever they stand. Addresses of this machine are left out.
"""


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "scrub",
        help="take secrets, names and paths out of saved flows",
        description="Writes a flow file without secrets and, by rules, without names, paths and "
        "texts, that still pairs and replays alike; or checks that a file is clean.",
        epilog=_EXAMPLE,
    )
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="IN OUT: a flow file, capture folder or HAR file, and the flow file to write; with "
        "--check any number to look at",
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit code 1 where one is not clean"
    )
    parser.add_argument("--rules", metavar="FILE", help="YAML file with rules")
    parser.add_argument(
        "--salt",
        metavar="TEXT",
        help="a secret of your own to make replacements from, so that nobody else can try which "
        "name gives which",
    )
    parser.add_argument("--force", action="store_true", help="replace OUT where it exists")
    parser.set_defaults(execute=scrub)


def scrub(options: argparse.Namespace) -> int:
    """Write or check; the exit code. Raises UsageError."""
    # Slow to import: mitmproxy.
    from moontap.rules import RulesError, load_rules

    try:
        rules = load_rules(options.rules)
    except RulesError as error:
        raise UsageError(f"--rules: {error}") from None
    if options.check:
        return _check(options.files, rules)
    if len(options.files) != 2:
        raise UsageError("give IN and OUT, or --check and the files to look at")
    return _write(Path(options.files[0]), Path(options.files[1]), rules, options)


def _check(names: list[str], rules: "Rules") -> int:
    from moontap.capture.reader import FlowFile, Unreadable
    from moontap.care.scrub import scrubber_for
    from moontap.commands.saved import Saved

    saved = Saved("scrub", names)
    unclean = 0
    for path, flows in saved.each():
        try:
            scrubber = scrubber_for(FlowFile(path), rules)
        except Unreadable:  # said when the flows are asked for
            scrubber = scrubber_for((), rules)
        for number, flow in enumerate(flows, 1):
            for finding in scrubber.findings(flow):
                unclean += 1
                put(f"{shown(path)}: flow {number}: {finding}\n", sys.stdout)
    code = saved.close()
    if not unclean and not code:
        files = many(len(saved.files), "file")
        said = f"clean: {many(saved.count, 'exchange')} in {files}\n{_left(rules)}"
        put(said if saved.count else f"no exchange in {files}\n", sys.stdout)
    return code or int(unclean > 0)


def _write(given: Path, out: Path, rules: "Rules", options: argparse.Namespace) -> int:
    from moontap.capture.reader import FlowFile, Unreadable, flow_files
    from moontap.care.outfile import Refused, check, write_flows
    from moontap.care.scrub import SALT, Scrubber, scrubber_for
    from moontap.commands.saved import bar, lost

    counts: Counter[Kind] = Counter()
    flows: Counter[Kind] = Counter()

    def clean(file: FlowFile, scrubber: Scrubber) -> "Iterator[http.HTTPFlow]":
        for flow in file:
            found = scrubber.scrub(flow)
            counts.update(found)
            flows.update(found.keys())
            yield flow

    try:
        files = flow_files([given])
        if len(files) != 1:
            raise UsageError(f"{shown(given)} holds {len(files)} flow files: name one")
        source = files[0]
        check(out, force=options.force, given=[source, options.rules])
        size = source.stat().st_size
        with bar(2 * size, what="scrubbing") as tell:
            salt = SALT if options.salt is None else options.salt
            scrubber = scrubber_for(FlowFile(source, tell), rules, salt)
            file = FlowFile(source, lambda at: tell(size + at))
            with _told_to_end():
                write_flows(out, clean(file, scrubber), force=options.force)
    except (Unreadable, Refused) as error:
        raise UsageError(str(error)) from None
    put(_summary(counts, flows, file.count, out) + _left(rules), sys.stdout)
    if file.loss:
        put(f"moontap scrub: {lost(source, file.loss, file.count)}\n", sys.stderr)
        return 2
    return 0


@contextmanager
def _told_to_end() -> Iterator[None]:
    """A signal to end ends as an exception does, so that no half-written file is left."""

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    before = {}
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        # Who had it ignored, as nohup does, wants it ignored.
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            before[number] = signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _left(rules: "Rules") -> str:
    """What nobody asked for is not looked for: said, because the file is about to be shared."""
    scrub = rules.scrub
    if scrub.names or scrub.paths or scrub.texts or scrub.json_paths:
        return ""
    return "names and paths stay: say which in a rules file, section `scrub` (--rules FILE)\n"


def _summary(counts: "Counter[Kind]", flows: "Counter[Kind]", total: int, out: Path) -> str:
    lines = [f"{many(total, 'exchange')} in {shown(out)}"]
    width = max((len(kind) for kind in counts), default=0)
    lines += [
        f"  {kind:<{width}}  {counts[kind]:>6,} replaced, in {many(flows[kind], 'exchange')}"
        for kind in sorted(counts)
    ]
    if not counts:
        lines.append("  nothing was to be replaced")
    return "\n".join(lines) + "\n"
