"""What a saved flow says: the request as the client sent it, the reply as both sides saw it.

A mitmproxy flow in, the types of `wire` out. Reads the flow alone, so that a live exchange and
the same one loaded from `traffic.flow` mean the same.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

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
    """One request and its reply. reply: its shape; None where there is none. body: of the response
    as the client got it, content encoding undone. streamed: it is an event stream.
    """

    flow: http.HTTPFlow
    wire: Wire
    identity: Identity
    request: Request
    reply: Reply | None
    calls: tuple[DeliveredCall, ...]
    body: bytes = b""
    streamed: bool = False


def read(flow: http.HTTPFlow, history: HistoryReader) -> Exchange | None:
    """Read a flow; None where it is not of a paired protocol.

    Raises ValueError, with the reason, where it should be and cannot be read.
    """
    wire = of_request(flow.request.method, flow.request.path)
    if wire is None:
        return None
    request = history.read(wire, client_request(flow))
    body, streamed = _client_body(flow)
    reply = _read(wire, body, streamed, read_shape) if _has_body(flow) else None
    calls: tuple[DeliveredCall, ...] = ()
    if reply:
        ids = upstream_ids(upstream_reply(wire, flow.response, flow.metadata) or reply, reply)
        calls = tuple(map(DeliveredCall, reply.calls, ids))
    identity = identify(flow.request.headers, request.session)
    return Exchange(flow, wire, identity, request, reply, calls, body, streamed)


def client_request(flow: http.HTTPFlow, kept: Mapping[str, Any] | None = None) -> bytes:
    """The request body as the client sent it, content encoding undone. kept: the flow's metadata,
    settled, where it may come from anywhere. Raises ValueError."""
    body = flow.request.get_content(strict=True)
    if body is None:
        raise ValueError("the request body is not there")
    kept = flow.metadata if kept is None else kept
    for name in (metadata.REMINDED, metadata.HEALED):  # what was done last is undone first
        if edits := kept.get(name):
            body = unheal(body, edits)
    return body


def read_reply(wire: Wire, flow: http.HTTPFlow) -> Reply | None:
    """The reply as the client got it; None without one that holds anything."""
    return _read(wire, *_client_body(flow), read_shape) if _has_body(flow) else None


def _client_body(flow: http.HTTPFlow) -> tuple[bytes, bool]:
    """The response body as the client got it, decoded, and whether it is an event stream."""
    response = flow.response
    if response is None:
        return b"", False
    coding = response.headers.get("content-encoding")
    return _decoded(response, response.raw_content or b"", coding)


def _has_body(flow: http.HTTPFlow) -> bool:
    return flow.response is not None and bool(flow.response.raw_content)


def _decoded(response: http.Response, raw: bytes, coding: str | None) -> tuple[bytes, bool]:
    body = encoding.decode_prefix(raw, coding)
    return body, looks_streamed(response, body)


def upstream_reply(
    wire: Wire, response: http.Response | None, kept: Mapping[str, Any]
) -> Reply | None:
    """What upstream sent, its ids alone; None where the client got just that. kept: metadata."""
    body = kept.get(metadata.UPSTREAM_BODY)
    if response is None or not body:
        return None
    coding = kept.get(metadata.UPSTREAM_ENCODING)
    return _read(wire, *_decoded(response, body, coding), read_ids)


def upstream_ids(sent: Reply, reply: Reply) -> list[str | None]:
    """The ids of a reply's calls as the server sent them, matched by where each call stands.

    sent: what the server sent; of a reply that is still coming it may hold more.
    """
    known = dict(zip(_places(sent), (call.id for call in sent.calls), strict=True))
    places = zip(_places(reply), reply.calls, strict=True)
    return [known.get(place, call.id) for place, call in places]


def _places(reply: Reply) -> Iterator[tuple[int, int, int]]:
    """Of each call: choice, index, and which it is of those there. Indexes begin again where a
    stream does."""
    seen: Counter[tuple[int, int]] = Counter()
    for call in reply.calls:
        at = call.choice, call.index
        yield *at, seen[at]
        seen[at] += 1


def _read(wire: Wire, body: bytes, streamed: bool, stream: Callable[[Wire, bytes], Reply]) -> Reply:
    return stream(wire, body) if streamed else wire.reader().whole(body)


def looks_streamed(response: http.Response, body: bytes) -> bool:
    """Whether a body is an event stream: by its look, and by its type where that says nothing."""
    blanks = _BLANKS.match(body)
    start = blanks.end() if blanks else 0
    if body.startswith(b"{", start):
        return False
    kind = response.headers.get("content-type", "")
    return "event-stream" in kind or body.startswith(_FIELDS, start)
