"""How large a flow is: what it decodes to counts, and no more is decoded than is asked for."""

from __future__ import annotations

import gzip
import zlib
from typing import Any

import brotli  # type: ignore[import-untyped]
import pytest
from mitmproxy import http
from mitmproxy.test import tflow
from mitmproxy.websocket import WebSocketMessage

from moontap.capture import metadata
from moontap.looking.sizes import size_of

LONG = b"x" * 1_000_000


def flow_of(
    body: bytes = b"", encoding: str = "", kept: dict[Any, Any] | None = None
) -> http.HTTPFlow:
    flow = tflow.tflow(resp=True)
    assert flow.response
    flow.response.raw_content = body
    flow.response.headers["content-encoding"] = encoding
    flow.metadata = kept or {}
    return flow


SMALL = size_of(flow_of(), 1_000)


@pytest.mark.parametrize(
    ("flow", "size"),
    [
        (flow_of(), 0),
        (flow_of(LONG), 1_000_000),
        (flow_of(gzip.compress(LONG)), 1_000_000),
        (flow_of(gzip.compress(LONG), "gzip"), 1_000_000),
        (flow_of(zlib.compress(LONG), "deflate"), 1_000_000),
        (flow_of(brotli.compress(LONG), "br"), 1_000_000),
        (flow_of(brotli.compress(gzip.compress(LONG)), "gzip, br"), 1_000_000),
        (flow_of(b"no gzip", "gzip"), 7),
        (flow_of(b"abc", "no encoding"), 3),
        (flow_of(kept={metadata.UPSTREAM_BODY: LONG}), 1_000_000),
        (
            flow_of(
                kept={
                    metadata.UPSTREAM_BODY: gzip.compress(LONG),
                    metadata.UPSTREAM_ENCODING: "gzip",
                }
            ),
            1_000_000,
        ),
        (flow_of(kept={"other": ["x" * 500, {"y": b"z" * 499}]}), 1_000),
        (flow_of(kept={"other": {1: object()}}), 16),
    ],
)
def test_sizes(flow: http.HTTPFlow, size: int) -> None:
    assert size <= size_of(flow, 2_000_000) - SMALL <= size + 200


def test_messages_of_a_websocket_count() -> None:
    flow = tflow.twebsocketflow()
    assert flow.websocket
    flow.websocket.messages = [WebSocketMessage(1, True, LONG)] * 3
    assert 3_000_000 < size_of(flow, 4_000_000) < 3_001_000


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (gzip.compress(b"x" * 30_000_000), "gzip"),
        (brotli.compress(b"x" * 30_000_000, quality=3), "br"),
        (brotli.compress(gzip.compress(b"x" * 30_000_000)), "gzip, br"),
    ],
)
def test_no_more_is_decoded_than_is_asked_for(body: bytes, encoding: str) -> None:
    assert 1_000_000 < size_of(flow_of(body, encoding), 1_000_000) < 25_000_000


def test_deep_metadata() -> None:
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    assert size_of(flow_of(kept={"other": deep}), 10_000) < 10_000
