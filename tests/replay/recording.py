"""Recorded exchanges by hand: flows as mitmproxy would have saved them, and files of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from mitmproxy import http, io
from mitmproxy.test import tflow

from moontap.capture import metadata
from moontap.replay.library import Library, load
from moontap.rules import Rules, load_rules
from tests.samples import MESSAGES

_started = itertools.count(1_790_000_000)


def flow(
    request: bytes | None,
    chunks: Sequence[bytes] | None = (b"{}",),
    *,
    path: str = MESSAGES,
    method: str = "POST",
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    asked: Mapping[str, str] | None = None,
    arrivals: Sequence[float] | None = None,
    wait: float = 0,
    cut: bool = False,
    started: float | None = None,
) -> http.HTTPFlow:
    """An exchange. chunks: None where no response came. arrivals: in milliseconds. wait: the same,
    from the request to the headers. asked: the request's headers."""
    begun = next(_started) if started is None else started
    made = tflow.tflow(
        req=http.Request(
            *("api.moonshot.cn", 443, method.encode(), b"https", b"", path.encode(), b"HTTP/1.1"),
            headers=http.Headers([(b"Host", b"api.moonshot.cn")]),
            content=request,
            trailers=None,
            timestamp_start=begun,
            timestamp_end=begun,
        )
    )
    for name, value in (asked or {}).items():
        made.request.headers[name] = value
    made.id = f"flow-{begun}"
    if chunks is None:
        return made
    made.response = http.Response(
        b"HTTP/1.1",
        status,
        b"OK",
        headers=http.Headers([(b"Content-Type", b"text/event-stream")]),
        content=b"".join(chunks),
        trailers=None,
        timestamp_start=begun + wait / 1000,
        timestamp_end=begun + 1,
    )
    for name, value in (headers or {}).items():
        made.response.headers[name] = value
    times = arrivals or [0.0] * len(chunks)
    made.metadata[metadata.CHUNKS] = [
        [len(chunk), ms] for chunk, ms in zip(chunks, times, strict=True)
    ]
    if cut:
        made.metadata[metadata.INCOMPLETE] = True
    return made


def save(path: Path, flows: Iterable[http.HTTPFlow]) -> Path:
    """A flow file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        writer = io.FlowWriter(file)
        for one in flows:
            writer.add(one)
    return path


def library(folder: Path, *flows: http.HTTPFlow, rules: str = "") -> Library:
    """What is loaded of them. rules: YAML."""
    return load([save(folder / "session.flow", flows)], rules_of(folder, rules))


def rules_of(folder: Path, text: str) -> Rules:
    path = folder / "rules.yaml"
    path.write_text(text, encoding="utf-8")
    return load_rules(str(path))
