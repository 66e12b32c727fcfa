"""How large a flow is for those who read it whole: on the thread that carries the traffic, too.

A mitmproxy flow in, bytes out: of its bodies as they come out once decoded, its headers, messages
and what else is kept with it. It decodes no more than it is asked for.
"""

from collections.abc import Iterator
from typing import Any

from mitmproxy import http

from moontap.capture import metadata
from moontap.redact.coded import up_to

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
    plain = up_to(body, encoding if isinstance(encoding, str) else None, most)
    return max(len(body), len(plain or b""))


def _length(value: Any, depth: int = 0) -> int:
    """Of metadata, about."""
    if isinstance(value, str | bytes):
        return len(value)
    if depth < _DEEPEST and isinstance(value, list | tuple | set | frozenset):
        return sum(1 + _length(one, depth + 1) for one in value)
    if depth < _DEEPEST and isinstance(value, dict):
        return sum(_length(one, depth + 1) for pair in value.items() for one in pair)
    return 8
