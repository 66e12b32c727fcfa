"""`moontap run -- COMMAND…`: the tap, and an agent behind it.

A command line in, its exit code out; two lines before it and a summary after it on stderr. While
the command runs the terminal is its own.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from moontap.commands import UsageError, child, claude_settings
from moontap.commands.options import (
    Commands,
    add_tap_options,
    masker,
    settings,
    shown,
)
from moontap.commands.programs import typed
from moontap.commands.terminal import put
from moontap.report.summary import Ended, summary
from moontap.tapping import upstream

if TYPE_CHECKING:
    from moontap.tapping.tap import Settings, Tap
    from moontap.tapping.trouble import Troubles

_EXAMPLE = """\
example:
  moontap run -- claude
  moontap run --upstream https://api.moonshot.ai -- claude -p "run the tests"
  moontap run --rewrite off -- python agent.py      (look on, change nothing)

The command gets ANTHROPIC_BASE_URL, OPENAI_BASE_URL and KIMI_BASE_URL; it keeps its own key,
its terminal and its exit code. Ctrl-C is the command's; TERM from outside ends both.
"""


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "run",
        help="start a tap and a command behind it",
        usage="moontap run [options] -- COMMAND…",
        description="Starts the tap on loopback, runs COMMAND behind it, and ends with it.",
        epilog=_EXAMPLE,
    )
    add_tap_options(parser, port=0)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND…", help="the agent")
    parser.set_defaults(execute=run)


def run(options: argparse.Namespace) -> int:
    """Run the command; its exit code. Raises UsageError."""
    command: list[str] = options.command
    if not command:
        raise UsageError("no command given, as in: moontap run -- claude")
    try:
        child.check(command[0], os.environ)
    except child.CannotStart as error:
        say([str(error)])
        return error.code
    return asyncio.run(_run(options, command))


async def _run(options: argparse.Namespace, command: list[str]) -> int:
    from moontap.tapping.tap import TapError, tapping
    from moontap.tapping.trouble import Troubles, listening

    wanted, notes = settings(options, os.environ)
    troubles = Troubles(masker(options.rules))
    with listening(troubles), child.Signals() as signals:
        try:
            async with tapping(wanted, troubles) as tap:
                remedy = claude_settings.remedy(options.upstream, wanted.upstream.anthropic)
                if found := claude_settings.found(
                    command, os.environ, tap.url, options.upstream, wanted.upstream
                ):
                    remedy = found.remedy
                    notes = (*notes, f"{found.text} {remedy}")
                say([*notes, introduction(tap.url, wanted), *_meanwhile(wanted)])
                environment = upstream.child_environment(os.environ, tap.url, wanted.upstream)
                started = time.monotonic()
                try:
                    code = await child.run(command, environment, signals)
                except child.CannotStart as error:
                    say([str(error)])
                    return error.code
                seconds = time.monotonic() - started
        except TapError as error:
            raise UsageError(str(error)) from None
        over = ended(tap, wanted, troubles, os.environ)
        say(summary(replace(over, code=code, seconds=seconds, remedy=remedy)))
    return code


def introduction(url: str, wanted: "Settings") -> str:
    """The line that says what is about to happen."""
    guard = f", guard {wanted.guard}" if wanted.guard != "warn" else ""
    return f"tap on {url} before {wanted.upstream.origin}, rewriting {wanted.rewrite}{guard}"


def _meanwhile(wanted: "Settings") -> list[str]:
    """Where to look while the command runs: the terminal is its own, so that warnings wait for its
    end. The folder is made with the first request, and its name begins with the time."""
    if not wanted.directory:
        return []
    folder = f"{shown(Path(wanted.directory))}/*-{os.getpid()}"
    return [f"to see what goes wrong while it runs: {typed('moontap')} explain {folder}"]


def ended(
    tap: "Tap", wanted: "Settings", troubles: "Troubles", environment: Mapping[str, str]
) -> Ended:
    """What the summary is made from, once the tap has stopped."""
    recorder = tap.addon.recorder
    proxies = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
    capture = recorder.path
    return Ended(
        counts=recorder.counts,
        rewrite=wanted.rewrite,
        capture=shown(capture) if capture else None,
        keeps=bool(wanted.directory),
        look=f"{typed('moontap')} look {shown(capture)}" if capture else "",
        explain=f"{typed('moontap')} explain {shown(capture)}" if capture else "",
        troubles=troubles.lines,
        behind_proxy=troubles.unreachable and any(environment.get(name) for name in proxies),
    )


def say(lines: Iterable[str]) -> None:
    """Lines for the person, on stderr: stdout is the command's."""
    put("".join(f"moontap: {line}\n" for line in lines), sys.stderr)
