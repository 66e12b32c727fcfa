"""How large a flow is for those who read it whole: on the thread that carries the traffic, too.

A mitmproxy flow in, bytes out: of its bodies as they come out once decoded, its headers, messages
and what else is kept with it. It decodes no more than it is asked for.
"""

from collections.abc import Iterator
from typing import Any

from mitmproxy import http

from moontap.capture import metadata
from moontap.redact.coded import sniffed
from moontap.wire.encoding import Decoder

_PIECE, _LARGEST_PIECE = 32, 8192  # encoded bytes at a time: of Brotli 400 may be 250 million
_DENSE = 100  # times as large once decoded
_DEEPEST = 40


def size_of(flow: http.HTTPFlow, most: int) -> int:
    """Bytes of a flow. Above `most` it stops counting: more than that says only, too many."""
    size = 0
    for part in _parts(flow, most):
        size += part
        if size > most:
            break
    return size


def _parts(flow: http.HTTPFlow, most: int) -> Iterator[int]:
    for message in (flow.request, flow.response):
        if message is None:
            continue
        for headers in (message.headers, message.trailers):
            if headers is not None:
                yield sum(len(name) + len(value) for name, value in headers.fields)
        yield _decoded(message.raw_content, message.headers.get("content-encoding"), most)
    yield len(flow.request.data.path)
    for sent in flow.websocket.messages if flow.websocket else ():
        yield len(sent.content)
    kept = flow.metadata
    yield _decoded(kept.get(metadata.UPSTREAM_BODY), kept.get(metadata.UPSTREAM_ENCODING), most)
    yield from (_length(value) for key, value in kept.items() if key != metadata.UPSTREAM_BODY)


def _decoded(body: object, encoding: object, most: int) -> int:
    """The more of what it was and what it decodes to."""
    if not isinstance(body, bytes):
        return 0
    names = [name.strip() for name in encoding.split(",")] if isinstance(encoding, str) else []
    plain = body
    for name in reversed(names or [""]):
        known = name.lower() not in ("", "identity") and Decoder.can_decode(name)
        if (coding := name if known else sniffed(plain)) is None:
            continue
        decoder, out, size = Decoder(coding), list[bytes](), 0
        start, piece = 0, _PIECE
        while start < len(plain):
            out.append(decoder.feed(plain[start : start + piece]))
            size += len(out[-1])
            if size > most:
                return size
            start += piece
            dense = len(out[-1]) > _DENSE * piece
            piece = _PIECE if dense else min(2 * piece, _LARGEST_PIECE)
        plain = b"".join(out)
    return max(len(body), len(plain))


def _length(value: Any, depth: int = 0) -> int:
    """Of metadata, about."""
    if isinstance(value, str | bytes):
        return len(value)
    if depth < _DEEPEST and isinstance(value, list | tuple | set | frozenset):
        return sum(1 + _length(one, depth + 1) for one in value)
    if depth < _DEEPEST and isinstance(value, dict):
        return sum(_length(one, depth + 1) for pair in value.items() for one in pair)
    return 8
