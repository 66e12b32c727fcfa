"""What goes on the wire for one answer: status, headers, chunks, silences and whether it breaks.

In: a reply or an error, and the faults in force. Out: a `Plan`, which the server only plays. It
never opens, sends or waits.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from moontap.serving.play import Play
from moontap.standin import chat, coding, messages
from moontap.standin.events import Event, frame
from moontap.standin.reply import Faults, Reply
from moontap.standin.script import FaultKind, Pacing
from moontap.standin.seen import Protocol, Seen

JSON = "application/json"
SSE = "text/event-stream"

_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """One answer. `waits[i]` are milliseconds of silence before chunk i; `cut` breaks off after
    the last chunk instead of ending the response."""

    status: int = 200
    content_type: str = JSON
    chunks: tuple[bytes, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    waits: dict[int, float] = field(default_factory=dict)
    cut: bool = False
    streamed: bool = False

    def play(self) -> Play:
        """The same for the server, with the headers that go with it."""
        headers = [("content-type", self.content_type), *self.headers]
        if self.streamed:
            headers.append(("cache-control", "no-cache"))
        elif not self.cut:
            headers.append(("content-length", str(sum(map(len, self.chunks)))))
        return Play(
            status=self.status,
            headers=tuple(
                (name.encode("latin-1"), text.encode("latin-1")) for name, text in headers
            ),
            chunks=self.chunks,
            wait=self.waits.get(0, 0),
            waits={at: ms for at, ms in self.waits.items() if at},
            cut=self.cut,
        )


def reply_plan(seen: Seen, reply: Reply, faults: Faults, pacing: Pacing) -> Plan:
    """The plan for a reply of the model, as the request and the faults will have it."""
    if FaultKind.STATUS in faults:
        return _status_plan(seen.protocol, faults)
    streamed = seen.stream and FaultKind.WHOLE not in faults
    if FaultKind.EMPTY in faults:
        chunks: list[bytes] = []
    elif streamed:
        chunks = frame(_events(seen, reply, faults), seen.protocol, faults)
    else:
        shape = messages if seen.protocol is Protocol.MESSAGES else chat
        chunks = [_dump(shape.whole(reply))]
    waits = _waits(len(chunks), faults, pacing)
    headers: tuple[tuple[str, str], ...] = ()
    if FaultKind.ENCODING in faults and chunks:
        fault = faults[FaultKind.ENCODING]
        chunks = coding.encode(chunks, fault.encoding)
        if fault.header:
            headers = (("content-encoding", fault.encoding),)
    cut = FaultKind.CUT in faults and FaultKind.EMPTY not in faults
    if cut:
        chunks = _cut(chunks, faults, streamed)
    return Plan(
        content_type=SSE if streamed else JSON,
        chunks=tuple(chunks),
        headers=headers,
        waits=waits,
        cut=cut,
        streamed=streamed,
    )


def json_plan(value: Any, status: int = 200) -> Plan:
    """A JSON answer outside the script."""
    return Plan(status=status, chunks=(_dump(value),))


def error_plan(protocol: Protocol, status: int, message: str) -> Plan:
    """An error in the protocol's own form; 401 has OpenAI's form on both, as on Moonshot."""
    kind = _ERROR_TYPES.get(status, "api_error")
    shape = messages if protocol is Protocol.MESSAGES and status != 401 else chat
    return json_plan(shape.error(message, kind), status)


def _status_plan(protocol: Protocol, faults: Faults) -> Plan:
    fault = faults[FaultKind.STATUS]
    if fault.body is None:
        plan = error_plan(protocol, fault.status, fault.message)
        body, content_type = plan.chunks[0], plan.content_type
    else:
        body = fault.body.encode()
        first = fault.body.lstrip()[:1]
        content_type = {"{": JSON, "<": "text/html"}.get(first, "text/plain; charset=utf-8")
    return Plan(
        status=fault.status, content_type=fault.content_type or content_type, chunks=(body,)
    )


def _events(seen: Seen, reply: Reply, faults: Faults) -> list[Event]:
    fault = faults.get(FaultKind.ERROR_EVENT)
    if seen.protocol is Protocol.MESSAGES:
        events = messages.events(reply, faults)
        error = messages.error_event(fault.message) if fault else None
    else:
        events = chat.events(reply, faults, usage_on_top=seen.usage_on_top)
        error = chat.error_event(fault.message) if fault else None
    if fault and error:
        return [*events[: fault.after_events], error]
    return events


def _waits(count: int, faults: Faults, pacing: Pacing) -> dict[int, float]:
    waits = {0: pacing.first_byte_ms}
    if pacing.event_ms:
        waits |= dict.fromkeys(range(1, count), pacing.event_ms)
    if FaultKind.STALL in faults:
        at = min(faults[FaultKind.STALL].after_events, max(count - 1, 0))
        waits[at] = waits.get(at, 0) + faults[FaultKind.STALL].ms
    return {at: ms for at, ms in waits.items() if ms}


def _cut(chunks: Sequence[bytes], faults: Faults, streamed: bool) -> list[bytes]:
    """What is sent before the break. A whole reply without `after_bytes` breaks in its middle."""
    fault = faults[FaultKind.CUT]
    left = fault.after_bytes
    if left is None and not streamed:
        left = len(b"".join(chunks)) // 2
    if left is None:
        return list(chunks[: fault.after_events])
    out: list[bytes] = []
    for chunk in chunks:
        if left <= 0:
            break
        out.append(chunk[:left])
        left -= len(chunk)
    return out


def _dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
