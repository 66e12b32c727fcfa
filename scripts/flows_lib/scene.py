"""Lets a recipe play through the real tap, and keeps what the tap saved.

A recipe in, settled flows out. Upstream is the stand-in, or replies written by hand; the tap is
mitmproxy with the addon in this process, over TLS on both sides; nothing leaves this machine.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import httpx
from mitmproxy import http, io

from moontap.capture import metadata
from moontap.care.scrub import scrubber_for
from moontap.standin import IdForm, Mint, Script, Standin, TLSFiles
from scripts.flows_lib.settle import settle
from tests.proxying import HOST, Tap, saved_flows, tap
from tests.upstreams import Reply, Scripted, raw_upstream

URL = f"https://{HOST}"


@dataclass(frozen=True, slots=True)
class Got:
    """A reply as a client got it. whole: it did not break off."""

    status: int
    headers: httpx.Headers
    body: bytes
    whole: bool


class Stage:
    """What a recipe's client is given. tap, folder: for real clients."""

    def __init__(self, running: Tap, client: httpx.AsyncClient, folder: Path) -> None:
        self.tap = running
        self.folder = folder
        self._client = client

    async def post(self, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> Got:
        """Send a request with these headers, and no others but what HTTP needs."""
        named = {
            "host": HOST,
            "content-type": "application/json",
            "user-agent": "moontap-flows",
            "accept-encoding": "gzip, br, zstd",
            "authorization": "Bearer made-up-key",
        }
        headers = {**named, **(headers or {}), "content-length": str(len(body))}
        request = httpx.Request("POST", URL + path, headers=headers, content=body)
        got = b""
        reply = await self._client.send(request, stream=True)
        try:
            async for piece in reply.aiter_raw():
                got += piece
        except (httpx.RemoteProtocolError, httpx.ReadError):
            return Got(reply.status_code, reply.headers, got, False)
        return Got(reply.status_code, reply.headers, got, True)


type Play = Callable[[Stage], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Scripts:
    """The stand-in as upstream."""

    script: Script
    mint: Mint = Mint.RESPONSE
    form: IdForm | None = None


@dataclass(frozen=True, slots=True)
class Recipe:
    """Who talks to whom. upstream: the stand-in, or replies by hand, in turn. play: the client.

    real: the real client that it takes. Such a flow is another one at each recording: the client
    has session ids, dates and a mind of its own. late: seconds that the only reply takes to begin.
    pauses: seconds before each chunk of the only reply, and before its end. guard: as in
    `moontap_guard`; a replay goes without, for what a guard did is not to be done again.
    """

    upstream: Scripts | Sequence[Reply]
    play: Play
    real: str | None = None
    late: float = 0
    pauses: Sequence[float] = ()
    guard: str = "warn"


async def record(
    name: str, recipe: Recipe, options: Mapping[str, str], folder: Path, tls: TLSFiles, conf: Path
) -> list[http.HTTPFlow]:
    """Play a recipe. options: the addon's. folder: an empty one, to work in."""
    given: dict[str, Any] = {"moontap_guard": recipe.guard, **options}
    async with (
        _upstream(recipe.upstream, tls) as port,
        tap(folder, ports={HOST: port}, upstream_ca=tls.ca, conf=conf, **given) as running,
        running.client() as client,
    ):
        await asyncio.wait_for(recipe.play(Stage(running, client, folder)), 120)
        await _kept(running)
    flows = [flow for flow in saved_flows(running.captures) if not _stopped(flow)]
    settle(name, flows)
    _delay(flows, recipe.late)
    _pause(flows, recipe.pauses)
    _neutral(flows, str(folder).encode())
    _scrub(flows)
    return flows


def write(flows: Sequence[http.HTTPFlow], file: Path) -> None:
    """Write flows to a file in mitmproxy's format."""
    with file.open("wb") as out:
        writer = io.FlowWriter(out)
        for flow in flows:
            writer.add(flow)


async def _kept(running: Tap) -> None:
    """Wait until what has ended is on the disk."""
    for _ in range(500):
        if not running.addon._open:
            return
        await asyncio.sleep(0.01)


def _delay(flows: Sequence[http.HTTPFlow], late: float) -> None:
    """What was recorded in no time, as if it had taken long."""
    for flow in flows if late else ():
        assert flow.response
        assert flow.response.timestamp_end
        flow.response.timestamp_start += late
        flow.response.timestamp_end += late


def _pause(flows: Sequence[http.HTTPFlow], pauses: Sequence[float]) -> None:
    """What was recorded in no time, as if it had come with pauses."""
    for flow in flows if pauses else ():
        assert flow.response
        *moments, end = accumulate(pauses)
        sizes = [size for size, _ in flow.metadata[metadata.CHUNKS]]
        flow.metadata[metadata.CHUNKS] = [
            [size, moment * 1000.0] for size, moment in zip(sizes, moments, strict=True)
        ]
        flow.response.timestamp_end = flow.response.timestamp_start + end


def _neutral(flows: Sequence[http.HTTPFlow], folder: bytes) -> None:
    """Take the folder that a real client worked in out of what it sent; lengths stay."""
    other = b"/home/you/project".ljust(len(folder), b"-")[: len(folder)]
    for flow in flows:
        body = flow.request.raw_content or b""
        if folder in body:
            flow.request.raw_content = body.replace(folder, other)


def _scrub(flows: Sequence[http.HTTPFlow]) -> None:
    """What `moontap scrub` does: `--check` shall find nothing in them."""
    scrubber = scrubber_for(flows)
    for flow in flows:
        scrubber.scrub(flow)


def _stopped(flow: http.HTTPFlow) -> bool:
    """Whether the client was stopped while this went on: no part of the story."""
    return bool(flow.error and "Client disconnected" in flow.error.msg)


def _upstream(
    upstream: Scripts | Sequence[Reply], tls: TLSFiles
) -> AbstractAsyncContextManager[int]:
    if isinstance(upstream, Scripts):
        return _standin(upstream, tls)
    return raw_upstream(Scripted(*upstream), tls)


@asynccontextmanager
async def _standin(scripts: Scripts, tls: TLSFiles) -> AsyncIterator[int]:
    async with Standin(scripts.script, mint=scripts.mint, id_form=scripts.form, tls=tls) as one:
        yield one.port
