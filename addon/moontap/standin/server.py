"""The stand-in as a server on loopback: HTTP/1.1 and HTTP/2, with or without TLS.

In: a script. Out: a listening port and the requests received. It never prints.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Self

from moontap.serving.server import Server
from moontap.serving.tls import TLSFiles
from moontap.standin.app import App
from moontap.standin.mint import IdForm, Mint
from moontap.standin.model import Model
from moontap.standin.received import Log, Received
from moontap.standin.script import Script


class Standin:
    """A stand-in API as an async context manager.

    `script` defaults to three Bash calls; `id_form` to `name_N` on Messages and `name:N` on Chat
    Completions; `port` 0 takes a free one. `log` is a file that gets a JSON line a request.
    `keep_requests` bounds `requests` (None: all are kept).
    Entering raises `OSError` where the port, the log file or the TLS files cannot be used.
    """

    def __init__(
        self,
        script: Script | None = None,
        *,
        mint: Mint | str = Mint.RESPONSE,
        id_form: IdForm | str | None = None,
        tls: TLSFiles | None = None,
        log: str | Path | None = None,
        port: int = 0,
        keep_requests: int | None = None,
    ) -> None:
        form = None if id_form is None else IdForm(id_form)
        self._journal = Log(log)
        self._app = App(Model(script, Mint(mint), form), self._journal, keep_requests)
        self._server = Server(self._app, port=port, tls=tls)

    @property
    def port(self) -> int:
        """Where it listens; before it does, what was asked for."""
        return self._server.port

    @property
    def base_url(self) -> str:
        """`http://127.0.0.1:PORT` or, with TLS, `https://…`; no path."""
        return self._server.base_url

    @property
    def requests(self) -> deque[Received]:
        """What was received, oldest first."""
        return self._app.requests

    async def __aenter__(self) -> Self:
        self._journal.__enter__()
        try:
            await self._server.__aenter__()
        except BaseException as error:
            self._journal.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self._server.__aexit__(kind, error, trace)
        finally:
            self._journal.__exit__(kind, error, trace)
