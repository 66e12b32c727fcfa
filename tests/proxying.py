"""A real mitmproxy with the addon in this process, before a fake api.moonshot.cn over real TLS.

`tap()` starts one on a free loopback port. The redirect changes only the address that is dialled,
so Host, SNI, certificate checks and `flow.request.host` are those of the real host.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from mitmproxy import http, io, options, proxy
from mitmproxy.addons.proxyserver import Proxyserver
from mitmproxy.tools.dump import DumpMaster

from moontap.addon import Moontap
from moontap.standin import TLSFiles, make_tls

HOST = "api.moonshot.cn"


class _Redirect:
    """Dials a local port wherever the host is one of ours.

    The real address is put back once connected: in reverse mode it makes the Host header.
    """

    def __init__(self, ports: dict[str, int]) -> None:
        self._ports = ports
        self._real: dict[str, tuple[str, int]] = {}

    def server_connect(self, data: proxy.server_hooks.ServerConnectionHookData) -> None:
        address = data.server.address
        if address and address[0] in self._ports:
            self._real[data.server.id] = (address[0], address[1])
            data.server.address = ("127.0.0.1", self._ports[address[0]])

    def server_connected(self, data: proxy.server_hooks.ServerConnectionHookData) -> None:
        if real := self._real.pop(data.server.id, None):
            # mitmproxy itself forbids this on an open connection, where it would not redial.
            object.__setattr__(data.server, "address", real)


class _Running:
    def __init__(self) -> None:
        self.event = asyncio.Event()

    def running(self) -> None:
        self.event.set()


class Streamed:
    """What a bare mitmproxy needs to stream replies: for comparing with and without the tap."""

    def responseheaders(self, flow: http.HTTPFlow) -> None:
        assert flow.response
        flow.response.stream = True


@dataclass(frozen=True)
class Tap:
    """A running tap. url: how to reach it (a proxy URL, or in reverse mode the base URL)."""

    master: DumpMaster
    addon: Moontap
    url: str
    ca: Path
    captures: Path

    @property
    def trust(self) -> ssl.SSLContext:
        """A client's trust in what the tap shows it."""
        return ssl.create_default_context(cafile=str(self.ca))

    def client(self, **more: Any) -> httpx.AsyncClient:
        """An httpx client through the tap in regular mode."""
        return httpx.AsyncClient(
            proxy=self.url, verify=self.trust, trust_env=False, timeout=30, **more
        )


@asynccontextmanager
async def tap(
    folder: Path,
    *,
    ports: dict[str, int],
    upstream_ca: Path | None = None,
    mode: str = "regular",
    addons: tuple[object, ...] = (),
    bare: bool = False,
    conf: Path | None = None,
    **opts: Any,
) -> AsyncIterator[Tap]:
    """Run the addon in a real mitmproxy. ports: host name -> local port that is dialled for it.

    bare: without moontap, all else the same. conf: mitmproxy's own folder, to share its authority.
    """
    addon = Moontap()
    master = DumpMaster(options.Options(), with_termlog=False, with_dumper=False)
    slot = master.addons.get("scriptloader")
    for each in (_Redirect(ports), *([] if bare else [addon]), *addons):
        slot.addons.append(each)
        master.addons.register(each)
    running = _Running()
    master.addons.add(running)
    spec = f"{mode}@127.0.0.1:0"
    conf = conf or folder / "conf"
    captures = folder / "captures"
    master.options.update(
        mode=[spec],
        confdir=str(conf),
        ssl_verify_upstream_trusted_ca=str(upstream_ca) if upstream_ca else None,
        **({} if bare else {"moontap_dir": str(captures)}) | opts,
    )
    task = asyncio.create_task(master.run())
    started = asyncio.create_task(running.event.wait())
    await asyncio.wait({task, started}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
    server: Proxyserver = master.addons.get("proxyserver")
    port = server.servers[spec].listen_addrs[0][1]
    try:
        yield Tap(
            master, addon, f"http://127.0.0.1:{port}", conf / "mitmproxy-ca-cert.pem", captures
        )
    finally:
        master.shutdown()
        await task
        await _hang_up(server)


async def replay(file: Path, captures: Path, **opts: Any) -> None:
    """Load a flow file as `mitmdump -nr FILE -s addon/main.py` does, with a fresh addon.

    Not by the `rfile` option: what ends a run after it goes on for good, and would end the next.
    """
    addon, running = Moontap(), _Running()
    master = DumpMaster(options.Options(), with_termlog=False, with_dumper=False)
    master.addons.get("scriptloader").addons.append(addon)
    master.addons.register(addon)
    master.addons.add(running)
    master.options.update(server=False, moontap_dir=str(captures), **opts)
    task = asyncio.create_task(master.run())
    await running.event.wait()
    try:
        with file.open("rb") as flows:
            for flow in io.FlowReader(flows).stream():
                await master.load_flow(flow)
    finally:
        master.shutdown()
        await task


async def _hang_up(server: Proxyserver) -> None:
    """End the connections that mitmproxy leaves to the end of the event loop."""
    handlers = list(server.connections.values())
    for handler in handlers:
        for transport in handler.transports.values():
            if transport.writer:
                transport.writer.close()
    tasks = [t.handler for h in handlers for t in h.transports.values() if t.handler]
    if tasks:
        await asyncio.wait(tasks, timeout=2)
    for instance in server.servers:
        await instance.stop()


def tls_files(folder: Path) -> TLSFiles:
    """A certificate for api.moonshot.cn from a CA of its own."""
    return make_tls(folder / "upstream", HOST)


def capture(captures: Path) -> Path:
    """The one run folder below a captures folder."""
    (folder,) = captures.glob("*Z-*")
    return folder


def saved_flows(captures: Path) -> list[http.HTTPFlow]:
    """The flows of the one run below a captures folder."""
    return flows_of(capture(captures))


def flows_of(folder: Path) -> list[http.HTTPFlow]:
    """The flows of a run's folder."""
    with (folder / "traffic.flow").open("rb") as file:
        return [flow for flow in io.FlowReader(file).stream() if isinstance(flow, http.HTTPFlow)]


def pairs(captures: Path) -> list[dict[str, Any]]:
    """The log lines of the one run below a captures folder; none where it logged none."""
    path = capture(captures) / "pairs.jsonl"
    return list(_lines(path)) if path.exists() else []


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)
