"""The lines of `pairs.jsonl`, made from saved flows in the order in which they ended.

mitmproxy flows in, one dict a pair out. It reads what was saved and nothing else, so that
replaying `traffic.flow` gives the same lines.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from mitmproxy import http

from moontap import canonical
from moontap.capture import exchange as exchanges
from moontap.capture.exchange import Exchange
from moontap.conversation import Placed, Tracker
from moontap.identity import session_of, shelf
from moontap.ids import IdMemory
from moontap.lineage import Outcome, Tracked
from moontap.moments import rfc3339
from moontap.origin import Origin
from moontap.wire.history import HistoryReader

VERSION = 1

type Line = dict[str, Any]
"""A line of `pairs.jsonl`, its fields in the documented order."""


@dataclass(frozen=True, slots=True)
class Logged:
    """What one exchange came to. placed: in which conversation it is, which tells what is new in
    it. delivered: the calls of its reply.

    lines: made as they are asked for; a history of megabytes seen for the first time has many.
    """

    exchange: Exchange
    placed: Placed[Origin]
    delivered: tuple[Tracked[Origin], ...]
    lines: Iterator[Line]

    @property
    def session(self) -> str:
        """The session, as the lines name it."""
        return self.placed.label

    @property
    def calls(self) -> int:
        """How many calls the reply holds."""
        return len(self.exchange.calls)

    @property
    def rewritten(self) -> int:
        """How many of them the client got under another id."""
        return sum(call.call.id != call.upstream_id for call in self.exchange.calls)


class PairLog:
    """Turns exchanges into log lines; each pair once.

    result_bytes: results longer than this are cut in the line (the hash is over the whole).
    """

    def __init__(self, result_bytes: int = 65536) -> None:
        self._limit = result_bytes
        self._tracker: Tracker[Origin] = Tracker()
        self._used = IdMemory()
        self._history = HistoryReader()

    def exchange(self, flow: http.HTTPFlow) -> Logged | None:
        """Take in a flow; None where it is not of a paired protocol.

        Raises ValueError where its request cannot be read.
        """
        exchange = exchanges.read(flow, self._history)
        if exchange is None:
            return None
        identity, messages = exchange.identity, exchange.request.messages
        stranger = Origin(exchange.wire.protocol, identity.agent, exchange.request.model)
        delivered = self._delivered(exchange)
        placed = self._tracker.exchange(
            # Where nothing names a session, the histories themselves must tell them apart.
            (exchange.wire.protocol, identity),
            messages,
            delivered,
            stranger,
            session_of(identity, exchange.request),
        )
        lines = map(partial(self._line, here=stranger, flow=flow), placed.outcomes)
        return Logged(exchange, placed, tuple(delivered), lines)

    def close(self) -> Iterator[Line]:
        """The run ends: the lines of the calls that still wait."""
        return map(partial(self._line, here=None, flow=None), self._tracker.close())

    def _delivered(self, exchange: Exchange) -> list[Tracked[Origin]]:
        """The calls of a reply, and whether each one's upstream id was used before."""
        reply, flow = exchange.reply, exchange.flow
        if not reply or not exchange.calls:
            return []
        memory = shelf(exchange.identity, exchange.request)
        used = set(exchange.request.call_ids) | self._used.used(memory)
        tracked = []
        for delivered in exchange.calls:
            call, upstream_id = delivered.call, delivered.upstream_id
            origin = Origin(
                protocol=exchange.wire.protocol,
                agent=exchange.identity.agent,
                model=exchange.request.model,
                upstream_id=upstream_id,
                message_id=reply.message_id,
                choice=call.choice,
                index=call.index,
                request_id=request_id(flow),
                called_at=ended(flow),
                flow=flow.id,
            )
            duplicate = bool(upstream_id) and upstream_id in used
            tracked.append(Tracked(call.id, call.name, call.json, origin, duplicate))
            if upstream_id:
                used.add(upstream_id)
        self._used.add(memory, (d.upstream_id for d in exchange.calls if d.upstream_id))
        return tracked

    def _line(
        self, outcome: Outcome[Origin], here: Origin | None, flow: http.HTTPFlow | None
    ) -> Line:
        """here, flow: the exchange that made it certain; None at the end of the run."""
        call, result = outcome.call, outcome.result
        origin = call.origin if call else here
        assert origin is not None  # an orphan is always found by an exchange
        live = origin.flow is not None
        id_ = call.id if call else result.id if result else None
        # A history tells when it was sent, not when its older results came about.
        answered_at = (flow.request.timestamp_start or None) if flow and result and live else None
        latency = answered_at - origin.called_at if answered_at and origin.called_at else None
        arguments = canonical.parse(call.arguments) if call else None
        value = canonical.parse(result.content) if result and result.content else None
        shown, truncated = _cut(value, self._limit)
        line: Line = {
            "v": VERSION,
            "status": outcome.status.value,
            "protocol": origin.protocol.value,
            "session": outcome.conversation,
            "agent": origin.agent,
            "model": origin.model,
            "tool": (call.name or None) if call else None,
            "id": id_,
            "upstream_id": origin.upstream_id if live else id_,
            "rewritten": live and origin.upstream_id != id_,
            "duplicate": call.duplicate if call else False,
            "arguments": arguments,
            "arguments_sha256": canonical.sha256(arguments) if call else None,
            "result": shown,
            "result_sha256": canonical.sha256(value) if result else None,
            "message_id": origin.message_id,
            "choice": origin.choice,
            "index": origin.index,
            "request_id": origin.request_id,
            "called_at": rfc3339(origin.called_at),
            "answered_at": rfc3339(answered_at),
            "latency_s": round(latency, 3) if latency is not None else None,
            "call_flow": origin.flow,
            "result_flow": flow.id if flow and result else None,
            "source": "live" if live else "history",
        }
        if truncated:
            line["result_truncated"] = True
        return line


def _cut(value: Any, limit: int) -> tuple[Any, bool]:
    """A result with at most `limit` characters of text; what is over is left out."""
    if isinstance(value, str):
        return (value[:limit], True) if len(value) > limit else (value, False)
    if len(canonical.encode(value)) <= limit:
        return value, False
    if not isinstance(value, list):
        return canonical.encode(value).decode("utf-8", "replace")[:limit], True
    kept: list[Any] = []
    for block in value:
        size = len(canonical.encode(block))
        if size > limit:
            text = block.get("text") if isinstance(block, dict) else None
            if isinstance(text, str):
                kept.append({**block, "text": text[:limit]})
            break
        kept.append(block)
        limit -= size
    return kept, True


def request_id(flow: http.HTTPFlow) -> str | None:
    """What the server calls an exchange; None where it says nothing."""
    headers = flow.response.headers if flow.response else {}
    return headers.get("msh-request-id") or headers.get("x-request-id")


def ended(flow: http.HTTPFlow) -> float | None:
    """When the client had the whole reply; where it broke off, when it did."""
    response = flow.response
    if response and response.timestamp_end:
        return response.timestamp_end
    return (flow.error.timestamp or None) if flow.error else None
