"""`moontap probe`: does a server give one tool-call id to several calls?

Options in; what it answered on stdout, a flow file, and an exit code out. A server that is not on
loopback is asked with the key of MOONSHOT_API_KEY alone, and only after a yes.
"""

import argparse
import asyncio
import ipaddress
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from moontap.commands import UsageError
from moontap.commands.options import Commands, shown
from moontap.commands.programs import typed
from moontap.commands.terminal import put
from moontap.tapping import upstream

if TYPE_CHECKING:
    from moontap.probe.run import Plan

KEY = "MOONSHOT_API_KEY"
MODEL = "kimi-k3"

_MADE_UP = "made-up-key-of-moontap-probe"
_PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
_TOKENS_IN = 300  # of one request: a question, a tool, one call with its result

_EXAMPLE = f"""\
example:
  moontap probe                                           (asks {upstream.DEFAULT})
  moontap probe --base-url http://127.0.0.1:8765 --protocol openai

Two rounds with a pwd tool, in each protocol, streamed and whole; a third after a compaction where
two do not settle it. Exit code 1: an id came back (reused, or counted: then after a compaction).
0: it did not. 2: it could not be asked. Live, it takes {KEY} and asks first.
"""


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "probe",
        help="find out whether a server reuses tool-call ids",
        description="Asks a server for tool calls and says whether their ids come back.",
        epilog=_EXAMPLE,
    )
    parser.add_argument(
        "--base-url",
        metavar="URL",
        default=upstream.DEFAULT,
        help=f"the server, with or without /anthropic, /v1 or /coding (default: "
        f"{upstream.DEFAULT}); one on loopback needs no key",
    )
    parser.add_argument(
        "--protocol", choices=("anthropic", "openai", "both"), default="both", help="default: both"
    )
    parser.add_argument("--model", default=MODEL, metavar="M", help=f"default: {MODEL}")
    parser.add_argument("--yes", action="store_true", help="do not ask before live requests")
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="where the traffic goes, without secrets (default: moontap-probe-<UTC>.flow here)",
    )
    parser.set_defaults(execute=probe)


def probe(options: argparse.Namespace) -> int:
    """Run it; its exit code. Raises UsageError."""
    try:
        server = upstream.parse(options.base_url)
    except upstream.UpstreamError as error:
        raise UsageError(f"--base-url: {error}") from None
    local = _is_loopback(server.origin)
    key = _MADE_UP if local else _key(server.origin)
    out = _out(options.out)

    from moontap.probe.dialect import DIALECTS
    from moontap.probe.run import Plan

    plan = Plan(
        server,
        DIALECTS[options.protocol],
        options.model,
        key,
        behind_proxy=not local and any(os.environ.get(name) for name in _PROXIES),
    )
    said = _announcement(plan, local)
    if local or options.yes:
        put(f"{said}.\n", sys.stderr)
    elif not _agreed(said):
        raise UsageError("nothing was sent")
    return _probe(plan, out)


def _probe(plan: "Plan", out: Path) -> int:
    from moontap.care.outfile import Refused
    from moontap.probe.run import probe as ask
    from moontap.redact.flow import Redactor
    from moontap.tapping.tap import TapError
    from moontap.tapping.trouble import Troubles, listening

    def show(text: str) -> None:
        put(f"{text}\n", sys.stdout)

    try:
        # Warnings are for who runs a tap; here each failure is told in its place.
        with listening(Troubles(Redactor().mask_text)):
            outcome = asyncio.run(ask(plan, out, show))
    except TapError as error:
        raise UsageError(str(error)) from None
    except Refused as error:
        raise UsageError(f"the traffic is not kept: {error}") from None
    if outcome.saved:
        show(f"saved: {shown(out)}\nlook at it: {typed('moontap')} pairs {shown(out)}")
    return outcome.code


def _announcement(plan: "Plan", local: bool) -> str:
    """What is about to be sent, where, and what it comes to."""
    from moontap.probe.dialect import MOST_TOKENS

    least, most = plan.requests
    if local:
        return f"{least} to {most} requests to {plan.upstream.origin}, with a made-up key"
    clear = " IN CLEAR" if plan.upstream.origin.startswith("http:") else ""
    return (
        f"{least} to {most} requests to {plan.upstream.origin}, model {plan.model}, with the key "
        f"in {KEY}{clear}; each has about {_TOKENS_IN} tokens and gets at most {MOST_TOKENS:,}"
    )


def _agreed(said: str) -> bool:
    """Whether the person at the terminal says yes. Raises UsageError where there is none."""
    if not sys.stdin.isatty():
        raise UsageError(f"{said}: there is no terminal to ask at; give --yes to go ahead")
    put(f"{said}.\nGo ahead? [y/N] ", sys.stderr)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _key(origin: str) -> str:
    """The key, never shown. Raises UsageError."""
    key = os.environ.get(KEY, "").strip()
    if not key:
        raise UsageError(
            f"{origin} is asked only with a key in {KEY}; to try it without, start a stand-in "
            "(moontap standin) and give its URL with --base-url"
        )
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise UsageError(f"{KEY} holds what cannot stand in a header; is it cut or quoted wrongly?")
    return key


def _is_loopback(origin: str) -> bool:
    host = urlsplit(origin).hostname or ""
    try:
        return host in upstream.LOOPBACK or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _out(given: str | None) -> Path:
    """Where the traffic goes. Raises UsageError early: the requests cost something."""
    name = given or f"moontap-probe-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.flow"
    path = Path(name).absolute()
    if os.path.lexists(path):
        raise UsageError(f"--out: {path} is there already; give another name")
    if not path.parent.is_dir():
        raise UsageError(f"--out: {path.parent} is no folder")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise UsageError(f"--out: {path.parent} cannot be written; give --out FILE elsewhere")
    return path
