"""The ASGI application: requests in, whole; the answers that a function gives to them out, played.

It never reads a request's body for its meaning.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moontap.serving.play import Message, Play, Receive, Send, play


@dataclass(frozen=True, slots=True)
class Request:
    """One request. path: with its query. headers: as they came, names in lower case. body: as it
    came, content encoding on."""

    method: str
    path: str
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    http_version: str


class App:
    """One application a server. `answer` is called once a request, in the order of their ends."""

    def __init__(self, answer: Callable[[Request], Play]) -> None:
        self._answer = answer
        self._tasks: set[asyncio.Task[Any]] = set()

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
        body = await _body(receive)
        if body is None:
            return
        query = scope["query_string"].decode("latin-1")
        request = Request(
            method=scope["method"],
            path=scope["raw_path"].decode("latin-1") + (f"?{query}" if query else ""),
            headers=tuple((bytes(name).lower(), bytes(value)) for name, value in scope["headers"]),
            body=body,
            http_version=scope["http_version"],
        )
        await play(self._answer(request), receive, send)


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
