"""The ASGI application: plays plans.

In: ASGI messages. Out: ASGI messages, paced, or a broken connection. It never decides anything:
`Model` does.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from moontap.standin.model import Model
from moontap.standin.plan import Plan
from moontap.standin.received import Log, Received

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class App:
    """One application a server. `requests` holds the last `keep` requests (None: all)."""

    def __init__(self, model: Model, log: Log, keep: int | None = None) -> None:
        self._model = model
        self._log = log
        self._index = itertools.count()
        self._tasks: set[asyncio.Task[Any]] = set()
        self.requests: deque[Received] = deque(maxlen=keep)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            try:
                await self._exchange(scope, receive, send)
            finally:
                self._tasks.discard(task)

    def abandon(self) -> None:
        """Ends the exchanges that are under way, so that a stalled one cannot hold up the end."""
        for task in tuple(self._tasks):
            task.cancel()

    async def _exchange(self, scope: Message, receive: Receive, send: Send) -> None:
        raw = await _body(receive)
        if raw is None:
            return
        query = scope["query_string"].decode("latin-1")
        path = scope["raw_path"].decode("latin-1") + (f"?{query}" if query else "")
        headers = _headers(scope["headers"])
        plan, body, note = self._model.answer(scope["method"], path, headers, raw)
        received = Received(
            index=next(self._index),
            method=scope["method"],
            path=path,
            headers=headers,
            body=body,
            http_version=scope["http_version"],
            raw=raw,
            answer=note,
        )
        self.requests.append(received)
        self._log.write(received)
        await _play(plan, receive, send)


async def _play(plan: Plan, receive: Receive, send: Send) -> None:
    left = asyncio.ensure_future(_client_left(receive))
    try:
        for number, chunk in enumerate(plan.chunks or (b"",)):
            if await _wait(plan.waits.get(number, 0), left):
                return
            if number == 0:
                await send(_start(plan))
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        if plan.cut:
            await _break_off(send)
        else:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
    finally:
        left.cancel()


def _start(plan: Plan) -> Message:
    headers = [("content-type", plan.content_type), *plan.headers]
    if plan.streamed:
        headers.append(("cache-control", "no-cache"))
    elif not plan.cut:
        headers.append(("content-length", str(sum(map(len, plan.chunks)))))
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    return {"type": "http.response.start", "status": plan.status, "headers": raw}


async def _wait(ms: float, left: asyncio.Future[None]) -> bool:
    """Waits, and says whether the client went away meanwhile."""
    if ms:
        await asyncio.wait({left}, timeout=ms / 1000)
    return left.done()


async def _client_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _break_off(send: Send) -> None:
    """Breaks the connection. On HTTP/1, an application that returns too early is enough. On
    HTTP/2, hypercorn 0.18 leaves such a stream open for good, and ASGI has no message to close
    a connection; so this goes through to hypercorn's connection, after what was sent is out.
    Should its insides change, the client waits for its own timeout."""
    stream = getattr(send, "__self__", None)
    connection = getattr(getattr(stream, "send", None), "__self__", None)
    buffers = getattr(connection, "stream_buffers", None)
    if connection is None or buffers is None:
        return
    from hypercorn.events import Closed

    buffer = buffers.get(getattr(stream, "stream_id", None))
    if buffer is not None:
        with contextlib.suppress(TimeoutError):  # a client that does not read is cut off as well
            await asyncio.wait_for(buffer.drain(), 1)
    await connection.send(Closed())


async def _body(receive: Receive) -> bytes | None:
    """The request body; None where the client left before its end."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return bytes(body)


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


def _headers(pairs: list[tuple[bytes, bytes]]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for raw_name, raw_value in pairs:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers
