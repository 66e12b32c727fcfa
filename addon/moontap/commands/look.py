"""`moontap look FILE…`: saved flows in mitmweb, with moontap's list and views.

Paths of captures in; on stdout the link to the page, on stderr what could not be read. It runs
until Ctrl-C, listens for nothing but the page, and keeps nothing on disk.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from moontap.commands import UsageError
from moontap.commands.ending import signal_or
from moontap.commands.options import Commands, port_number
from moontap.commands.proxy import page_error, show_page
from moontap.commands.run import say
from moontap.commands.terminal import put
from moontap.report.summary import many

if TYPE_CHECKING:
    from mitmproxy import http
    from mitmproxy.master import Master

    from moontap.commands.saved import Saved
    from moontap.redact.flow import Redactor

_EXAMPLE = """\
example:
  moontap look moontap-captures            all that was captured there
  moontap look session.flow export.har

It prints a link to mitmweb's page, and opens it in the browser where there is one. Ctrl-C ends it.
Keys are masked in what is shown.
"""


def add_parser(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "look",
        help="show saved flows in mitmweb: the list, the views, the filters",
        description="Shows saved flows in mitmweb's page, on loopback. Nothing is sent or changed.",
        epilog=_EXAMPLE,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="flow file, folder or HAR file")
    parser.add_argument(
        "--port",
        type=port_number,
        default=0,
        metavar="N",
        help="of the page, on 127.0.0.1; default: a free one",
    )
    parser.add_argument("--no-open", action="store_true", help="print the link, open no browser")
    parser.add_argument(
        "--rules", metavar="FILE", help="YAML file with rules; default: the run's own"
    )
    parser.set_defaults(execute=look)


def look(options: argparse.Namespace) -> int:
    """Show until a signal; exit code 0, or 2 where something could not be read. Raises
    UsageError."""
    from moontap.commands.inforce import file_for, rules_for
    from moontap.commands.saved import Saved
    from moontap.redact.flow import Redactor

    saved = Saved("look", options.files)
    rules, note = rules_for(saved.files, options.rules)
    flows = iter(saved)
    first = next(flows, None)  # before there is a page: a file that is none is an error
    if first is None:
        raise UsageError(f"{', '.join(map(str, options.files))}: no HTTP exchange in it")
    shown = _Shown(chain([first], flows), Redactor(rules))
    if note:
        say([note])
    file = file_for(saved.files, options.rules)
    asyncio.run(_look(options, saved, shown, file))
    return 2 if saved.said else 0


async def _look(
    options: argparse.Namespace, saved: "Saved", shown: "_Shown", rules: str | None
) -> None:
    from moontap.addon import Moontap
    from moontap.tapping.tap import TapError, running
    from moontap.tapping.trouble import Troubles, listening
    from moontap.tapping.webpage import web_master, web_options

    # What is found in saved flows stands in the page; here it would only run by. mitmproxy makes a
    # certificate authority at start, although nothing here will ask for it.
    with (
        listening(Troubles(lambda line: line), page=True),
        tempfile.TemporaryDirectory(prefix="moontap-") as conf,
    ):
        try:
            async with running(
                [Moontap()],
                web_master,
                conf,
                server=False,
                moontap_dir="",
                moontap_rules=rules,
                **web_options(options.port),
            ) as (master, ended):
                show_page(master, opens=not options.no_open)
                loading = asyncio.create_task(shown.load(master))
                over = asyncio.create_task(signal_or(ended))
                await asyncio.wait({loading, over}, return_when=asyncio.FIRST_COMPLETED)
                if loading.done():
                    loading.result()
                    saved.close()
                    if shown.twice:
                        say([f"{many(shown.twice, 'exchange')} in several files, shown once"])
                    say([f"{many(shown.count, 'exchange')}; Ctrl-C ends it"])
                else:
                    loading.cancel()
                await over
        except TapError as error:
            raise UsageError(page_error(str(error))) from None
    if sys.stderr.isatty():
        put("\n", sys.stderr)  # the terminal has written ^C on this line


class _Shown:
    """Flows on their way into the list. count: those that are there; twice: those that came again,
    as a cut of a capture has them."""

    def __init__(self, flows: "Iterator[http.HTTPFlow]", redactor: "Redactor") -> None:
        self.count = self.twice = 0
        self._flows = flows
        self._redactor = redactor
        self._seen: set[str] = set()

    async def load(self, master: "Master") -> None:
        """Load them, as mitmproxy does with a file, while the page is looked at already."""
        for flow in self._flows:
            if flow.id in self._seen:
                self.twice += 1
                continue
            self._seen.add(flow.id)
            self._redactor.redact(flow)
            _tap(master, flow)
            await master.load_flow(flow)
            self.count += 1


def _tap(master: "Master", flow: "http.HTTPFlow") -> None:
    """Have the addon look at a flow of a host that it does not know, as others' files hold."""
    from moontap.looking.reading import wire_of

    host, known = flow.request.host.lower(), master.options.moontap_hosts
    if wire_of(flow) and host not in known and not any(mark in host for mark in "/:*, "):
        master.options.update(moontap_hosts=[*known, host])
