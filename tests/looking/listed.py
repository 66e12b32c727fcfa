"""A real mitmproxy with the addon and a flow list in this process, over saved flows: no network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mitmproxy import http, options
from mitmproxy.addons.view import View
from mitmproxy.tools.dump import DumpMaster

from moontap.addon import Moontap


@dataclass(frozen=True)
class Shown:
    """mitmproxy with a flow list. captures: the folder of its runs."""

    master: DumpMaster
    addon: Moontap
    view: View
    captures: Path

    def type(self, command: str) -> Any:
        """What a person types; what comes back."""
        return self.master.commands.execute(command)

    def files(self, pattern: str) -> list[Path]:
        """Those of the run, by a pattern of their names."""
        return sorted(self.captures.glob(f"*Z-*/{pattern}"))


class _Running:
    def __init__(self) -> None:
        self.event = asyncio.Event()

    def running(self) -> None:
        self.event.set()


@asynccontextmanager
async def listed(
    captures: Path,
    flows: Sequence[http.HTTPFlow],
    *,
    strange: Sequence[http.HTTPFlow] = (),
    **opts: Any,
) -> AsyncIterator[Shown]:
    """flows: loaded, so that the addon sees them; strange: only the list has them."""
    addon, view, running = Moontap(), View(), _Running()
    master = DumpMaster(options.Options(), with_termlog=False, with_dumper=False)
    slot = master.addons.get("scriptloader")
    slot.addons.append(addon)
    master.addons.register(addon)
    master.addons.add(view, running)
    master.options.update(server=False, **{"moontap_dir": str(captures), **opts})
    task = asyncio.create_task(master.run())
    await running.event.wait()
    try:
        for flow in flows:
            await master.load_flow(flow)
        await addon.settled(5)
        addon.board.settle()
        view.add(list(strange))
        yield Shown(master, addon, view, captures)
    finally:
        master.shutdown()
        await task
