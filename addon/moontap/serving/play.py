"""One answer on the wire: status, headers, chunks, silences, and whether it breaks off.

In: a `Play` and ASGI's functions. Out: ASGI messages, paced, or a broken connection. It never
changes a byte and never decides anything.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

type Message = MutableMapping[str, Any]
type Receive = Callable[[], Awaitable[Message]]
type Send = Callable[[Message], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Play:
    """One answer.

    status: 0 breaks the connection in place of an answer. chunks: one write each. wait:
    milliseconds of silence before the headers; waits: the same before chunk i. cut: it breaks off
    after the last chunk instead of ending the response.
    """

    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = ()
    chunks: tuple[bytes, ...] = ()
    wait: float = 0
    waits: Mapping[int, float] = field(default_factory=dict)
    cut: bool = False


BROKEN = Play(status=0)
"""No answer at all: the connection breaks."""


async def play(answer: Play, receive: Receive, send: Send) -> None:
    """Play an answer, as far as the client stays."""
    left = asyncio.ensure_future(_client_left(receive))
    try:
        if await _wait(answer.wait, left):
            return
        if not answer.status:
            await _hang_up(send)
            return
        if await _gone(left):
            return
        await send(
            {
                "type": "http.response.start",
                "status": answer.status,
                "headers": list(answer.headers),
            }
        )
        for number, chunk in enumerate(answer.chunks):
            if await _wait(answer.waits.get(number, 0), left) or await _gone(left):
                return
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await _written(send)
        if answer.cut:
            await _break_off(send)
        else:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
    finally:
        left.cancel()


async def _wait(ms: float, left: asyncio.Future[None]) -> bool:
    """Waits, and says whether the client went away meanwhile."""
    if ms:
        await asyncio.wait({left}, timeout=ms / 1000)
    return left.done()


async def _gone(left: asyncio.Future[None]) -> bool:
    """Lets others have their turn, and says whether the client went away.

    Writing waits for a client that reads slowly, but neither for one that reads fast nor for one
    that has left: 10 MB to twenty of those took all of the loop for 11 s, with asyncio's warning
    for each chunk.
    """
    await asyncio.sleep(0)
    return left.done()


async def _client_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


# ASGI has no message to close a connection, and none that says when a chunk has left. The rest of
# this file goes through to hypercorn 0.18's own objects; should they change, a break becomes a
# client that waits for its own timeout, and small chunks may share a frame.


async def _written(send: Send) -> None:
    """On HTTP/2, waits until a chunk is out: what is sent before that would share its frame."""
    buffer = _buffer(send)
    if buffer is not None:
        await buffer.drain()


async def _break_off(send: Send) -> None:
    """Breaks a response. On HTTP/1, an application that returns too early is enough; on HTTP/2,
    hypercorn leaves such a stream open for good."""
    buffer = _buffer(send)
    if buffer is None:
        return
    with contextlib.suppress(TimeoutError):  # a client that does not read is cut off as well
        await asyncio.wait_for(buffer.drain(), 1)
    await _hang_up(send)


async def _hang_up(send: Send) -> None:
    """Closes the connection, with whatever else goes on in it."""
    connection = _connection(send)
    if connection is not None:
        from hypercorn.events import Closed

        await connection.send(Closed())


def _connection(send: Send) -> Any:
    stream = getattr(send, "__self__", None)
    return getattr(getattr(stream, "send", None), "__self__", None)


def _buffer(send: Send) -> Any:
    """What an HTTP/2 stream has yet to write; None on HTTP/1."""
    buffers = getattr(_connection(send), "stream_buffers", {})
    return buffers.get(getattr(getattr(send, "__self__", None), "stream_id", None))
