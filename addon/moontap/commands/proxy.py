"""`moontap proxy`: the tap alone, for agents that are started elsewhere.

Options in; on stdout what to paste for each kind of agent, on stderr a line for each request and
the summary. It runs until Ctrl-C.
"""

import argparse
import asyncio
import json
import os
import shlex
import sys
from typing import TYPE_CHECKING, Any

from moontap.commands import UsageError
from moontap.commands.ending import signal_or
from moontap.commands.options import Commands, add_tap_options, masker, port_number, settings
from moontap.commands.page import page_error, show_page
from moontap.commands.run import ended, introduction, say
from moontap.commands.terminal import put
from moontap.report.summary import summary
from moontap.report.text import many
from moontap.tapping.upstream import ANTHROPIC, KIMI, OPENAI, Upstream, variables

if TYPE_CHECKING:
    from mitmproxy import http

PORT = 8080
WEB_PORT = 8081

_CURED = """\
  ids are made unique on the way, so nothing loops; to see the fault itself: --rewrite off, or type
  moontap.rewrite off
"""

_EXAMPLE = """\
example:
  moontap proxy
  moontap proxy --web --port 8090 --upstream https://api.moonshot.ai

Then start the agent in another terminal with the lines that it prints. Ctrl-C ends it.
"""


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "proxy",
        help="start only the tap, and print what to paste for an agent",
        description="Starts the tap on loopback and prints how to send an agent through it.",
        epilog=_EXAMPLE,
    )
    parser.add_argument(
        "--web", action="store_true", help="with mitmweb's page in the browser, on loopback"
    )
    parser.add_argument(
        "--web-port",
        type=port_number,
        default=WEB_PORT,
        metavar="N",
        help=f"where that page is; default: {WEB_PORT}; 0 takes a free one",
    )
    parser.add_argument(
        "--no-open", action="store_true", help="with --web: print the link, open no browser"
    )
    add_tap_options(parser, port=PORT)
    parser.set_defaults(execute=proxy)


def proxy(options: argparse.Namespace) -> int:
    """Run the tap until a signal; exit code 0. Raises UsageError."""
    return asyncio.run(_proxy(options))


async def _proxy(options: argparse.Namespace) -> int:
    from moontap.tapping.tap import TapError, plain_master, tapping
    from moontap.tapping.trouble import Troubles, listening

    wanted, notes = settings(options, os.environ)
    mask = masker(options.rules)
    troubles = Troubles(mask)
    make_master, more = plain_master, dict[str, Any]()
    if options.web:
        from moontap.tapping.webpage import web_master, web_options

        make_master, more = web_master, web_options(options.web_port)
    with listening(troubles, page=options.web):
        try:
            async with tapping(
                wanted, troubles, _Requests(mask), make_master=make_master, **more
            ) as tap:
                say([*notes, introduction(tap.url, wanted)])
                put(to_paste(tap.url, wanted.upstream) + "\n", sys.stdout)
                if options.web:
                    # The page would name mitmproxy's usual port, on every interface.
                    port = int(tap.url.rpartition(":")[2])
                    tap.master.options.update(listen_host="127.0.0.1", listen_port=port)
                    show_page(tap.master, opens=not options.no_open)
                    if options.rewrite != "off":
                        put(_CURED, sys.stdout)
                say(["Ctrl-C ends it"])
                troubles.tell(lambda line: say([f"warning: {line}"]))
                await signal_or(tap.ended)
        except TapError as error:
            raise UsageError(page_error(str(error), "--web-port")) from None
    troubles.lines.clear()  # said as they came
    if sys.stderr.isatty():
        put("\n", sys.stderr)  # the terminal has written ^C on this line
    say(summary(ended(tap, wanted, troubles, os.environ)))
    return 0


def to_paste(url: str, upstream: Upstream) -> str:
    """What sends each kind of agent through a tap that listens at `url`."""
    base = variables(url, upstream)
    word = {name: shlex.quote(value) for name, value in base.items()}
    literal = {name: json.dumps(value) for name, value in base.items()}
    return f"""\
# Claude Code
export {ANTHROPIC}={word[ANTHROPIC]}
export ANTHROPIC_AUTH_TOKEN=YOUR_KEY ANTHROPIC_MODEL=kimi-k3
claude

# Anthropic SDK (or {ANTHROPIC} as above)
client = anthropic.Anthropic(base_url={literal[ANTHROPIC]}, auth_token="YOUR_KEY")

# OpenAI SDK (or {OPENAI}={word[OPENAI]})
client = openai.OpenAI(base_url={literal[OPENAI]}, api_key="YOUR_KEY")

# Kimi's CLI
export {KIMI}={word[KIMI]}
kimi
"""


class _Requests:
    """A line for each request as it ends; a mitmproxy addon, after ours."""

    def __init__(self, mask: Any) -> None:
        self._mask = mask

    def response(self, flow: "http.HTTPFlow") -> None:
        self._say(flow, str(flow.response.status_code) if flow.response else "---")

    def error(self, flow: "http.HTTPFlow") -> None:
        self._say(flow, "broke off")

    def _say(self, flow: "http.HTTPFlow", status: str) -> None:
        path = flow.request.path.partition("?")[0]
        said = [f"{status} {flow.request.method} {path}"]
        if calls := flow.metadata.get("moontap.calls"):
            said += [many(calls, "call"), f"{flow.metadata['moontap.rewritten']} rewritten"]
        put(self._mask(", ".join(said)) + "\n", sys.stderr)
