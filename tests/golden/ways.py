"""The two ways to replay a recorded session: offline, and through a real proxy.

Flows as a bare mitmproxy would have saved them in, the folder of the run out. Offline they are
loaded, as `mitmdump -nr` does. In the other way a client sends the recorded requests over TLS
through a proxy with the addon, in the recorded order of starts and ends, and upstream answers
each with the chunks it was recorded with.
"""

import asyncio
import atexit
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import httpx
from mitmproxy import http, io

from moontap.capture.upstream import HOP_BY_HOP, Answer, answer
from moontap.standin import TLSFiles
from tests.golden import authority
from tests.proxying import HOST, Tap, capture, replay, tap, tls_files
from tests.upstreams import raw_upstream, read_request

WAIT = 20
"""Seconds within which each step of a replay must happen."""


async def offline(flows: Sequence[http.HTTPFlow], folder: Path, options: Mapping[str, str]) -> Path:
    """Load the flows into a fresh mitmproxy with the addon; the folder of what it captured."""
    file, captures = folder / "bare.flow", folder / "offline"
    with file.open("wb") as out:
        writer = io.FlowWriter(out)
        for flow in flows:
            writer.add(flow)
    await replay(file, captures, confdir=str(_conf()), **options)
    return capture(captures)


async def through_proxy(
    recorded: Sequence[http.HTTPFlow],
    bare: Sequence[http.HTTPFlow],
    folder: Path,
    options: Mapping[str, str],
) -> tuple[Path, dict[int, bytes]]:
    """Play the session again; the folder of what the tap captured, and what the client got.

    recorded: what upstream sent comes from these. bare: what the client sends, from these.
    """
    tls, conf = _tls(), _conf()
    given: dict[str, Any] = dict(options)
    player = _Player([answer(flow) for flow in recorded], [_framing(flow) for flow in recorded])
    async with (
        raw_upstream(player, tls) as port,
        tap(folder, ports={HOST: port}, upstream_ca=tls.ca, conf=conf, **given) as p,
        p.client() as client,
    ):
        session = _Session(client, player, p, bare)
        for starts, number in schedule(recorded):
            step = session.start(number) if starts else session.end(number)
            await asyncio.wait_for(step, WAIT)
    return capture(p.captures), session.got


def schedule(flows: Sequence[http.HTTPFlow]) -> list[tuple[bool, int]]:
    """The starts (True) and ends of exchanges in their recorded order.

    Flows were saved as they ended, so of two ends the one that was saved first comes first.
    """
    events: list[tuple[float, bool, int]] = []
    latest = 0.0
    for number, flow in enumerate(flows):
        latest = max(latest, ended(flow))
        events += [(flow.request.timestamp_start, True, number), (latest, False, number)]
    return [(starts, number) for _, starts, number in sorted(events)]


def ended(flow: http.HTTPFlow) -> float:
    """When the reply was over, or had broken off."""
    response, error = flow.response, flow.error
    times = (response and response.timestamp_end, error and error.timestamp)
    return max([time for time in times if time], default=flow.request.timestamp_start)


def chunk_sizes(recorded: http.HTTPFlow) -> list[int] | None:
    """The sizes in which a reply must come in again; None where TCP or TLS may cut otherwise."""
    given = answer(recorded)
    sizes = [len(chunk) for chunk in given.chunks] if given else []
    safe = _framing(recorded) == "chunked" and max(sizes, default=0) <= 8192
    return sizes if safe else None


@cache
def _kept() -> Path:
    """A folder till the process ends, for what takes a moment to make."""
    kept = tempfile.TemporaryDirectory(prefix="moontap-golden-")
    atexit.register(kept.cleanup)
    return Path(kept.name)


@cache
def _tls() -> TLSFiles:
    return tls_files(_kept())


@cache
def _conf() -> Path:
    return authority.make(_kept() / "conf")


def _framing(flow: http.HTTPFlow) -> str:
    headers = flow.response.headers if flow.response else {}
    if "chunked" in headers.get("transfer-encoding", ""):
        return "chunked"
    return "length" if "content-length" in headers else "close"


@dataclass
class _Player:
    """An upstream that gives the recorded answers. `starting` says which request comes next."""

    answers: Sequence[Answer | None]
    framings: Sequence[str]
    starting: int = 0
    received: dict[int, asyncio.Event] = field(default_factory=dict)
    released: dict[int, asyncio.Event] = field(default_factory=dict)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        going_on = True
        while going_on:
            await read_request(reader)
            number = self.starting
            self.received[number].set()
            await self.released[number].wait()
            given = self.answers[number]
            going_on = bool(given) and await _play(given, self.framings[number], writer)


async def _play(given: Answer | None, framing: str, writer: asyncio.StreamWriter) -> bool:
    """Whether the connection can be used again."""
    assert given
    head = [f"HTTP/1.1 {given.status} {given.reason}".encode("latin-1")]
    head += [name + b": " + value for name, value in given.headers]
    if framing == "chunked":
        head = [line for line in head if not line.lower().startswith(b"content-length:")]
        head.append(b"transfer-encoding: chunked")
    elif framing == "close":
        head.append(b"connection: close")
    writer.write(b"\r\n".join([*head, b"", b""]))
    await writer.drain()
    for chunk in given.chunks:
        writer.write(b"%x\r\n%s\r\n" % (len(chunk), chunk) if framing == "chunked" else chunk)
        await writer.drain()
    if framing == "chunked" and not given.cut:
        writer.write(b"0\r\n\r\n")
        await writer.drain()
    return not given.cut and framing != "close"


@dataclass
class _Session:
    """The client's side: requests that start and end when told to."""

    client: httpx.AsyncClient
    player: _Player
    tap: Tap
    flows: Sequence[http.HTTPFlow]
    under_way: dict[int, asyncio.Task[bytes]] = field(default_factory=dict)
    got: dict[int, bytes] = field(default_factory=dict)

    async def start(self, number: int) -> None:
        player = self.player
        player.starting = number
        player.received[number], player.released[number] = asyncio.Event(), asyncio.Event()
        task = self.under_way[number] = asyncio.create_task(self._send(self.flows[number]))
        received = asyncio.create_task(player.received[number].wait())
        await asyncio.wait({task, received}, return_when=asyncio.FIRST_COMPLETED)
        received.cancel()

    async def end(self, number: int) -> None:
        self.player.released[number].set()
        self.got[number] = await self.under_way.pop(number)
        # A reply with a content-length can be ahead of the disk, and the next one would overtake.
        await _until(lambda: self.tap.addon.recorder.counts.exchanges >= len(self.got))

    async def _send(self, flow: http.HTTPFlow) -> bytes:
        request = httpx.Request(
            flow.request.method,
            flow.request.url,
            headers=[
                (name, value)
                for name, value in flow.request.headers.fields
                if name.lower().decode("latin-1") not in HOP_BY_HOP
            ],
            content=flow.request.raw_content,
        )
        got = b""
        try:
            reply = await self.client.send(request, stream=True)
            async for piece in reply.aiter_raw():
                got += piece
        except (httpx.RemoteProtocolError, httpx.ReadError):
            pass  # it breaks off here, as it did there
        return got


async def _until(true: Callable[[], bool]) -> None:
    while not true():
        await asyncio.sleep(0.002)
