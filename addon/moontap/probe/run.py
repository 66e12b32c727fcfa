"""A probe: every case through a tap in this process, the traffic kept without secrets.

A `Plan` in; blocks of text as they come, a flow file and an `Outcome` out. Rewriting is off: what
is seen is what the server sent.
"""

import asyncio
import json
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from mitmproxy import http

from moontap import __version__
from moontap.capture.reader import TRAFFIC, FlowFile
from moontap.care.outfile import write_flows
from moontap.care.scrub import scrubber_for
from moontap.probe import report
from moontap.probe.ask import Answer, post
from moontap.probe.dialect import Body, Dialect
from moontap.probe.refusal import Refusal, stalled, unreachable
from moontap.probe.rounds import Round, play
from moontap.probe.verdict import ROUNDS, Verdict
from moontap.redact.flow import Redactor
from moontap.tapping.tap import Settings, tapping
from moontap.tapping.upstream import Upstream

SECONDS = 120.0
"""For one reply, thinking and all."""

_LEAST = 2  # rounds of a case whose verdict is `reused`
_MASK = "***"


@dataclass(frozen=True, slots=True)
class Plan:
    """What to ask. key: goes to the upstream and nowhere else. behind_proxy: the environment names
    a forward proxy, which is not used. confdir: as in the tap's settings."""

    upstream: Upstream
    dialects: tuple[Dialect, ...]
    model: str
    key: str = field(repr=False)
    seconds: float = SECONDS
    behind_proxy: bool = False
    confdir: str | None = None

    @property
    def cases(self) -> list[tuple[Dialect, bool]]:
        """Each protocol, streamed and whole."""
        return [(dialect, streamed) for dialect in self.dialects for streamed in (True, False)]

    @property
    def requests(self) -> tuple[int, int]:
        """The fewest and the most requests that it takes, refusals aside."""
        return len(self.cases) * _LEAST, len(self.cases) * ROUNDS


@dataclass(slots=True)
class Outcome:
    """What came of it. asked: requests made. answered: how many of them had an answer."""

    verdicts: list[Verdict] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    asked: int = 0
    answered: int = 0
    saved: bool = False

    @property
    def code(self) -> int:
        """1: an id came back. 2: nothing of the kind was seen, but not all could be asked."""
        if any(one.wanting for one in self.verdicts):
            return 1
        return 2 if self.refusals else 0


async def probe(plan: Plan, out: Path, show: Callable[[str], None]) -> Outcome:
    """Ask everything, and keep the traffic in `out`, a file that must not be there yet.

    show: is given each line when it is known, in another thread. Raises TapError, and
    `care.outfile.Refused` where `out` cannot be written.
    """
    outcome, failures = Outcome(), _Failures()
    with tempfile.TemporaryDirectory(prefix="moontap-probe-") as folder:
        settings = Settings(plan.upstream, "off", directory=folder, confdir=plan.confdir)
        async with tapping(settings, failures) as tap:
            asker = _Asker(plan, tap.url, failures, outcome)
            asking = asyncio.ensure_future(asyncio.to_thread(_ask_all, plan, asker, outcome, show))
            try:
                await asyncio.shield(asking)
            except asyncio.CancelledError:  # Ctrl-C: a thread in the middle of a read must end, too
                asker.stop()
                await asyncio.wait({asking})
                raise
        capture = tap.addon.recorder.path
        if capture and outcome.answered:
            _save(capture / TRAFFIC, out)
            outcome.saved = True
    return outcome


def _ask_all(plan: Plan, asker: "_Asker", outcome: Outcome, show: Callable[[str], None]) -> None:
    for dialect, streamed in plan.cases:
        rounds: list[Round] = []

        def heard(one: Round, rounds: list[Round] = rounds) -> None:
            rounds.append(one)
            show(report.line(one, asker.masked))

        show(report.heading(dialect.name, streamed))
        try:
            found = play(dialect, plan.model, streamed, asker.ask, heard, asker.masked)
        except Refusal as refusal:
            if asker.stopped.is_set():
                return
            reason = str(refusal)
            outcome.refusals.append(reason)
            show(report.not_asked(reason))
            if refusal.final:
                break
            continue
        outcome.verdicts.append(found)
        show(report.judged(found, rounds))
    show(report.ending(outcome.verdicts, len(plan.cases)))


class _Asker:
    """Sends one request after the other through the tap."""

    def __init__(
        self,
        plan: Plan,
        url: str,
        failures: "_Failures",
        outcome: Outcome,
    ) -> None:
        parts = urlsplit(url)
        assert parts.hostname
        assert parts.port
        self._address = (parts.hostname, parts.port)
        self._plan = plan
        self._failures = failures
        self._outcome = outcome
        self._mask = Redactor().mask_text
        self._line: socket.socket | None = None
        self.stopped = threading.Event()

    def stop(self) -> None:
        """From another thread: end the request under way, and ask nothing more."""
        self.stopped.set()
        if line := self._line:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    def _opened(self, line: socket.socket) -> None:
        self._line = line
        if self.stopped.is_set():
            self.stop()

    def ask(self, dialect: Dialect, body: Body) -> Answer:
        """The answer of upstream. Raises Refusal where there was none."""
        plan = self._plan
        if self.stopped.is_set():
            raise Refusal("stopped", final=True)
        self._failures.last = None
        self._outcome.asked += 1
        headers = _headers(dialect, plan.key)
        try:
            answer = post(
                self._address,
                dialect.path(plan.upstream),
                headers,
                json.dumps(body).encode(),
                plan.seconds,
                self._opened,
            )
        except TimeoutError:
            raise stalled(plan.seconds) from None
        except OSError as error:
            raise self._unreachable(str(error)) from None
        # The tap answers 502 itself where it gets no answer.
        if self._failures.last and answer.status == 502:
            raise self._unreachable(self._failures.last)
        self._outcome.answered += 1
        return answer

    def _unreachable(self, reason: str) -> Refusal:
        plan = self._plan
        return unreachable(plan.upstream.origin, reason, plan.behind_proxy, self.masked)

    def masked(self, text: str) -> str:
        """A text without secrets: a server may say back what it was sent."""
        return self._mask(text.replace(self._plan.key, _MASK))


class _Failures:
    """The error of the latest flow that got no response; a mitmproxy addon."""

    def __init__(self) -> None:
        self.last: str | None = None

    def error(self, flow: http.HTTPFlow) -> None:
        if flow.error and flow.response is None:
            self.last = flow.error.msg


def _headers(dialect: Dialect, key: str) -> Mapping[str, str]:
    return {
        "content-type": "application/json",
        "user-agent": f"moontap/{__version__}",
        "authorization": f"Bearer {key}",
        **dialect.headers,
    }


def _save(traffic: Path, out: Path) -> None:
    """Keys were masked on the way to the disk; this takes addresses and accounts out as well."""
    scrubber = scrubber_for(FlowFile(traffic))

    def clean() -> Iterator[http.HTTPFlow]:
        for flow in FlowFile(traffic):
            scrubber.scrub(flow)
            yield flow

    write_flows(out, clean(), force=False)
