"""What a saved flow says: the request as the client sent it, the reply as both sides saw it.

A mitmproxy flow in, the types of `wire` out. Reads the flow alone, so that a live exchange and
the same one loaded from `traffic.flow` mean the same.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from mitmproxy import http

from moontap.capture import metadata
from moontap.identity import Identity, identify
from moontap.rewrite import unheal
from moontap.wire import encoding
from moontap.wire.history import HistoryReader
from moontap.wire.protocol import Wire, of_request, read_ids, read_shape
from moontap.wire.types import Reply, ReplyCall, Request

_BLANKS = re.compile(rb"[ \t\r\n]*")
_FIELDS = (b"data", b"event", b"id:", b"retry:", b":", b"\xef\xbb\xbf")


@dataclass(frozen=True, slots=True)
class DeliveredCall:
    """A call of a reply, as the client got it and as upstream sent it."""

    call: ReplyCall
    upstream_id: str | None


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its reply. reply: its calls and message id; None where there is none."""

    flow: http.HTTPFlow
    wire: Wire
    identity: Identity
    request: Request
    reply: Reply | None
    calls: tuple[DeliveredCall, ...]


def read(flow: http.HTTPFlow, history: HistoryReader) -> Exchange | None:
    """Read a flow; None where it is not of a paired protocol.

    Raises ValueError, with the reason, where it should be and cannot be read.
    """
    wire = of_request(flow.request.method, flow.request.path)
    if wire is None:
        return None
    request = history.read(wire, client_request(flow))
    reply = read_reply(wire, flow)
    calls: tuple[DeliveredCall, ...] = ()
    if reply:
        upstream = _upstream_reply(wire, flow) or reply
        ids = {(call.choice, call.index, n): call.id for n, call in enumerate(upstream.calls)}
        calls = tuple(
            DeliveredCall(call, ids.get((call.choice, call.index, n), call.id))
            for n, call in enumerate(reply.calls)
        )
    identity = identify(flow.request.headers, request.session)
    return Exchange(flow, wire, identity, request, reply, calls)


def client_request(flow: http.HTTPFlow) -> bytes:
    """The request body as the client sent it, content encoding undone. Raises ValueError."""
    body = flow.request.get_content(strict=True)
    if body is None:
        raise ValueError("the request body is not there")
    for name in (metadata.REMINDED, metadata.HEALED):  # what was done last is undone first
        if edits := flow.metadata.get(name):
            body = unheal(body, edits)
    return body


def read_reply(wire: Wire, flow: http.HTTPFlow) -> Reply | None:
    """The reply as the client got it; None without one that holds anything."""
    response = flow.response
    if response is None or not response.raw_content:
        return None
    coding = response.headers.get("content-encoding")
    return _read(wire, response, response.raw_content, coding, read_shape)


def _upstream_reply(wire: Wire, flow: http.HTTPFlow) -> Reply | None:
    body = flow.metadata.get(metadata.UPSTREAM_BODY)
    if flow.response is None or not body:
        return None
    coding = flow.metadata.get(metadata.UPSTREAM_ENCODING)
    return _read(wire, flow.response, body, coding, read_ids)


def _read(
    wire: Wire,
    response: http.Response,
    raw: bytes,
    coding: str | None,
    stream: Callable[[Wire, bytes], Reply],
) -> Reply:
    body = encoding.decode_prefix(raw, coding)
    if looks_streamed(response, body):
        return stream(wire, body)
    return wire.reader().whole(body)


def looks_streamed(response: http.Response, body: bytes) -> bool:
    """Whether a body is an event stream: by its look, and by its type where that says nothing."""
    blanks = _BLANKS.match(body)
    start = blanks.end() if blanks else 0
    if body.startswith(b"{", start):
        return False
    kind = response.headers.get("content-type", "")
    return "event-stream" in kind or body.startswith(_FIELDS, start)
