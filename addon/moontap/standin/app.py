"""What the server asks: a request in, its plan's bytes out, and a record of both.

In: requests. Out: what to play. It never decides anything: `Model` does.
"""

from __future__ import annotations

import itertools
from collections import deque

from moontap.serving.app import App as ServingApp
from moontap.serving.app import Request
from moontap.serving.play import Play
from moontap.standin.model import Model
from moontap.standin.received import Log, Received


class App(ServingApp):
    """One application a server. `requests` holds the last `keep` requests (None: all)."""

    def __init__(self, model: Model, log: Log, keep: int | None = None) -> None:
        super().__init__(self._play)
        self._model = model
        self._log = log
        self._index = itertools.count()
        self.requests: deque[Received] = deque(maxlen=keep)

    def _play(self, request: Request) -> Play:
        headers = _headers(request.headers)
        plan, body, note = self._model.answer(request.method, request.path, headers, request.body)
        received = Received(
            index=next(self._index),
            method=request.method,
            path=request.path,
            headers=headers,
            body=body,
            http_version=request.http_version,
            raw=request.body,
            answer=note,
        )
        self.requests.append(received)
        self._log.write(received)
        return plan.play()


def _headers(pairs: tuple[tuple[bytes, bytes], ...]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for raw_name, raw_value in pairs:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers
