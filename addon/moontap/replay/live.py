"""A live request as a capture would hold it: its secrets masked, its content encoding undone.

A served request in, the same as a mitmproxy request with a readable body out. The request itself
is never kept.
"""

from mitmproxy import http
from mitmproxy.connection import Client, Server

from moontap.redact.flow import Redactor
from moontap.serving.app import Request


def plain(request: Request) -> tuple[str, bytes]:
    """Its path and its body, content encoding undone."""
    made = _made(request)
    return made.path, _body(made)


def masked(request: Request, redactor: Redactor) -> tuple[str, bytes]:
    """The same without its secrets."""
    flow = http.HTTPFlow(
        Client(peername=("127.0.0.1", 0), sockname=("127.0.0.1", 0)), Server(address=None)
    )
    flow.request = _made(request)
    redactor.redact(flow)
    return flow.request.path, _body(flow.request)


def _made(request: Request) -> http.Request:
    return http.Request(
        host="127.0.0.1",
        port=0,
        method=request.method.encode("latin-1"),
        scheme=b"http",
        authority=b"",
        path=request.path.encode("latin-1"),
        http_version=b"HTTP/1.1",
        headers=http.Headers(request.headers),
        content=request.body,
        trailers=None,
        timestamp_start=0,
        timestamp_end=0,
    )


def _body(request: http.Request) -> bytes:
    try:
        return request.get_content(strict=True) or b""
    except ValueError:
        return request.raw_content or b""
