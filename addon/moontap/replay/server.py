"""The server: a live request in, what upstream once answered to the same request out.

It opens no connection, ever: what nothing recorded matches is refused, and the refusal says what
is nearest.
"""

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from moontap.capture import upstream
from moontap.capture.exchange import client_request
from moontap.capture.reader import Unreadable
from moontap.redact.flow import Redactor
from moontap.replay import difference, live, pace
from moontap.replay.keys import Key, paired
from moontap.replay.library import Library, Recorded
from moontap.replay.pace import Pace
from moontap.replay.refusal import refusal
from moontap.serving.app import App, Request
from moontap.serving.play import BROKEN, Play
from moontap.serving.server import Server
from moontap.serving.tls import TLSFiles

_log = logging.getLogger("moontap.replay")

_REMEDY = "If that does not matter, say so under `replay` in a rules file (docs/rules.md)."


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that came.

    path: with its query, secrets masked. matched: what was served; None where nothing was, and
    then `message` is what the client was told. status: what it got; 0: a broken connection.
    """

    method: str
    path: str
    matched: Recorded | None
    message: str | None = None
    status: int = 0


class Replay:
    """A library as a server on loopback, as an async context manager.

    once: each exchange is served once, then the same request is refused; else the first comes
    again after the last. port: 0 takes a free one. told: called with each request as it is
    answered. Entering raises `OSError` where the port or the TLS files cannot be used.
    """

    def __init__(
        self,
        library: Library,
        *,
        pace: Pace = pace.NONE,
        once: bool = False,
        port: int = 0,
        tls: TLSFiles | None = None,
        told: Callable[[Asked], None] | None = None,
    ) -> None:
        self.library = library
        self.asked: list[Asked] = []
        self._pace = pace
        self._once = once
        self._told = told
        self._redactor = Redactor(library.rules)
        self._served: dict[Recorded, int] = {}
        self._bodies: dict[Recorded, bytes] = {}
        # No date of our own: the recorded one is among the headers.
        self._server = Server(App(self._answer), port=port, tls=tls, date=False)

    @property
    def port(self) -> int:
        return self._server.port

    @property
    def base_url(self) -> str:
        """`http://127.0.0.1:PORT` or, with TLS, `https://…`; no path."""
        return self._server.base_url

    @property
    def unmatched(self) -> list[str]:
        """What the clients were told whose requests nothing recorded matched."""
        return [one.message for one in self.asked if one.message is not None]

    @property
    def unserved(self) -> list[str]:
        """The labels of recorded exchanges that nobody asked for, in recorded order."""
        return [one.label for one in self.library.exchanges if one not in self._served]

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._server.__aexit__(kind, error, trace)

    def _answer(self, request: Request) -> Play:
        path, body = live.masked(request, self._redactor)
        key = self.library.keys.key(request.method, path, body)
        found = self._choose(key, body)
        if found is None and not self.library.find(key):
            # A capture of a bare mitmproxy holds its secrets.
            as_is = live.plain(request)
            if as_is != (path, body):
                found = self._choose(self.library.keys.key(request.method, *as_is), as_is[1])
        try:
            if found is not None:
                played = self._play(found)
                self._served[found] = self._served.get(found, 0) + 1
                self._say(Asked(request.method, path, found, status=played.status))
                return played
            message = self._no_match(request.method, path, key, body)
        except Unreadable as error:
            message = f"moontap replay: {error}"
        refused = refusal(paired(request.method, request.path), message)
        self._say(Asked(request.method, path, None, message, refused.status))
        return refused

    def _choose(self, key: Key, body: bytes) -> Recorded | None:
        """Of the recorded exchanges with this key the one to serve now, if there is one.

        The same system prompt and limits first, then what was served least, then the same bytes,
        then recorded order.
        """
        found = self.library.find(key)
        if self._once:
            found = [one for one in found if one not in self._served]
        if not found:
            return None
        ranks = [(one.key.context != key.context, self._served.get(one, 0)) for one in found]
        best = min(ranks)
        first = [one for one, rank in zip(found, ranks, strict=True) if rank == best]
        if len(first) > 1:
            digest = hashlib.sha256(body).digest()
            return next((one for one in first if self._body(one) == digest), first[0])
        return first[0]

    def _body(self, recorded: Recorded) -> bytes:
        """The digest of a recorded request's body; read from its file once."""
        if recorded not in self._bodies:
            self._bodies[recorded] = b""
            try:
                body = client_request(recorded.flow())
                self._bodies[recorded] = hashlib.sha256(body).digest()
            except (ValueError, Unreadable):
                pass
        return self._bodies[recorded]

    def _play(self, recorded: Recorded) -> Play:
        answer = upstream.answer(recorded.flow())
        if answer is None:
            return BROKEN
        wait, waits = self._pace.waits(answer)
        return Play(answer.status, answer.headers, answer.chunks, wait, waits, answer.cut)

    def _no_match(self, method: str, path: str, key: Key, body: bytes) -> str:
        said = "moontap replay: no recorded request matches."
        if same := self.library.find(key):
            return (
                f"moontap replay: every recorded answer to this request was served once, "
                f"{same[-1].label} last; without --once they are served again."
            )
        nearest = self.library.nearest(key)
        if nearest is None:
            return f"{said} The capture holds none."
        if nearest.key.kind != key.kind:
            return f"{said} None is of this kind: {key.kind}."
        flow = nearest.flow()
        self._redactor.redact(flow)
        try:
            recorded = client_request(flow)
        except ValueError:
            recorded = flow.request.raw_content or b""
        differs = difference.between(self.library.keys, method, path, recorded, body)
        return f"{said} Nearest: {nearest.label}. It differs: {differs}. {_REMEDY}"

    def _say(self, asked: Asked) -> None:
        self.asked.append(asked)
        if self._told:
            self._told(asked)
