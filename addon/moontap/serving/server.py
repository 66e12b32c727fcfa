"""The server: hypercorn on a loopback port, HTTP/1.1 and HTTP/2 (by ALPN, or h2c with prior
knowledge), with or without TLS.

In: an application. Out: a listening port. It never prints.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from types import TracebackType
from typing import Any, Self, cast

from hypercorn.asyncio import serve
from hypercorn.config import Config

from moontap.serving.app import App
from moontap.serving.tls import TLSFiles

_log = logging.getLogger("moontap.serving")
_STOP_SECONDS = 5.0  # for hypercorn to end, before its task is cancelled


class Server:
    """A server as an async context manager.

    port: 0 takes a free one. date: whether answers get a `date` header of their own. Entering
    raises `OSError` where the port or the TLS files cannot be used.
    """

    def __init__(
        self, app: App, *, port: int = 0, tls: TLSFiles | None = None, date: bool = True
    ) -> None:
        self._app = app
        self._tls = tls
        self._date = date
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.port = port

    @property
    def base_url(self) -> str:
        """`http://127.0.0.1:PORT` or, with TLS, `https://…`; no path."""
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._stop.clear()
        listener = _listen(self.port)
        try:
            self.port = listener.getsockname()[1]
            config = _config(self._tls, self._date)
            config.create_ssl_context()  # unusable files shall fail here, not in the task
        except BaseException:
            listener.close()
            raise
        config.bind = [f"fd://{listener.detach()}"]
        self._task = asyncio.create_task(
            serve(cast(Any, self._app), config, shutdown_trigger=self._stop.wait)
        )
        await asyncio.sleep(0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._app.abandon()
        assert self._task is not None
        await asyncio.wait({self._task}, timeout=_STOP_SECONDS)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=_STOP_SECONDS)
        elif not self._task.cancelled() and self._task.exception():
            _log.error("the server ended badly: %r", self._task.exception())


def _listen(port: int) -> socket.socket:
    """A loopback socket that already queues connections, so the port is good at once."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(100)
    except BaseException:
        listener.close()
        raise
    return listener


def _config(tls: TLSFiles | None, date: bool) -> Config:
    config = Config()
    config.accesslog = None
    config.errorlog = _log
    config.include_server_header = False
    config.include_date_header = date
    config.keep_alive_timeout = 75
    config.keep_alive_max_requests = 1_000_000  # a bench sends thousands on one connection
    config.graceful_timeout = 1
    if tls is not None:
        config.certfile = config.keyfile = str(tls.leaf)
    return config
