"""`moontap replay`: a saved session served as an API, for agents that are started elsewhere.

Paths of captures and options in; on stdout what to paste for each kind of agent, on stderr a line
for each request and what was asked for at the end. It runs until Ctrl-C, and never connects to
anything.
"""

import argparse
import asyncio
import errno
import os
import re
import shlex
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from moontap.commands import UsageError
from moontap.commands.ending import asked_to_end
from moontap.commands.options import Commands, masker, port_number
from moontap.commands.proxy import to_paste
from moontap.commands.run import say
from moontap.commands.saved import bar, lost
from moontap.commands.terminal import put
from moontap.report.text import many, plain
from moontap.tapping.upstream import Upstream

if TYPE_CHECKING:
    from moontap.replay.library import Library
    from moontap.replay.pace import Pace
    from moontap.replay.server import Asked, Replay
    from moontap.serving.tls import TLSFiles

_EXAMPLE = """\
example:
  moontap replay moontap-captures/20261129T131500Z-4711
  moontap replay session.flow --port 8090 --pace original

Then start the agent in another terminal with the lines that it prints. Ctrl-C ends it.
A request that nothing recorded matches gets an error that says what is nearest: nothing ever goes
to the real API. To see the tap with it: moontap run --upstream http://127.0.0.1:PORT -- AGENT
"""

_MOST_NAMED = 5
_PATH = re.compile(r"[A-Za-z0-9/._~%-]*")


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "replay",
        help="serve a saved session as an API: the same requests get the same answers",
        description="Serves saved exchanges on loopback as upstream answered them: status, headers,"
        " bytes and chunks. A request is matched by protocol, model, messages and tools; ids,"
        " dates, reminders and the system prompt do not count.",
        epilog=_EXAMPLE,
    )
    parser.add_argument(
        "paths",
        nargs="+",
        type=Path,
        metavar="FILE|FOLDER",
        help="a flow file, a capture folder, a folder of either, or a HAR file",
    )
    parser.add_argument(
        "--port",
        type=port_number,
        default=0,
        metavar="N",
        help="on 127.0.0.1; default: a free one",
    )
    parser.add_argument(
        "--pace",
        default="none",
        metavar="original|none|FACTOR",
        help="none (the default): as fast as it goes; original: with the waits as recorded; "
        "a factor: so many times as fast (2 takes half the time)",
    )
    parser.add_argument(
        "--once",
        action="store_true",
        help="serve each exchange once, then refuse; else the first comes again after the last",
    )
    parser.add_argument(
        "--any-result",
        action="store_true",
        help="what a tool answers does not count: `ls` shows other files today",
    )
    parser.add_argument(
        "--rules", metavar="FILE", help="YAML file with rules for what counts (section replay)"
    )
    parser.add_argument("--tls", action="store_true", help="HTTPS, by an authority of its own")
    parser.add_argument(
        "--tls-dir", type=Path, metavar="DIR", help="where its files are; default: a temporary one"
    )
    parser.set_defaults(execute=replay)


def replay(options: argparse.Namespace) -> int:
    """Serve until a signal; exit code 0, or 2 where a file had damaged records. Raises
    UsageError."""
    from moontap.replay.pace import parse

    try:
        pace = parse(options.pace)
    except ValueError as error:
        raise UsageError(f"--pace: {error}") from None
    mask = masker(options.rules)
    library = _load(options)
    for path, loss in library.losses.items():
        said = sum(1 for one in library.exchanges if one.source.path == path)
        say([lost(path, loss, said)])
    with ExitStack() as stack:
        tls = _tls(options, stack)
        asyncio.run(_serve(options, library, pace, tls, mask))
    return 2 if library.losses else 0


def _load(options: argparse.Namespace) -> "Library":
    from moontap.capture.reader import Unreadable, flow_files
    from moontap.replay.library import load
    from moontap.replay.results import any_result
    from moontap.rules import load_rules

    rules = load_rules(options.rules)
    if options.any_result:
        rules = any_result(rules)
    try:
        with bar(sum(path.stat().st_size for path in flow_files(options.paths))) as tell:
            library = load(options.paths, rules, tell)
    except Unreadable as error:
        raise UsageError(str(error)) from None
    if not library.exchanges:
        raise UsageError(f"{', '.join(map(str, options.paths))}: no HTTP exchange in it")
    return library


def _tls(options: argparse.Namespace, stack: ExitStack) -> "TLSFiles | None":
    if not (options.tls or options.tls_dir):
        return None
    import tempfile

    from moontap.serving.tls import make_tls

    folder = options.tls_dir or stack.enter_context(
        tempfile.TemporaryDirectory(prefix="moontap-replay-")
    )
    try:
        return make_tls(folder, server="moontap-replay")
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise UsageError(f"--tls-dir: {folder} cannot be written: {reason}") from None


async def _serve(
    options: argparse.Namespace,
    library: "Library",
    pace: "Pace",
    tls: "TLSFiles | None",
    mask: Callable[[str], str],
) -> None:
    from moontap.replay.server import Replay

    refused: set[str] = set()

    def told(asked: "Asked") -> None:
        put(mask(_line(asked, refused)) + "\n", sys.stderr)

    server = Replay(library, pace=pace, once=options.once, port=options.port, tls=tls, told=told)
    try:
        await server.__aenter__()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            what = f"--port: {options.port} is in use; --port 0 takes a free one"
        else:
            what = f"cannot listen on 127.0.0.1: {os.strerror(error.errno or 0)}"
        raise UsageError(what) from None
    try:
        count = many(len(library.exchanges), "recorded exchange")
        say([f"replay on {server.base_url} of {count}; nothing goes to any other server"])
        put(_paste(server, tls), sys.stdout)
        await asked_to_end()
    finally:
        await server.__aexit__(None, None, None)
    if sys.stderr.isatty():
        put("\n", sys.stderr)  # the terminal has written ^C on this line
    say(_summary(server))


def _paste(server: "Replay", tls: "TLSFiles | None") -> str:
    from moontap.wire.types import Protocol

    paths = {
        protocol: path
        for protocol, path in server.library.paths.items()
        if _PATH.fullmatch(path)  # it goes into a shell, and files come from strangers
    }
    where = Upstream(
        server.base_url,
        anthropic=paths.get(Protocol.ANTHROPIC, "/anthropic/v1/messages").removesuffix(
            "/v1/messages"
        ),
        openai=paths.get(Protocol.OPENAI, "/v1/chat/completions").removesuffix("/chat/completions"),
    )
    trust = ""
    if tls:
        ca = shlex.quote(str(tls.ca))
        trust = (
            "# What to trust: Claude Code and other Node clients, then Python's\n"
            f"export NODE_EXTRA_CA_CERTS={ca} SSL_CERT_FILE={ca}\n\n"
        )
    return trust + to_paste(server.base_url, where)


def _line(asked: "Asked", refused: set[str]) -> str:
    """refused: what was said so far, a reason of several lines once; clients ask again."""
    path = asked.path.partition("?")[0]
    said = asked.matched.label if asked.matched else asked.message or ""
    if asked.message is not None:
        said = "refused for the same reason" if asked.message in refused else asked.message
        refused.add(asked.message)
    return plain(f"{asked.status or 'broke off'} {asked.method} {path}, {said}")


def _summary(server: "Replay") -> list[str]:
    asked, missed, unserved = len(server.asked), len(server.unmatched), server.unserved
    lines = [f"{many(asked, 'request')}, {asked - missed} matched, {missed} not"]
    if unserved:
        named = "; ".join(unserved[:_MOST_NAMED])
        more = len(unserved) - _MOST_NAMED
        named += f"; and {more} more" if more > 0 else ""
        lines.append(
            f"never asked for: {len(unserved)} of {len(server.library.exchanges)}: {plain(named)}"
        )
    return lines
