"""`moontap cut`: a small flow file out of a large one, which still shows what is wrong.

Saved flows in, one flow file out, and a line on stdout that says what it shows. It changes no flow:
what was secret in them still is.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from moontap.commands import UsageError
from moontap.commands.options import Commands, shown
from moontap.commands.programs import typed
from moontap.commands.terminal import put
from moontap.report.tally import Tally, names, nothing
from moontap.report.text import many, plain, short

if TYPE_CHECKING:
    from mitmproxy import http

    from moontap.care.cut import Book, Pair
    from moontap.commands.saved import Saved
    from moontap.rules import Rules

_SHORT = 60

_EXAMPLE = """\
example:
  moontap cut moontap-captures --around Bash_0 --out loop.flow
  moontap cut traffic.flow --session 8f3c --out agent.flow
  moontap cut traffic.flow --flows 3,4,17 --playable --out steps.flow

--around finds the fewest exchanges that still give the same line in `moontap pairs`. --playable
keeps all that led to them, so that an agent can be run against the file with `moontap replay`.
"""


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "cut",
        help="keep the few exchanges of a capture that show a fault",
        description="Writes the smallest flow file that still shows a thing.",
        epilog=_EXAMPLE,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="flow file, folder or HAR file")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--session",
        metavar="S",
        help="all exchanges of a session; the beginning of its name will do",
    )
    what.add_argument(
        "--flows", metavar="A,B", help="these exchanges: flow ids, or numbers from 1 on"
    )
    what.add_argument(
        "--around", metavar="ID", help="what shows this tool call (its id, either one) or flow"
    )
    parser.add_argument("--playable", action="store_true", help="with everything that led to it")
    parser.add_argument("--out", required=True, metavar="OUT", help="the flow file to write")
    parser.add_argument("--force", action="store_true", help="replace OUT where it exists")
    parser.add_argument("--rules", metavar="FILE", help="YAML file with rules for redaction")
    parser.set_defaults(execute=cut)


def cut(options: argparse.Namespace) -> int:
    """Write it; exit code 0, 1 where nothing was found, 2 where something could not be read.

    Raises UsageError.
    """
    # Slow to import: mitmproxy.
    from moontap.capture.reader import Unreadable
    from moontap.care.cut import playable
    from moontap.care.outfile import Refused, check, write_flows
    from moontap.commands.saved import Saved
    from moontap.rules import RulesError, load_rules

    out = Path(options.out)
    try:
        rules = load_rules(options.rules)
        saved = Saved("cut", options.files)
        check(out, force=options.force, given=[*saved.files, options.rules])
        sources = list(_sources(saved, rules))
        code = saved.close()
        choice = _choose(sources, options, rules)
        if options.playable:
            choice.numbers = {
                at: playable(sources[at].book, numbers) for at, numbers in choice.numbers.items()
            }
        picked = [(sources[at], numbers) for at, numbers in sorted(choice.numbers.items())]
        flows = (flow for source, numbers in picked for flow in source.load(numbers))
        size = write_flows(out, flows, force=options.force)
    except _Nothing as error:
        _say(str(error))
        return 1
    except RulesError as error:
        raise UsageError(f"--rules: {error}") from None
    except Refused as error:
        raise UsageError(f"--out: {error}") from None
    except Unreadable as error:
        raise UsageError(str(error)) from None
    kept = sum(len(numbers) for _, numbers in picked)
    put(
        f"{kept} of {many(saved.count, 'exchange')}, {_sized(size)}, in {shown(out)}\n"
        f"it shows: {choice.shows or _pairs_of(out, rules)}\n"
        f"secrets in it are as they were; next: {typed('moontap')} scrub {shown(out)} SCRUBBED\n",
        sys.stdout,
    )
    return code


class _Nothing(Exception):
    """What was asked for is not there; what there is, in a line."""


@dataclass(slots=True)
class _Source:
    """A file that was read. offsets: where its exchanges are."""

    path: Path
    offsets: list[int]
    book: "Book"

    def load(self, numbers: Sequence[int]) -> "Iterator[http.HTTPFlow]":
        from moontap.capture.reader import flows_at

        return flows_at(self.path, [self.offsets[number] for number in numbers])


@dataclass(slots=True)
class _Choice:
    """numbers: the exchanges to keep, by the number of their source. shows: what they are kept
    for; "" where that is their pairs."""

    numbers: dict[int, list[int]]
    shows: str = ""


def _sources(saved: "Saved", rules: "Rules") -> Iterator[_Source]:
    from moontap.care.cut import read

    for path, records in saved.records():
        offsets: list[int] = []
        # `append` gives None: each flow is handed on as its offset is noted.
        flows = (flow for at, flow in records if not offsets.append(at))  # type: ignore[func-returns-value]
        book = read(flows, rules)
        saved.unread(path, book.seen.unread)
        yield _Source(path, offsets, book)


def _choose(sources: list[_Source], options: argparse.Namespace, rules: "Rules") -> _Choice:
    """What was asked for. Raises UsageError, and _Nothing where there is no such thing."""
    if options.session is not None:
        return _session(sources, options.session)
    if options.flows is not None:
        return _flows(sources, options.flows)
    return _around(sources, options.around, rules)


def _session(sources: list[_Source], wanted: str) -> _Choice:
    known = dict.fromkeys(name for one in sources for name in one.book.seen.sessions if name)
    found = [name for name in known if name == wanted] or [
        name for name in known if name.startswith(wanted)
    ]
    if len(found) > 1:
        raise UsageError(f"--session: {wanted} begins the names of several: {names(found)}")
    if not found:
        raise _Nothing(f"no session is named {wanted}; there are: {names(known) or 'none'}")
    numbers = {
        at: [n for n, name in enumerate(one.book.seen.sessions) if name == found[0]]
        for at, one in enumerate(sources)
    }
    return _Choice({at: some for at, some in numbers.items() if some})


def _flows(sources: list[_Source], wanted: str) -> _Choice:
    numbers: dict[int, set[int]] = {}
    for name in filter(None, (part.strip() for part in wanted.split(","))):
        found = _flow(sources, name)
        if len(found) > 1:
            raise UsageError(f"--flows: {name} stands for {len(found)} exchanges: give more of it")
        if not found:
            ids = [id_ for one in sources for id_ in one.book.seen.flows]
            raise _Nothing(f"no exchange is {name}; there are {len(ids)}: {names(ids)}")
        ((at, number),) = found
        numbers.setdefault(at, set()).add(number)
    if not numbers:
        raise UsageError("--flows: name some, with commas between them")
    return _Choice({at: sorted(some) for at, some in numbers.items()})


def _flow(sources: list[_Source], name: str) -> list[tuple[int, int]]:
    """The exchanges, with their sources, that a flow id or a number stands for."""
    if name.isdecimal() and len(sources) == 1 and 1 <= int(name) <= len(sources[0].offsets):
        return [(0, int(name) - 1)]
    found = [(at, n) for at, one in enumerate(sources) for n in one.book.numbers(name)]
    if not found and name.isdecimal() and len(sources) > 1:
        raise UsageError(f"--flows: {name} of which of {len(sources)} files? Give a flow id")
    return found


def _around(sources: list[_Source], wanted: str, rules: "Rules") -> _Choice:
    from moontap.care.cut import around, smallest

    found = [(at, pair) for at, one in enumerate(sources) for pair in around(one.book, wanted)]
    if not found:
        flow = [(at, n) for at, one in enumerate(sources) for n in one.book.numbers(wanted)]
        if len(flow) == 1:
            ((at, number),) = flow
            return _Choice({at: [number]})
        ids = dict.fromkeys(
            id_ for one in sources for pair in one.book.pairs for id_ in pair.names()
        )
        raise _Nothing(
            f"no tool call or flow has the id {wanted}; calls are: {names(ids) or 'none'}"
        )
    found.sort(key=lambda one: not one[1].faulty)
    at, pair = found[0]
    if len(found) > 1:
        wrong = sum(pair.faulty for _, pair in found)
        which = f"the first of {wrong} that went wrong" if wrong else "the first"
        _say(f"{wanted} stands for {len(found)} pairs; this is about {which}")
    numbers = smallest(sources[at].book, pair, sources[at].load, rules)
    return _Choice({at: numbers}, _told(pair))


def _told(pair: "Pair") -> str:
    """A pair in a line."""
    line = pair.line
    call = f"{line['tool'] or 'a result'} {short(line['arguments'], _SHORT)}".strip()
    notes = [] if line["id"] == line["upstream_id"] else [f"upstream {line['upstream_id']}"]
    notes += ["used before"] if line["duplicate"] else []
    about = f" ({', '.join(notes)})" if notes else ""
    return plain(f"{line['id']}{about}, {call}: {line['status']}")


def _pairs_of(out: Path, rules: "Rules") -> str:
    """What the written file has, read once more."""
    from moontap.capture.reader import FlowFile
    from moontap.care.relog import Seen, relog

    tally, seen = Tally(), Seen()
    for line in relog(FlowFile(out), seen, rules):
        tally.add(line, chosen=True)
    return str(tally) if tally.all else nothing(tally, seen.exchanges, seen.paired)


def _say(line: str) -> None:
    put(f"moontap cut: {plain(line)}\n", sys.stderr)


def _sized(size: int) -> str:
    """Bytes as a person reads them."""
    return f"{size / 1e6:.1f} MB" if size >= 1_000_000 else f"{max(1, round(size / 1e3))} KB"
