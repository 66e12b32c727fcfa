"""A mitmproxy with a list of flows and no server, and recorded flows that come into it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path

from mitmproxy import flow, http, options
from mitmproxy.addons.view import View
from mitmproxy.tools.dump import DumpMaster

from moontap.capture.recorder import Recorder
from moontap.looking.board import Board
from moontap.rules import Rules


class Updates:
    """Counts what the list is told."""

    def __init__(self) -> None:
        self.batches: list[list[flow.Flow]] = []

    def update(self, flows: list[flow.Flow]) -> None:
        self.batches.append(list(flows))


class Listed:
    """A board before a list. view: without one, as in mitmdump."""

    def __init__(self, root: Path | None = None, *, view: bool = True) -> None:
        self.master = DumpMaster(options.Options(), with_termlog=False, with_dumper=False)
        self.view, self.updates = View(), Updates()
        self.master.addons.add(*([self.view] if view else []), self.updates)
        self.board = Board()
        self.board.attach(self.master)
        self.recorder = Recorder(root, Rules(), dict)
        self.recorder.observer = self.board

    def record(self, flows: Iterable[http.HTTPFlow]) -> None:
        """As the addon does with each exchange that has ended."""
        for one in flows:
            self.view.add([one])
            self.recorder.keep(one)
            self.board.settle(one)
            self.recorder.log()
        self.board.settle()


async def until(true: Callable[[], object]) -> None:
    """Wait for something that comes by itself."""
    async with asyncio.timeout(20):
        while not true():
            await asyncio.sleep(0.01)
