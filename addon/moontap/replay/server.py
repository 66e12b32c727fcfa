"""The server: a live request in, what upstream once answered to the same request out.

It opens no connection, ever: what nothing recorded matches is refused, and the refusal says what
is nearest.
"""

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from moontap.capture import upstream
from moontap.capture.exchange import client_request
from moontap.capture.reader import Unreadable
from moontap.redact.flow import Redactor
from moontap.replay import difference, live, pace
from moontap.replay.keys import Exact, Key, Keys, paired
from moontap.replay.library import Library, Recorded
from moontap.replay.pace import Pace
from moontap.replay.refusal import refusal
from moontap.report.text import plain
from moontap.serving.app import App, Request
from moontap.serving.play import BROKEN, Play
from moontap.serving.server import Server
from moontap.serving.tls import TLSFiles

_log = logging.getLogger("moontap.replay")

_REMEDY = "If that does not matter, say so under `replay` in a rules file (docs/rules.md)."
_BEST = (0, False, False, 0)
_NOTHING = Exact(Counter())
_ANY_RESULT = "Or any tool result may do: --any-result."


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
        self._letters = Keys(library.rules, changing=False)
        self._exact: dict[Recorded, Exact] = {}
        self._reasons: dict[tuple[object, ...], str] = {}
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
        found = self._choose(request.method, path, body, key)
        if found is None and not self.library.find(key):
            # A capture of a bare mitmproxy holds its secrets.
            as_is = live.plain(request)
            if as_is != (path, body):
                other = self.library.keys.key(request.method, *as_is)
                found = self._choose(request.method, *as_is, other)
        try:
            if found is not None:
                played = self._play(found)
                self._served[found] = self._served.get(found, 0) + 1
                self._say(Asked(request.method, path, found, status=played.status))
                return played
            # Claude Code asks again with other tools, and what it shows then is the last reason.
            asked = (key.kind, key.model, *key.chain)
            message = self._reasons.get(asked) if key.chain else None
            if message is None:
                message = self._reasons[asked] = self._no_match(request.method, path, key, body)
        except Unreadable as error:
            message = f"moontap replay: {error}"
        message = plain(message)  # what a request holds goes to terminals
        refused = refusal(paired(request.method, request.path), message)
        self._say(Asked(request.method, path, None, message, refused.status))
        return refused

    def _choose(self, method: str, path: str, body: bytes, key: Key) -> Recorded | None:
        """Of the recorded exchanges with this key the one to serve now, if there is one.

        First the one whose messages are the same to the letter, or the most of them: what a
        placeholder stands for may be what was asked. Then the same system prompt and limits, then
        what was served least, then recorded order.
        """
        found = self.library.find(key)
        if self._once:
            found = [one for one in found if one not in self._served]
        if len(found) < 2:
            return found[0] if found else None
        exact = self._letters.exact(method, path, body)
        best: tuple[tuple[int, bool, bool, int], Recorded] | None = None
        for one in found:
            recorded = self._recorded(one)
            rank = (
                recorded.unlike(exact),
                one.key.context != key.context,
                recorded.aside != exact.aside,
                self._served.get(one, 0),
            )
            if best is None or rank < best[0]:
                best = rank, one
            if rank == _BEST:
                break  # each is read from its file: not thousands of them for a first request
        assert best
        return best[1]

    def _recorded(self, recorded: Recorded) -> Exact:
        """What a recorded request says; read from its file once."""
        if recorded not in self._exact:
            self._exact[recorded] = _NOTHING
            try:
                flow = recorded.flow()
                request = flow.request
                self._exact[recorded] = self._letters.exact(
                    request.method, request.path, client_request(flow)
                )
            except (ValueError, Unreadable):
                pass
        return self._exact[recorded]

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
        if nearest.key.kind != key.kind and paired(method, path) and not key.turn:
            return f"{said} The body of this one is no JSON object with a list of `messages`."
        if nearest.key.kind != key.kind:
            return f"{said} None is of this kind: {key.kind}."
        flow = nearest.flow()
        self._redactor.redact(flow)
        try:
            recorded = client_request(flow)
        except ValueError:
            recorded = flow.request.raw_content or b""
        differs = difference.between(self.library.keys, method, path, recorded, body)
        said = f"{said} Nearest: {nearest.label}. It differs: {differs}. {_REMEDY}"
        return f"{said} {_ANY_RESULT}" if ", tool result: recorded " in differs else said

    def _say(self, asked: Asked) -> None:
        self.asked.append(asked)
        if self._told:
            self._told(asked)
