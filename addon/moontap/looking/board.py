"""The flow list: comments, marks and labels on mitmproxy's flows, as the run is recorded.

Hears on the thread that records what an exchange came to; writes on mitmproxy's own thread. Only
`comment`, `marked` and metadata of a flow change; what a person wrote there stays.
"""

import logging
import time
from asyncio import AbstractEventLoop, TimerHandle
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from mitmproxy import hooks, http
from mitmproxy.master import Master

from moontap.capture import metadata
from moontap.capture.pairlog import Line, Logged
from moontap.findings.types import Finding
from moontap.looking import heard
from moontap.looking.comment import comment_of, mark_of
from moontap.looking.facts import Facts, FindingFact
from moontap.looking.labels import answers_of, findings_of, labels_of

logger = logging.getLogger(__name__)

PAUSE = 0.2
"""Seconds at least from one update of the list to the next."""

SOON = 0.05
"""Seconds from a change to its update, within which the other changes of the moment are heard."""

SHARE = 20
"""The list is given a twentieth of the time at most: a pause lasts so many times what was done
before it."""


class Board:
    """An `Observer`. Flows are held by those who show them, not here.

    A person's comment or mark is one that is neither empty nor what moontap has set last; it stays
    for good. Where a person takes ours away, it stays away until there is something else to say.
    """

    def __init__(self) -> None:
        self._master: Master | None = None
        self._notes = True
        self._closed = False
        self._facts: WeakKeyDictionary[http.HTTPFlow, Facts] = WeakKeyDictionary()
        self._flows: WeakValueDictionary[str, http.HTTPFlow] = WeakValueDictionary()
        # The same on the thread that records: of a flow that is gone nothing needs to be heard.
        self._recorded: WeakValueDictionary[str, http.HTTPFlow] = WeakValueDictionary()
        # From the thread that records to mitmproxy's, which is asked to look once, not each time.
        self._heard: deque[Callable[[], http.HTTPFlow | None]] = deque()
        self._called = False
        self._changed: dict[str, http.HTTPFlow] = {}
        self._timer: TimerHandle | None = None
        self._next = 0.0

    def attach(self, master: Master) -> None:
        """Belong to a mitmproxy."""
        self._master = master

    @property
    def notes(self) -> bool:
        """Whether comments and marks are set. Labels always are."""
        return self._notes

    @notes.setter
    def notes(self, on: bool) -> None:
        if on == self._notes:
            return
        self._notes = on
        for flow in list(self._facts):
            self._write(flow)

    @property
    def loop(self) -> AbstractEventLoop | None:
        """mitmproxy's."""
        return self._master.event_loop if self._master else None

    @property
    def view(self) -> Any:
        """The list that a person sees, in mitmproxy and mitmweb; None in mitmdump."""
        return self._master.addons.get("view") if self._master else None

    # on the thread that records

    def exchange(self, logged: Logged, number: int, flow: http.HTTPFlow) -> None:
        """An exchange has ended. `settle` follows, and need not be called."""
        self._recorded[flow.id] = flow
        self._heard.append(partial(self._take, flow, heard.facts_of(logged, number)))

    def line(self, line: Line) -> None:
        """A pair became certain."""
        call, result = line["call_flow"], line["result_flow"]
        if call in self._recorded:
            self._hear(partial(self._answer, call, heard.kept(line)))
        elif line["status"] == "orphan" and result in self._recorded:
            self._hear(partial(self._bring, result, heard.kept(line)))

    def finding(self, finding: Finding) -> None:
        """Something was found."""
        if finding.flow is not None:
            self._hear(partial(self._find, finding.flow, heard.found(finding)))

    def _hear(self, what: Callable[[], http.HTTPFlow | None]) -> None:
        self._heard.append(what)
        if self._called or self._closed or not self.loop:
            return
        self._called = True
        try:
            self.loop.call_soon_threadsafe(self._drain)
        except RuntimeError:  # the loop is closed: mitmproxy has ended
            self._called = False

    # on mitmproxy's thread

    def settle(self, flow: http.HTTPFlow | None = None) -> None:
        """Write what has been heard onto the flows. flow: the one that ends just now, of which
        mitmproxy's list will hear next, and need not be told."""
        self._drain()
        if flow is None:
            return
        facts = self._facts.get(flow)
        if facts and facts.streaming:  # of its end nothing was heard: it could not be read
            self.forget(flow)
        self._changed.pop(flow.id, None)

    def close(self) -> None:
        """The run ends. What is still said of it (each call that waits is unanswered) is for the
        log: where the script is only loaded anew, the agent goes on."""
        self._drain()
        self._closed = True
        for flow in [flow for flow, facts in self._facts.items() if facts.streaming]:
            self.forget(flow)
        if self._timer:
            self._timer.cancel()
        self._publish()

    def facts(self, flow: http.HTTPFlow) -> Facts | None:
        """What is known of an exchange; None where it was not seen to flow or to be loaded."""
        self._drain()
        return self._facts.get(flow)

    def follow(self, flow: http.HTTPFlow, facts: Facts) -> None:
        """What has come of a stream so far. `publish` shows it."""
        self._take(flow, facts)
        self._write(flow)
        self._changed[flow.id] = flow

    def forget(self, flow: http.HTTPFlow) -> None:
        """A flow begins anew, or nothing is known of it after all: take off it what was set."""
        self._drain()
        self._facts.pop(flow, None)
        self._flows.pop(flow.id, None)
        metadata.strip(flow)
        self._show(flow)

    def publish(self) -> None:
        """Let the list show what has changed, now if it may be, else soon."""
        loop = self.loop
        if not (self._changed and loop and self.view):
            self._changed.clear()
        elif loop.time() >= self._next:
            if self._timer:
                self._timer.cancel()
            self._publish()
        elif self._timer is None and not self._closed:
            self._timer = loop.call_at(self._next, self._publish)

    def look_at(self, flow: http.HTTPFlow) -> None:
        """A person looks at a flow. In mitmweb, which does not say what is selected in the browser,
        it becomes `@focus`."""
        view = self.view
        if view and hasattr(self._master, "web_url") and flow in view:
            view.focus.flow = flow

    def _drain(self) -> None:
        self._called = False
        touched: dict[str, http.HTTPFlow] = {}
        while self._heard and not self._closed:
            try:
                flow = self._heard.popleft()()
            except Exception:  # a list that lacks something is better than none
                logger.debug(
                    "moontap: the flow list could not be brought up to date", exc_info=True
                )
                continue
            if flow is not None:
                touched[flow.id] = flow
        for flow in touched.values():
            self._write(flow)

    def _take(self, flow: http.HTTPFlow, facts: Facts) -> http.HTTPFlow:
        self._facts[flow] = facts
        self._flows[flow.id] = flow
        return flow

    def _answer(self, flow_id: str, line: Line) -> http.HTTPFlow | None:
        flow, facts = self._find_flow(flow_id)
        return flow if facts and heard.answer(facts, line) else None

    def _bring(self, flow_id: str, line: Line) -> http.HTTPFlow | None:
        flow, facts = self._find_flow(flow_id)
        if facts:
            facts.orphans.append(line)
        return flow

    def _find(self, flow_id: str, finding: FindingFact) -> http.HTTPFlow | None:
        flow, facts = self._find_flow(flow_id)
        if facts:
            facts.findings.append(finding)
        return flow

    def _find_flow(self, flow_id: str) -> tuple[http.HTTPFlow | None, Facts | None]:
        flow = self._flows.get(flow_id)
        return flow, self._facts.get(flow) if flow is not None else None

    def _write(self, flow: http.HTTPFlow) -> None:
        """Put on the flow what is known of it."""
        facts = self._facts[flow]
        before = _visible(flow)
        self._note(flow, facts)
        for name, value in (
            (metadata.LABELS, labels_of(facts)),
            (metadata.FINDINGS, findings_of(facts)),
            (metadata.ANSWERS, answers_of(facts)),
            (metadata.NEW, facts.new),
        ):
            if value or value == 0:
                flow.metadata[name] = value
            else:
                flow.metadata.pop(name, None)
        if before != _visible(flow):
            self._show(flow)

    def _note(self, flow: http.HTTPFlow, facts: Facts) -> None:
        last_comment, last_mark = metadata.noted(flow.metadata)
        comment, mark = (comment_of(facts), mark_of(facts)) if self._notes else ("", "")
        if _is_ours(flow.comment, last_comment, comment):
            flow.comment = comment
        if _is_ours(flow.marked, last_mark, mark):
            flow.marked = mark
        if self._notes:
            flow.metadata[metadata.NOTED] = [[comment, mark]]
        else:
            flow.metadata.pop(metadata.NOTED, None)

    def _show(self, flow: http.HTTPFlow) -> None:
        self._changed[flow.id] = flow
        if not self._timer and not self._closed and self.loop and self.view:
            self._timer = self.loop.call_at(max(self._next, self.loop.time() + SOON), self._publish)
        elif not self.view:
            self._changed.clear()

    def _publish(self) -> None:
        self._timer = None
        flows = list(self._changed.values())
        self._changed.clear()
        master, loop = self._master, self.loop
        if not (flows and master and loop and self.view):
            return
        begun = time.perf_counter()
        master.addons.trigger(hooks.UpdateHook(flows))
        took = time.perf_counter() - begun
        self._next = loop.time() + max(PAUSE, SHARE * took)


def _visible(flow: http.HTTPFlow) -> tuple[Any, ...]:
    shown = (metadata.LABELS, metadata.FINDINGS, metadata.ANSWERS, metadata.NEW)
    return flow.comment, flow.marked, *map(flow.metadata.get, shown)


def _is_ours(shown: str, last: str, new: str) -> bool:
    """Whether what is shown may be replaced. Empty where we had said something: a person took it
    away, and does not want to read the same again."""
    if shown == last:
        return True
    return not shown and new != last
