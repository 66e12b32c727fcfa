"""The guard's hands: what it decides, done to mitmproxy's flows.

A flow in; the flow reminded, or answered. What was done stands in its metadata, so that the
client's own request can be had again. It never connects to anything.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mitmproxy import http

from moontap.capture import metadata
from moontap.capture.exchange import client_request, read_reply
from moontap.capture.recorder import Recorder
from moontap.capture.turns import retry_count
from moontap.guard import refusal
from moontap.guard.guard import Asked, Guard
from moontap.guard.insert import insert
from moontap.guard.types import Guarding, Refusal, Reminder
from moontap.identity import identify
from moontap.kept import Edits
from moontap.rewrite import Edit
from moontap.rules import Rules
from moontap.wire.history import HistoryReader
from moontap.wire.protocol import Wire, of_request

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done to a request. body: the new one, or that of the answer. edits: how to get
    the client's own body back, where it is the former."""

    decision: Reminder | Refusal
    body: bytes
    edits: Sequence[Edit] = ()


class Gate:
    """The guard of one run.

    `ask`, `undone`, `heard` and `release` belong on the thread that records, in the order of the
    exchanges; `take` on mitmproxy's own.
    """

    def __init__(self, rules: Rules, recorder: Recorder, commands: Callable[[], bool]) -> None:
        """commands: whether the person can type mitmproxy's."""
        self._recorder = recorder
        self._guard = Guard(rules, recorder.mask, commands)
        self._history = HistoryReader()

    def ask(self, flow: http.HTTPFlow, wire: Wire, guarding: Guarding) -> Step | None:
        """What is to be done to a request. Raises ValueError where it cannot be read, or has no
        place for a reminder: the next one gets that. A step that is not taken must be `undone`."""
        body = client_request(flow)
        request = self._history.read(wire, body)
        asked = Asked(
            flow.id,
            wire.protocol,
            identify(flow.request.headers, request.session),
            request,
            flow.request.timestamp_start or None,
            len(body),
            retry_count(flow),
        )
        decision = self._guard.ask(asked, guarding)
        if decision is None:
            return None
        if isinstance(decision, Refusal):
            return Step(decision, refusal.body(wire.protocol, decision))
        goes_out = flow.request.get_content(strict=True) or b""  # healed, perhaps
        try:
            return Step(decision, *insert(wire.protocol, goes_out, decision.text))
        except ValueError:
            self._guard.undone(flow.id)
            raise

    def undone(self, flow: http.HTTPFlow) -> None:
        """What `ask` said was not done: it came too late."""
        self._guard.undone(flow.id)

    def take(self, flow: http.HTTPFlow, step: Step) -> None:
        """Do it."""
        decision = step.decision
        if decision.count is not None:
            flow.metadata[metadata.REPEATS] = decision.count
        if isinstance(decision, Reminder):
            flow.request.content = step.body
            flow.metadata[metadata.REMINDED] = Edits(list(edit) for edit in step.edits)
            if not decision.again:
                said = f"reminded the model: {decision.said}"
                self._recorder.say(f"{flow.id} reminded", "moontap: %s", said)
            return
        flow.metadata[metadata.BLOCKED] = decision.code
        flow.response = http.Response.make(refusal.STATUS, step.body, refusal.HEADERS)
        self._recorder.say(decision.message, "moontap: %s: %s", decision.code, decision.message)

    def heard(self, flow: http.HTTPFlow) -> None:
        """An exchange has ended. Never raises."""
        try:
            wire = of_request(flow.request.method, flow.request.path)
            reply = None
            if wire and metadata.BLOCKED not in flow.metadata:
                reply = read_reply(wire, flow)
            status = flow.response.status_code if flow.response else 0
            cut = bool(flow.metadata.get(metadata.INCOMPLETE) or flow.error)
            self._guard.heard(flow.id, reply, status, cut=cut)
        except Exception as error:  # whatever it is, the traffic goes on
            self._recorder.say("heard", "moontap: the guard could not read a reply: %r", error)

    def release(self, flows: Sequence[str]) -> int:
        """Let what was stopped go on: the conversations and sessions of these flows, or all; how
        many there were."""
        released = self._guard.release(flows)
        logger.info("moontap: the guard lets %d conversations or sessions go on", released)
        return released
