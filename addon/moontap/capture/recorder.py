"""Finished exchanges to disk: a copy, secrets out, the flow first, then its pairs and findings.

mitmproxy flows in, files and counts out. The live flow is read, never changed, save for the short
scalars that people filter by. It never raises.
"""

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from copy import copy, deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mitmproxy import http

from moontap.capture import metadata
from moontap.capture.folder import CaptureFolder
from moontap.capture.observer import Observer
from moontap.capture.pairlog import Line, Logged, PairLog
from moontap.capture.turns import turn_of
from moontap.findings import lines as finding_lines
from moontap.findings.judge import Judge
from moontap.findings.types import Finding, Severity
from moontap.lineage import Status
from moontap.redact.flow import Redactor
from moontap.rules import Rules

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Counts:
    """What a run came to. duplicates: calls with an id that their conversation had before.

    findings: those above info, by code. lost: flows and lines that could not be written; the lines
    of such a flow, which are left out, not among them.
    """

    exchanges: int = 0
    calls: int = 0
    duplicates: int = 0
    rewritten: int = 0
    pairs: int = 0
    unanswered: int = 0
    orphans: int = 0
    healed: int = 0
    incomplete: int = 0
    lost: int = 0
    findings: Counter[str] = field(default_factory=Counter)


class Recorder:
    """Keeps one run.

    root: where its folder goes; None keeps nothing on disk, the counts are kept all the same.
    Not for two threads at once: the order of calls is the order of the log.
    """

    def __init__(
        self, root: Path | None, rules: Rules, describe: Callable[[], Mapping[str, Any]]
    ) -> None:
        self.counts = Counts()
        self.lines: list[Line] | None = None
        """Set to a list to have each log line put there too."""
        self.findings: list[finding_lines.Line] | None = None
        """The same for the lines of findings."""
        self.quiet: frozenset[str] = frozenset()
        """Codes of findings that are written down and not warned of."""
        self.observer: Observer | None = None
        """Who hears of what is recorded."""
        self._folder = CaptureFolder(root, describe) if root else None
        self._rules = rules
        self._redactor = Redactor(rules)
        self._pairs = PairLog(rules.limits.result_bytes)
        self._judge = Judge(rules)
        self._said: set[str] = set()
        self._unlogged: deque[tuple[int, Logged]] = deque()
        # Flows that are not in `traffic.flow`. No line names one of them: what a line says must be
        # there to be looked at, and to be made from again.
        self._lost: set[str] = set()

    @property
    def path(self) -> Path | None:
        """The run's folder, once something was written."""
        return self._folder.path if self._folder else None

    def place(self) -> Path | None:
        """The run's folder, made where there is none yet; None where nothing is kept on disk. On
        any thread. Raises OSError."""
        return self._folder.place() if self._folder else None

    def mask(self, text: str) -> str:
        """A text for a screen, without secrets."""
        return self._redactor.mask_text(text)

    def keep(self, flow: http.HTTPFlow) -> None:
        """Put a finished exchange, or one that broke off, on the disk. `log` makes its lines."""
        try:
            saved = copy_to_save(flow)
            self._redactor.redact(saved)
            self._read(saved, flow)
            if self._folder:
                if not self._folder.write_flow(saved):
                    self._lost.add(saved.id)
                self.counts.lost = self._folder.lost
        except Exception:  # whatever it is, the traffic goes on
            self._lost.add(flow.id)
            self._failed()

    def log(self) -> None:
        """Write the pairs that the exchanges kept so far have completed, and what was found."""
        while self._unlogged:
            number, logged = self._unlogged.popleft()
            self._write(logged.lines)
            self._diagnose(number, logged)

    def close(self) -> None:
        """The run ends: what still waits is unanswered."""
        self.log()
        self._write(self._pairs.close())
        if self._folder:
            self._folder.close()

    def say(self, about: str, message: str, *args: object, exc_info: bool = False) -> None:
        """Warn, once a run for each thing there is to warn about."""
        if about not in self._said:
            self._said.add(about)
            logger.warning("%s", self.mask(message % args), exc_info=exc_info)

    def _read(self, saved: http.HTTPFlow, live: http.HTTPFlow) -> None:
        """Learn what pairs an exchange completes; fills in the scalars on both flows."""
        counts = self.counts
        counts.exchanges += 1
        counts.healed += bool(saved.metadata.get(metadata.HEALED))
        counts.incomplete += bool(saved.metadata.get(metadata.INCOMPLETE))
        try:
            logged = self._pairs.exchange(saved)
        except ValueError as error:
            path = saved.request.path.partition("?")[0]
            self.say("read", "moontap: not read, saved as it is: POST %s: %s", path, error)
            return
        if logged is None:
            return
        counts.calls += logged.calls
        counts.rewritten += logged.rewritten
        scalars = {
            metadata.CALLS: logged.calls,
            metadata.REWRITTEN: logged.rewritten,
            metadata.SESSION: logged.session,
        }
        saved.metadata.update(scalars)
        live.metadata.update(scalars)
        self._unlogged.append((counts.exchanges, logged))
        self._tell(lambda observer: observer.exchange(logged, counts.exchanges, live))

    def _write(self, made: Iterator[Line]) -> None:
        """Take lines as they are made; one that cannot be made does not keep the others back."""
        while True:
            try:
                line = next(made, None)
                if line is None:
                    return
                self._take(line)
            except Exception:  # whatever it is, the traffic goes on
                self._failed()

    def _take(self, line: Line) -> None:
        status = line["status"]
        self._tell(lambda observer: observer.line(line))
        self.counts.duplicates += bool(line["duplicate"])
        self.counts.pairs += status in (Status.OK, Status.ERROR)
        self.counts.unanswered += status == Status.UNANSWERED
        self.counts.orphans += status == Status.ORPHAN
        if line["call_flow"] in self._lost or line["result_flow"] in self._lost:
            return
        if self.lines is not None:
            self.lines.append(line)
        if self._folder:
            self._folder.write_lines("pairs.jsonl", [line])
            self.counts.lost = self._folder.lost

    def _diagnose(self, number: int, logged: Logged) -> None:
        """Write what went wrong in an exchange; warn of it once."""
        if self._judge.idle:
            return
        try:
            for finding in self._judge.look(turn_of(logged, number, self._rules)):
                self._report(finding)
            for code, fault in self._judge.faults.items():
                self.say(f"check {code}", "moontap: the check %s failed: %s", code, fault)
        except Exception:  # whatever it is, the traffic goes on
            self._failed()

    def _report(self, finding: Finding) -> None:
        self._tell(lambda observer: observer.finding(finding))
        if finding.flow not in self._lost:
            line = finding_lines.line(finding)
            if self.findings is not None:
                self.findings.append(line)
            if self._folder:
                self._folder.write_lines("findings.jsonl", [line])
                self.counts.lost = self._folder.lost
        if finding.severity is Severity.INFO:
            return
        self.counts.findings[finding.code] += 1
        if finding.code not in self.quiet:
            about = f"{finding.code} {finding.severity} {finding.conversation}"
            self.say(about, "moontap: %s: %s (%s)", finding.code, finding.message, finding.link)

    def _tell(self, what: Callable[[Observer], None]) -> None:
        """Let who looks on know; a fault of theirs keeps nothing from the disk."""
        if self.observer is None:
            return
        try:
            what(self.observer)
        except Exception:
            self.say("observer", "moontap: the flow list could not be written to", exc_info=True)

    def _failed(self) -> None:
        if self._folder:
            self._folder.lost += 1
            self.counts.lost = self._folder.lost
        self.say("record", "moontap: an exchange could not be recorded", exc_info=True)


def copy_to_save(flow: http.HTTPFlow) -> http.HTTPFlow:
    """A copy with the same id whose messages, error and metadata may be edited.

    Bodies and connections are shared: mitmproxy's own `copy` takes the whole flow apart and builds
    it again, which costs more than all else that is done for a small exchange.
    """
    with metadata.NOTING:
        saved = copy(flow)
        saved.metadata = dict(flow.metadata)
    saved.request = flow.request.copy()
    saved.response = flow.response.copy() if flow.response else None
    saved.error = copy(flow.error)
    metadata.strip(saved)
    if flow.websocket:
        saved.websocket = deepcopy(flow.websocket)
    return saved
