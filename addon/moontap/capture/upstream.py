"""What upstream sent, from a saved flow: the answer to serve again, and the flow before the tap.

A mitmproxy flow in, an `Answer` or a flow out. Pure: the saved flow is never changed.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from itertools import accumulate
from math import isfinite

from mitmproxy import http

from moontap.capture import metadata
from moontap.capture.exchange import client_request

HOP_BY_HOP = frozenset(
    (
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    )
)
"""Headers of one connection, in lower case (RFC 9110 section 7.6.1, RFC 9113 section 8.2.2)."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One response as upstream sent it.

    headers: without those of the connection; names and values as they came. chunks: the body as
    it arrived, content encoding on. arrivals: milliseconds from the headers on, one a chunk.
    wait: milliseconds from the request's end to the headers. cut: it broke off after the last.
    """

    status: int
    reason: str
    headers: tuple[tuple[bytes, bytes], ...]
    chunks: tuple[bytes, ...]
    arrivals: tuple[float, ...]
    wait: float
    cut: bool

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)


def answer(flow: http.HTTPFlow) -> Answer | None:
    """What upstream answered; None where not even headers came, or where the guard answered."""
    response = flow.response
    if response is None or metadata.BLOCKED in flow.metadata:
        return None
    body, coding = _upstream_body(flow, response)
    headers = [
        (name, value)
        for name, value in response.headers.fields
        if name.decode("latin-1").lower() not in HOP_BY_HOP
    ]
    if coding:
        headers.append((b"content-encoding", coding.encode("latin-1")))
    sizes, arrivals = _chunks(flow, len(body))
    length = response.headers.get("content-length")
    if length is not None and length != str(len(body)) and not _cut(flow):
        headers = [(name, value) for name, value in headers if name.lower() != b"content-length"]
    started, ended = response.timestamp_start, flow.request.timestamp_end
    wait = (started - ended) * 1000 if started and ended else 0.0
    return Answer(
        response.status_code,
        response.reason,
        tuple(headers),
        _pieces(body, sizes),
        arrivals,
        max(0.0, wait) if isfinite(wait) else 0.0,
        _cut(flow),
    )


def before_the_tap(flow: http.HTTPFlow) -> http.HTTPFlow:
    """A copy as a bare mitmproxy would have saved it: the client's request, upstream's reply.

    Without any of the tap's metadata, so that the addon reads and rewrites it afresh. Raises
    ValueError where the request body is not there or cannot be decoded.
    """
    bare = copy(flow)
    bare.request = flow.request.copy()
    if metadata.HEALED in flow.metadata or metadata.REMINDED in flow.metadata:
        bare.request.content = client_request(flow)
    answered = flow.response and metadata.BLOCKED not in flow.metadata
    bare.response = flow.response.copy() if flow.response and answered else None
    if bare.response and flow.response:
        body, coding = _upstream_body(flow, flow.response)
        bare.response.raw_content = body
        if coding:
            bare.response.headers["content-encoding"] = coding
    bare.metadata = {
        name: value for name, value in flow.metadata.items() if name not in metadata.ALL
    }
    return bare


def _upstream_body(flow: http.HTTPFlow, response: http.Response) -> tuple[bytes, str | None]:
    """The body, and a content encoding that is not among the response's own headers."""
    body = flow.metadata.get(metadata.UPSTREAM_BODY)
    if body is None:
        return response.raw_content or b"", None
    return body, flow.metadata.get(metadata.UPSTREAM_ENCODING)


def _cut(flow: http.HTTPFlow) -> bool:
    return bool(flow.metadata.get(metadata.INCOMPLETE) or flow.error)


def _chunks(flow: http.HTTPFlow, length: int) -> tuple[list[int], tuple[float, ...]]:
    """Sizes that add up to the length, and arrivals."""
    noted: Sequence[tuple[int, float]] = flow.metadata.get(metadata.CHUNKS) or []
    sizes, arrivals = [size for size, _ in noted], tuple(float(ms) for _, ms in noted)
    total = sum(sizes)
    if not length:
        return [], ()
    if not total:
        return [length], (0.0,)
    if total != length:
        # A body that held a secret is kept decoded, but its chunks were counted as they came.
        sizes = rescaled(sizes, length)
    return sizes, arrivals


def rescaled(sizes: Sequence[int], length: int) -> list[int]:
    """Sizes, whose sum is not 0, for another length: cut at the same parts of the whole."""
    total = sum(sizes)
    marks = [length * end // total for end in accumulate(sizes)]
    return [end - start for start, end in zip([0, *marks], marks, strict=False)]


def _pieces(body: bytes, sizes: Sequence[int]) -> tuple[bytes, ...]:
    pieces, at = [], 0
    for size in sizes:
        pieces.append(body[at : at + size])
        at += size
    return tuple(pieces)
