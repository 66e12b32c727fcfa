"""The flow list: comments, marks and labels on mitmproxy's flows, as the run is recorded.

Hears on the thread that records what an exchange came to; writes on mitmproxy's own thread. Only
`comment`, `marked` and metadata of a flow change; what a person wrote there stays.
"""

import logging
import time
from asyncio import AbstractEventLoop, TimerHandle
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from mitmproxy import hooks, http
from mitmproxy.master import Master

from moontap.capture import metadata
from moontap.capture.pairlog import Line, Logged
from moontap.findings.types import Finding
from moontap.looking import heard
from moontap.looking.comment import comment_of, mark_of
from moontap.looking.facts import Facts, FindingFact
from moontap.looking.labels import UNDER_WAY, answers_of, findings_of, labels_of

logger = logging.getLogger(__name__)

_NOT_WRITTEN = "moontap: the flow list could not be brought up to date"

PAUSE = 0.2
"""Seconds at least from one update of the list to the next."""

SOON = 0.05
"""Seconds from a change to its update, within which the other changes of the moment are heard."""

TOLD, TURN = 50, 0.1
"""Flows that a command's update has at most, and seconds that its updates take before the traffic
has its turn: in mitmweb 5,000 at once held it up for eight seconds."""

SHARE = 20
"""The list is given a twentieth of the time at most: a pause lasts so many times what was done
before it."""


@dataclass(slots=True)
class _Row:
    """What is known of a flow. metadata, response, is_replay: the flow's own when it became known;
    after a revert it has others. copies: flows that a person has made of it, and that share what
    is known."""

    facts: Facts
    metadata: dict[str, Any]
    response: http.Response | None
    is_replay: str | None
    copies: WeakSet[http.HTTPFlow] = field(default_factory=WeakSet)


class Board:
    """An `Observer`. Flows are held by those who show them, not here.

    A person's comment or mark is whatever moontap has not set last; it stays for good, and so does
    the empty one where a person has taken ours away.
    """

    def __init__(self) -> None:
        self._master: Master | None = None
        self._notes = True
        self._closed = False
        self._rows: WeakKeyDictionary[http.HTTPFlow, _Row] = WeakKeyDictionary()
        self._created: WeakValueDictionary[float, http.HTTPFlow] = WeakValueDictionary()
        self._flows: WeakValueDictionary[str, http.HTTPFlow] = WeakValueDictionary()
        # The same on the thread that records: of a flow that is gone nothing needs to be heard.
        self._recorded: WeakValueDictionary[str, http.HTTPFlow] = WeakValueDictionary()
        # From the thread that records to mitmproxy's, which is asked to look once, not each time.
        self._heard: deque[Callable[[], http.HTTPFlow | None]] = deque()
        self._called = False
        # Of which something was heard; written at the list's own pace: the results of thousands of
        # calls come line by line.
        self._unwritten: dict[str, http.HTTPFlow] = {}
        self._changed: dict[str, http.HTTPFlow] = {}
        self._timer: TimerHandle | None = None
        self._next = 0.0
        self._heeded: Any = None  # the view whose signals come here

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
        for flow in self._listed():
            self._added(flow)
        self._write(list(self._rows))

    @property
    def loop(self) -> AbstractEventLoop | None:
        """mitmproxy's."""
        return self._master.event_loop if self._master else None

    @property
    def view(self) -> Any:
        """The list that a person sees, in mitmproxy and mitmweb; None in mitmdump."""
        view = self._master.addons.get("view") if self._master else None
        if view is not None and view is not self._heeded and not self._closed:
            self._heeded = view
            view.sig_view_add.connect(self._added)
            view.sig_view_update.connect(self._updated)
        return view

    # on the thread that records

    def exchange(self, logged: Logged, number: int, flow: http.HTTPFlow) -> None:
        """An exchange has ended. `settle` follows, and need not be called."""
        if self._closed:
            return
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
            fact = heard.found(finding)
            self._hear(partial(self._find, finding.flow, finding.exchange, fact))

    def _hear(self, what: Callable[[], http.HTTPFlow | None]) -> None:
        if self._closed:
            return
        self._heard.append(what)
        if self._called or not self.loop:
            return
        self._called = True
        try:
            self.loop.call_soon_threadsafe(self._drain)
        except RuntimeError:  # the loop is closed: mitmproxy has ended
            self._called = False

    # on mitmproxy's thread

    def settle(self, flow: http.HTTPFlow | None = None) -> None:
        """Write what has been heard onto the flows. flow: the one that ends just now, which alone
        cannot wait: mitmproxy's list will hear of it next, and need not be told."""
        self._drain()
        if flow is None:
            self._write_heard()
            return
        row = self._rows.get(flow)
        if row and row.facts.number is None:  # of its end nothing was heard: it could not be read
            self.forget(flow)
        elif row:
            self._write([flow])
        self._changed.pop(flow.id, None)

    def close(self) -> None:
        """The run ends. What is still said of it (each call that waits is unanswered) is for the
        log: where the script is only loaded anew, the agent goes on."""
        self._drain()
        self._closed = True
        self._heard.clear()
        for flow in [flow for flow, row in self._rows.items() if row.facts.number is None]:
            self.forget(flow)
        self._write_heard()
        if self._timer:
            self._timer.cancel()
        self._publish()
        if self._heeded is not None:
            self._heeded.sig_view_add.disconnect(self._added)
            self._heeded.sig_view_update.disconnect(self._updated)

    def facts(self, flow: http.HTTPFlow) -> Facts | None:
        """What is known of an exchange; None where it was not seen to flow or to be loaded."""
        self._drain()
        self._updated(flow)
        row = self._rows.get(flow)
        return row.facts if row else None

    def follow(self, flow: http.HTTPFlow, facts: Facts) -> None:
        """What has come of an exchange so far. `publish` shows it."""
        self._take(flow, facts)
        self._write([flow])
        self._changed[flow.id] = flow

    def forget(self, flow: http.HTTPFlow) -> None:
        """A flow begins anew, or nothing is known of it after all: take off it what was set."""
        self._drain()
        self._rows.pop(flow, None)
        self._flows.pop(flow.id, None)
        self._unwritten.pop(flow.id, None)
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
            self._tick()
        elif self._timer is None and not self._closed:
            self._timer = loop.call_at(self._next, self._tick)

    def tell(self, flows: Sequence[http.HTTPFlow]) -> None:
        """Let the list show what a person's command has changed: the first of it now, the rest in
        turns with the traffic."""
        master, at, begun = self._master, 0, time.perf_counter()
        while master and at < len(flows) and not (at and time.perf_counter() - begun > TURN):
            master.addons.trigger(hooks.UpdateHook(flows[at : at + TOLD]))
            at += TOLD
        if master and at < len(flows):
            took = time.perf_counter() - begun
            master.event_loop.call_later(took, self.tell, flows[at:])

    def look_at(self, flow: http.HTTPFlow) -> None:
        """A person looks at a flow. In mitmweb, which does not say what is selected in the browser,
        it becomes `@focus`."""
        view = self.view
        if view and hasattr(self._master, "web_url") and flow in view:
            view.focus.flow = flow

    # what people do to flows of the list

    def _added(self, flow: Any) -> None:
        """A flow of the list that nobody has seen to flow may be a copy that a person has made; it
        has what the other had on it. What that is stays true of it, but for what is under way."""
        if flow.live or flow in self._rows or metadata.LABELS not in flow.metadata:
            return
        other = self._created.get(flow.timestamp_created)  # a copy has the same
        row = self._rows.get(other) if other is not None else None
        if row is None:
            if UNDER_WAY.search(str(flow.metadata[metadata.LABELS])):
                metadata.strip(flow)
                self._show(flow)
            elif not self._notes:
                self._note(flow, Facts())
                self._show(flow)
            return
        facts = row.facts
        if facts.number is None:
            facts = replace(facts, asked=False, coming=False, streaming=False, unfinished=True)
        else:
            row.copies.add(flow)
        self._rows[flow] = self._row(flow, facts)
        self._write([flow])

    def _updated(self, flow: Any) -> None:
        row = self._rows.get(flow)
        if row and self._restored(flow, row):
            self._write([flow])
            self._show(flow)

    def _restored(self, flow: http.HTTPFlow, row: _Row) -> bool:
        """Whether a person has reverted the flow. That brings back what stood there when they first
        changed something: in the middle of a stream, perhaps, with another response, which nothing
        that is still to come runs through. What flowed, and what is ours, is not theirs to revert.
        """
        if flow.metadata is row.metadata:
            return False
        if flow.is_replay != row.is_replay:  # back to an exchange before this one
            del self._rows[flow]
            return False
        with metadata.NOTING:
            old, new = metadata.noted(flow.metadata), metadata.noted(row.metadata)
            flow.comment = new[0] if flow.comment == old[0] else flow.comment
            flow.marked = new[1] if flow.marked == old[1] else flow.marked
            flow.metadata = row.metadata
        if row.response and not (flow.response and flow.response.timestamp_end):
            flow.response = row.response
        return True

    def _listed(self) -> list[Any]:
        if not (self._master and self.view):
            return []
        return list(self._master.commands.call("view.flows.resolve", "@all"))

    # what was heard, and what is written

    def _drain(self) -> None:
        self._called = False
        while self._heard and not self._closed:
            try:
                flow = self._heard.popleft()()
            except Exception:  # a list that lacks something is better than none
                logger.debug(_NOT_WRITTEN, exc_info=True)
                continue
            if flow is not None:
                self._unwritten[flow.id] = flow
        if self._unwritten:
            self._wait()

    def _take(self, flow: http.HTTPFlow, facts: Facts) -> http.HTTPFlow:
        self._rows[flow] = self._row(flow, facts)
        self._flows[flow.id] = self._created[flow.timestamp_created] = flow
        return flow

    def _row(self, flow: http.HTTPFlow, facts: Facts) -> _Row:
        if row := self._rows.get(flow):
            self._restored(flow, row)
        return _Row(facts, flow.metadata, flow.response, flow.is_replay)

    def _answer(self, flow_id: str, line: Line) -> http.HTTPFlow | None:
        flow, facts = self._find_flow(flow_id)
        return flow if facts and heard.answer(facts, line) else None

    def _bring(self, flow_id: str, line: Line) -> http.HTTPFlow | None:
        flow, facts = self._find_flow(flow_id)
        if facts is None or facts.number is None:
            return None
        facts.orphans.append(line)
        return flow

    def _find(self, flow_id: str, number: int, finding: FindingFact) -> http.HTTPFlow | None:
        flow, facts = self._find_flow(flow_id)
        if facts is None or facts.number != number:  # of the exchange before it was played again
            return None
        facts.findings.append(finding)
        return flow

    def _find_flow(self, flow_id: str) -> tuple[http.HTTPFlow | None, Facts | None]:
        flow = self._flows.get(flow_id)
        row = self._rows.get(flow) if flow is not None else None
        return flow, row.facts if row else None

    def _write_heard(self) -> None:
        flows = list(self._unwritten.values())
        self._unwritten.clear()
        self._write(flows)

    def _write(self, flows: Iterable[http.HTTPFlow]) -> None:
        """Put on the flows what is known of them, and on their copies."""
        for flow in flows:
            self._unwritten.pop(flow.id, None)
            row = self._rows.get(flow)
            if row is None:
                continue
            same = [copy for copy in row.copies if self._shares(copy, row.facts)]
            for one in (flow, *same):
                try:
                    self._write_one(one, row.facts)
                except Exception:  # what it is may be anything; the others are shown
                    logger.debug(_NOT_WRITTEN, exc_info=True)

    def _shares(self, copy: http.HTTPFlow, facts: Facts) -> bool:
        row = self._rows.get(copy)
        return row is not None and row.facts is facts

    def _write_one(self, flow: http.HTTPFlow, facts: Facts) -> None:
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
        comment, mark = (comment_of(facts), mark_of(facts)) if self._notes else ("", "")
        with metadata.NOTING:
            last_comment, last_mark = metadata.noted(flow.metadata)
            if flow.comment == last_comment:
                flow.comment = last_comment = comment
            if flow.marked == last_mark:
                flow.marked = last_mark = mark
            if self._notes or last_comment or last_mark:
                flow.metadata[metadata.NOTED] = [[last_comment, last_mark]]
            else:
                flow.metadata.pop(metadata.NOTED, None)

    def _show(self, flow: http.HTTPFlow) -> None:
        if self.view:
            self._changed[flow.id] = flow
            self._wait()
        else:
            self._changed.clear()

    def _wait(self) -> None:
        if not self._timer and not self._closed and self.loop:
            self._timer = self.loop.call_at(max(self._next, self.loop.time() + SOON), self._tick)

    def _tick(self) -> None:
        self._timer = None
        loop, begun = self.loop, time.perf_counter()
        if loop is None:
            return
        self._write_heard()
        if self._timer:  # what was written is shown at once
            self._timer.cancel()
            self._timer = None
        self._publish()
        took = time.perf_counter() - begun
        self._next = loop.time() + max(PAUSE, SHARE * took)

    def _publish(self) -> None:
        flows = list(self._changed.values())
        self._changed.clear()
        if flows and self._master and self.loop and self.view:
            self._master.addons.trigger(hooks.UpdateHook(flows))


def _visible(flow: http.HTTPFlow) -> tuple[Any, ...]:
    shown = (metadata.LABELS, metadata.FINDINGS, metadata.ANSWERS, metadata.NEW)
    return flow.comment, flow.marked, *map(flow.metadata.get, shown)
