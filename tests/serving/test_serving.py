"""The server that plays answers: what is on the wire, over HTTP/1.1 and HTTP/2, with and without
TLS."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import h2.connection
import pytest

from moontap.serving.app import App, Request
from moontap.serving.play import BROKEN, Play
from moontap.serving.server import Server
from moontap.serving.tls import TLSFiles, make_tls
from tests.serving.raw import Seen, http1, http2

type Client = Callable[..., Awaitable[Seen]]

both = pytest.mark.parametrize("client", [http1, http2])
CHUNKS = (b"data: 1\n\n", b"x", b"data: 2", b"\n\n", b"y" * 5000)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> TLSFiles:
    return make_tls(tmp_path_factory.mktemp("tls"), server="test")


def serving(answer: Play, **more: object) -> Server:
    return Server(App(lambda request: answer), **more)  # type: ignore[arg-type]


@both
@pytest.mark.parametrize("secure", [False, True])
async def test_each_chunk_is_one_write(client: Client, secure: bool, tls: TLSFiles) -> None:
    context = ssl.create_default_context(cafile=tls.ca) if secure else None
    if context:
        context.check_hostname = False
    async with serving(Play(chunks=CHUNKS), tls=tls if secure else None) as server:
        seen = await client(server.port, tls=context)
    assert tuple(seen.pieces) == CHUNKS
    assert (seen.status, seen.ended) == (200, True)


@both
async def test_headers_are_those_of_the_answer(client: Client) -> None:
    headers: tuple[tuple[bytes, bytes], ...] = (
        *((b"X-One", b"1"), (b"Date", b"then")),
        (b"X-One", b"2"),
    )
    async with serving(Play(201, headers, (b"x",)), date=False) as server:
        seen = await client(server.port)
    if client is http2:  # has no upper case
        headers = tuple((name.lower(), value) for name, value in headers)
    assert [one for one in seen.headers if one[0] != b"Transfer-Encoding"] == list(headers)
    assert seen.status == 201


@both
async def test_a_length_is_kept(client: Client) -> None:
    answer = Play(headers=((b"content-length", b"4"),), chunks=(b"ab", b"cd"))
    async with serving(answer) as server:
        seen = await client(server.port)
    assert (b"".join(seen.pieces), seen.header(b"content-length")) == (b"abcd", b"4")
    assert seen.ended


@both
@pytest.mark.parametrize("length", [(), ((b"content-length", b"99"),)])
async def test_a_cut_breaks_off_behind_the_last_chunk(
    client: Client, length: tuple[tuple[bytes, bytes], ...]
) -> None:
    async with serving(Play(headers=length, chunks=(b"ab", b"c"), cut=True)) as server:
        seen = await client(server.port)
    assert (b"".join(seen.pieces), seen.status, seen.ended) == (b"abc", 200, False)


@both
async def test_a_cut_behind_the_headers(client: Client) -> None:
    async with serving(Play(cut=True)) as server:
        seen = await client(server.port)
    assert (seen.status, seen.pieces, seen.ended) == (200, [], False)


@both
async def test_no_answer_breaks_the_connection(client: Client) -> None:
    async with serving(BROKEN) as server:
        seen = await client(server.port)
    assert (seen.status, seen.headers, seen.ended) == (0, [], False)


@both
async def test_waits_before_headers_and_chunks(client: Client) -> None:
    answer = Play(chunks=(b"a", b"b", b"c"), wait=100, waits={0: 100, 2: 200})
    async with serving(answer) as server:
        seen = await client(server.port)
    first, second, third = seen.times
    assert first >= 0.19
    assert second - first < 0.15
    assert third - second >= 0.19


@both
async def test_a_request_comes_whole(client: Client) -> None:
    got: list[Request] = []

    def answer(request: Request) -> Play:
        got.append(request)
        return Play()

    async with Server(App(answer)) as server:
        await client(server.port, "/v1/x?a=1", b"body" * 4_000)
    (request,) = got
    assert (request.method, request.path) == ("POST", "/v1/x?a=1")
    assert request.body == b"body" * 4_000


async def test_a_stalled_answer_does_not_hold_up_the_end(tmp_path: Path) -> None:
    async with serving(Play(chunks=(b"a", b"b"), waits={1: 60_000})) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"a\r\n")
        begun = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() - begun < 3
    writer.close()


@both
@pytest.mark.parametrize("after_a_part", [False, True])
async def test_clients_that_leave_hold_up_nobody(
    client: Client, after_a_part: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a wait, writing to one that has left took the loop for itself: another client waited
    for 11 s, and each chunk made a warning."""
    long, got = Play(chunks=(b"x" * 200,) * 50_000), 0

    def answer(request: Request) -> Play:
        return long if request.path == "/long" else Play(chunks=(b"short",))

    async def leave(port: int) -> None:
        nonlocal got
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        request = b"GET /long HTTP/1.1\r\nHost: x\r\n\r\n"
        if client is http2:
            connection = h2.connection.H2Connection()
            connection.initiate_connection()
            names = {":method": "GET", ":scheme": "http", ":authority": "x", ":path": "/long"}
            connection.send_headers(1, list(names.items()), end_stream=True)
            request = connection.data_to_send()
        writer.write(request)
        await writer.drain()
        while after_a_part and got < 1000:
            got += len(await reader.read(1000))
        writer.transport.abort()

    async with Server(App(answer)) as server:
        await asyncio.gather(*(leave(server.port) for _ in range(20)))
        begun = asyncio.get_running_loop().time()
        seen = await client(server.port)
        assert asyncio.get_running_loop().time() - begun < 0.5
        assert seen.pieces == [b"short"]
    assert bool(got) == after_a_part
    assert caplog.text == ""


async def test_a_port_in_use_is_an_error() -> None:
    async with serving(Play()) as server:
        with pytest.raises(OSError, match="in use"):
            await serving(Play(), port=server.port).__aenter__()
