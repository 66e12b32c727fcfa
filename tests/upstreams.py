"""Upstreams whose every byte, version and pause a test decides, behind real TLS.

`raw_upstream` speaks HTTP/1.1 by hand; `asgi_upstream` speaks HTTP/1.1 or HTTP/2 by hypercorn.
Both play a `Body`: bytes, a list of pieces, or an async generator that waits where it likes.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from hypercorn.asyncio import serve
from hypercorn.config import Config

from moontap.standin import TLSFiles

type Body = bytes | Sequence[bytes] | Callable[[], AsyncIterator[bytes]]
type Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

SSE = "text/event-stream"
JSON = "application/json"


@asynccontextmanager
async def raw_upstream(handler: Handler, tls: TLSFiles | None) -> AsyncIterator[int]:
    """An HTTP/1.1 server whose every byte the test decides; gives its port."""
    context = None
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls.leaf)
    open_: set[asyncio.Task[Any]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        open_.add(task)
        gone = (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError)
        with contextlib.suppress(*gone):
            await handler(reader, writer)
        writer.close()
        open_.discard(task)

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context, limit=2**24)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in open_:
            task.cancel()
        if open_:
            await asyncio.wait(list(open_), timeout=2)


async def read_request(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """One request's head and body, as a raw upstream gets it."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    return head, await reader.readexactly(length)


async def pieces(body: Body) -> AsyncIterator[bytes]:
    """A body, piece by piece."""
    if callable(body):
        async for piece in body():
            yield piece
    else:
        for piece in [body] if isinstance(body, bytes) else body:
            yield piece


@dataclass(frozen=True)
class Reply:
    """One HTTP/1.1 reply.

    kind: its content type, if any. framing: `chunked` (each piece a chunk), `length` or `close`.
    whole: False breaks off after the last piece instead of ending the body.
    """

    body: Body = b""
    kind: str | None = SSE
    status: str = "200 OK"
    framing: str = "chunked"
    headers: tuple[str, ...] = ()
    whole: bool = True

    def head(self) -> bytes:
        lines = [f"HTTP/1.1 {self.status}", *self.headers]
        if self.kind is not None:
            lines.append(f"Content-Type: {self.kind}")
        if self.framing == "chunked":
            lines.append("Transfer-Encoding: chunked")
        elif self.framing == "length":
            assert not callable(self.body)
            parts = [self.body] if isinstance(self.body, bytes) else self.body
            lines.append(f"Content-Length: {sum(map(len, parts)) + (not self.whole)}")
        elif self.framing == "close":
            lines.append("Connection: close")
        return "\r\n".join([*lines, "", ""]).encode()


class Scripted:
    """A handler for `raw_upstream`: the replies in turn, the last one again and again."""

    def __init__(self, *replies: Reply) -> None:
        self._replies = list(replies)
        self.requests: list[tuple[bytes, bytes]] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        going_on = True
        while going_on:
            self.requests.append(await read_request(reader))
            reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
            going_on = await self._play(reply, writer)

    async def _play(self, reply: Reply, writer: asyncio.StreamWriter) -> bool:
        writer.write(reply.head())
        await writer.drain()
        chunked = reply.framing == "chunked"
        async for piece in pieces(reply.body):
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
            await writer.drain()
        if chunked and reply.whole:
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        return reply.whole and reply.framing != "close"


@dataclass
class Seen:
    """A request as an `App` got it."""

    version: str
    headers: list[tuple[bytes, bytes]]
    body: bytes


@dataclass
class App:
    """An ASGI application that plays one body to every request."""

    body: Body
    kind: str = SSE
    trailers: tuple[tuple[bytes, bytes], ...] = ()
    seen: list[Seen] = field(default_factory=list)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            while True:  # the lifespan protocol
                message = await receive()
                await send({"type": f"{message['type']}.complete"})
                if message["type"] == "lifespan.shutdown":
                    return
        request = bytearray()
        more = True
        while more:
            message = await receive()
            request += message.get("body", b"")
            more = message.get("more_body", False)
        self.seen.append(Seen(scope["http_version"], list(scope["headers"]), bytes(request)))
        headers = [(b"content-type", self.kind.encode())]
        start = {"type": "http.response.start", "status": 200, "headers": headers}
        await send({**start, "trailers": bool(self.trailers)})
        async for piece in pieces(self.body):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        if self.trailers:
            await send({"type": "http.response.trailers", "headers": list(self.trailers)})


@asynccontextmanager
async def asgi_upstream(app: App, tls: TLSFiles, *alpn: str) -> AsyncIterator[int]:
    """An HTTP/1.1 and HTTP/2 server; alpn: what it offers (`h2`, `http/1.1`). Gives its port."""
    listener = socket.create_server(("127.0.0.1", 0))
    port: int = listener.getsockname()[1]
    config = Config()
    config.accesslog = config.errorlog = None
    config.graceful_timeout = 1
    config.alpn_protocols = list(alpn)
    config.certfile = config.keyfile = str(tls.leaf)
    config.bind = [f"fd://{listener.detach()}"]
    stop = asyncio.Event()
    task = asyncio.create_task(serve(cast(Any, app), config, shutdown_trigger=stop.wait))
    try:
        yield port
    finally:
        stop.set()
        await task
