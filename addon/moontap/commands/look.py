"""`moontap look FILE…`: saved flows in mitmweb, with moontap's list and views.

Paths of captures in; on stdout the link to the page, on stderr what could not be read. It runs
until Ctrl-C, listens for nothing but the page, and keeps nothing on disk.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from moontap.commands import UsageError
from moontap.commands.ending import signal_or
from moontap.commands.options import Commands, port_number
from moontap.commands.page import page_error, show_page
from moontap.commands.run import say
from moontap.commands.snapshots import Snapshots
from moontap.commands.terminal import put
from moontap.report.text import many

if TYPE_CHECKING:
    from mitmproxy import http
    from mitmproxy.master import Master

    from moontap.commands.saved import Saved
    from moontap.redact.flow import Redactor

STOPPED = 130
"""Its exit code where it was ended before all was read; as of any command that Ctrl-C stops."""

_EXAMPLE = """\
example:
  moontap look moontap-captures            all that was captured there
  moontap look session.flow export.har

It prints a link to mitmweb's page, and opens it in the browser where there is one. Ctrl-C ends it.
Keys are masked in what is shown. Of several files, ~meta file=NAME in the search box shows one.
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
    """Show until a signal; exit code 0, 2 where something could not be read, 130 where it was ended
    before all was. Raises UsageError."""
    from moontap.commands.inforce import file_for, rules_for
    from moontap.commands.saved import Saved
    from moontap.redact.flow import Redactor

    saved = Saved("look", options.files, bar=False)
    rules, note = rules_for(saved.files, options.rules)
    # Before there is a page: a file that is none is an error.
    if next(iter(Saved("look", options.files, bar=False)), None) is None:
        raise UsageError(f"{', '.join(map(str, options.files))}: no HTTP exchange in it")
    shown = _Shown(saved, Redactor(rules))
    if note:
        say([note])
    file = file_for(saved.files, options.rules)
    loaded = asyncio.run(_look(options, shown, file))
    return 2 if saved.said else 0 if loaded else STOPPED


async def _look(options: argparse.Namespace, shown: "_Shown", rules: str | None) -> bool:
    """Whether all had been read when it ended."""
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
                if loaded := loading.done():
                    loading.result()
                else:
                    loading.cancel()
                    with suppress(asyncio.CancelledError):
                        await loading
                shown.tell(loaded)
                await over
        except TapError as error:
            raise UsageError(page_error(str(error), "--port")) from None
    if sys.stderr.isatty():
        put("\n", sys.stderr)  # the terminal has written ^C on this line
    return loaded


class _Shown:
    """Saved flows on their way into the list. count: those that are there; again: what stood in the
    files more than once, as in a cut of a capture beside it."""

    def __init__(self, saved: "Saved", redactor: "Redactor") -> None:
        self.count = self.again = 0
        self._saved = saved
        self._redactor = redactor

    async def load(self, master: "Master") -> None:
        """Load them, as mitmproxy does with a file, while the page is looked at already."""
        from moontap.capture import metadata
        from moontap.commands.saved import Saved

        snapshots = await self._snapshots()
        names = labels(self._saved.files)
        for path, flows in Saved("look", self._saved.files).each():
            for flow in flows:
                if not snapshots.shows(flow):
                    self.again += 1
                    continue
                self._redactor.redact(flow)
                flow.metadata.pop(metadata.FILE, None)
                if path in names:
                    flow.metadata[metadata.FILE] = names[path]
                _tap(master, flow)
                await master.load_flow(flow)
                self.count += 1

    async def _snapshots(self) -> Snapshots:
        """Read all once, which takes a part of what loading does."""
        snapshots = Snapshots()
        for _, records in self._saved.records():
            with closing(records):
                for _, flow in records:
                    snapshots.note(flow)
                    await asyncio.sleep(0)  # who ends it does not wait
        return snapshots

    def tell(self, loaded: bool) -> None:
        """Say what is in the list and what is not."""
        self._saved.close()
        if self.again:
            say([f"{many(self.again, 'exchange')} came more than once, shown once"])
        count = many(self.count, "exchange")
        if loaded:
            say([f"{count}; Ctrl-C ends it"])
        else:
            say([f"ended while it was loading: {count} shown, the rest was not read"])


def labels(files: Sequence[Path]) -> dict[Path, str]:
    """What tells a flow's file, as `file=NAME;`, see `capture.metadata.FILE`. Of one file: nothing.

    NAME: the path below the folder that all have in common; of a capture its folder.
    """
    from moontap.capture.reader import TRAFFIC
    from moontap.looking.labels import word

    if len(files) < 2:
        return {}
    whole = {file: file.absolute() for file in files}
    named = {file: path.parent if path.name == TRAFFIC else path for file, path in whole.items()}
    common = os.path.commonpath([path.parent for path in named.values()])
    return {file: f"file={word(os.path.relpath(path, common))};" for file, path in named.items()}


def _tap(master: "Master", flow: "http.HTTPFlow") -> None:
    """Have the addon look at a flow of a host that it does not know, as others' files hold."""
    from moontap.looking.reading import wire_of
    from moontap.options import is_host

    host, known = flow.request.host.lower(), master.options.moontap_hosts
    if wire_of(flow) and host not in known and is_host(host):
        master.options.update(moontap_hosts=[*known, host])
