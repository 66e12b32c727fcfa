"""Replies through the tap, byte for byte: any framing, any encoding, at once."""

import asyncio
import re
import sys
import zlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import brotli  # type: ignore[import-untyped]
import httpx
import pytest

from moontap.capture import metadata
from moontap.rewrite import MAX_HELD
from moontap.standin import TLSFiles
from tests.conftest import Start
from tests.fixed import gzip_fixed
from tests.proxying import HOST, Streamed, pairs, saved_flows
from tests.samples import (
    CHAT,
    MESSAGES,
    chat_events,
    chat_request,
    chat_whole,
    messages_events,
    messages_request,
    messages_whole,
)
from tests.upstreams import JSON, SSE, Reply, Scripted, raw_upstream

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

pytestmark = pytest.mark.usefixtures("_no_errors")

REVERSE = f"reverse:https://{HOST}"
NEW_ID = re.compile(rb"(Bash[_:]0)_t[a-z2-7]{10}")

EVENTS = messages_events("Bash_0")
STREAM = b"".join(EVENTS)
CHAT_STREAM = b"".join(chat_events("Bash:0"))
ODD_STREAM = (
    b": hello\r\n\r\n"
    b'data:{"type":"message_start","message":{"id":"msg_a1","content":[]}}\r\n\r\n'
    b"event: odd\rid: 7\rretry: 10\rdata: {tool_use\r\r"
    b"\n\n\n"
    b'event: content_block_start\n: a comment\ndata: {"type":"content_block_start","index":0,\n'
    b'data:  "content_block":{"type" : "tool_use","id":"Bash_0","name":"Bash","input":{}}}\n\n'
    b'data: {"type":"content_block_delta","index":0,'
    b'"delta":{"type":"input_json_delta","partial_json":"{\\"a\\": \\"Bash_0\\"}"}}\n\n'
    b"data\n\nevent: ping\ndata: {}\n\n"
    b'data: {"type":"message_stop"}'  # and no newline
)
ODD_CHAT = (
    b'data: {"id":"cmpl-x1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,'
    b'"function":{"arguments":"{","name":"Bash"},"id":"Bash:0","x":[1, 2]}]}}]}\n \n'
    b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":null,'
    b'"function":{"arguments":"}"}}]}}]}\r\n\t\r\n'
    b"data: [DONE]\n\n"
)


def blank(body: bytes) -> bytes:
    """The body with each new id taken back to the upstream id it was made from."""
    return NEW_ID.sub(rb"Bash_0", body)


def one_by_one(body: bytes) -> list[bytes]:
    return [body[at : at + 1] for at in range(len(body))]


type Case = tuple[str, str, Reply]
"""A name, the path that is asked, the reply."""

WITH_A_CALL: list[Case] = [
    ("plain", MESSAGES, Reply(STREAM)),
    ("by event", MESSAGES, Reply(EVENTS)),
    ("byte by byte", MESSAGES, Reply(one_by_one(STREAM))),
    ("odd", MESSAGES, Reply(ODD_STREAM)),
    ("odd, byte by byte", MESSAGES, Reply(one_by_one(ODD_STREAM))),
    ("content-length", MESSAGES, Reply(EVENTS, framing="length")),
    ("until the connection ends", MESSAGES, Reply(EVENTS, framing="close")),
    ("no content-type", MESSAGES, Reply(EVENTS, kind=None)),
    ("a wrong content-type", MESSAGES, Reply(EVENTS, kind="text/plain; charset=utf-8")),
    ("called JSON", MESSAGES, Reply(EVENTS, kind=JSON)),
    ("JSON instead", MESSAGES, Reply(messages_whole("Bash_0"), kind=JSON)),
    ("JSON, no content-type", MESSAGES, Reply(messages_whole("Bash_0"), kind=None)),
    ("JSON called a stream", MESSAGES, Reply(messages_whole("Bash_0"))),
    ("JSON with a length", MESSAGES, Reply(messages_whole("Bash_0"), JSON, framing="length")),
    ("JSON after blanks", MESSAGES, Reply([b" \n", b" \n", messages_whole("Bash_0")], JSON)),
    ("chat", CHAT, Reply(chat_events("Bash:0"))),
    ("chat, byte by byte", CHAT, Reply(one_by_one(CHAT_STREAM))),
    ("chat, odd", CHAT, Reply(ODD_CHAT)),
    ("chat, odd, byte by byte", CHAT, Reply(one_by_one(ODD_CHAT))),
    ("chat, JSON", CHAT, Reply(chat_whole("Bash:0"), JSON, framing="length")),
]
WITHOUT_ONE: list[Case] = [
    ("empty, with a length", MESSAGES, Reply(b"", JSON, framing="length")),
    ("empty, chunked", MESSAGES, Reply([])),
    ("204", MESSAGES, Reply(b"", None, "204 No Content", framing="none")),
    ("204 with a length", MESSAGES, Reply(b"", None, "204 No Content", framing="length")),
    ("400", MESSAGES, Reply(messages_whole("Bash_0"), JSON, "400 Bad Request", "length")),
    ("429, chunked", CHAT, Reply(b'{"error":{}}', JSON, "429 Too Many Requests")),
    ("504, HTML", CHAT, Reply(b"<html>", "text/html", "504 Gateway Time-out", "length")),
    ("not JSON at all", MESSAGES, Reply(b"\x00\xff tool_use", JSON, framing="length")),
    ("nested", MESSAGES, Reply(b'{"content":' + b"[" * 100_000, JSON, framing="length")),
    ("events of garbage", MESSAGES, Reply(b'data: {"tool_use"\n\ndata: \xff\xfetool_use\n\n')),
    ("an error event", MESSAGES, Reply([*EVENTS[:2], b'event: error\ndata: {"error":{}}\n\n'])),
]


@dataclass(frozen=True)
class Got:
    """A reply at the client; body: with its content encoding still on."""

    status: str
    headers: httpx.Headers
    body: bytes


async def post(client: httpx.AsyncClient, url: str, body: bytes) -> Got:
    async with client.stream("POST", url, content=body) as reply:
        pieces = [piece async for piece in reply.aiter_raw()]
        status = f"{reply.status_code} {reply.reason_phrase}"
        return Got(status, reply.headers, b"".join(pieces))


async def through(
    start: Start, tls: TLSFiles, table: list[Case], history: bool = False, **opts: Any
) -> list[Got]:
    """Every reply of a table through one tap in reverse mode.

    history: the requests carry the id of the calls already.
    """
    requests = {
        MESSAGES: messages_request([("Bash_0", "ls", "x")] if history else []),
        CHAT: chat_request([("Bash:0", "ls", "x")] if history else []),
    }
    async with (
        raw_upstream(Scripted(*(reply for _, _, reply in table)), tls) as port,
        start(ports={HOST: port}, mode=REVERSE, **opts) as p,
        httpx.AsyncClient(trust_env=False, timeout=20) as client,
    ):
        return [await post(client, p.url + path, requests[path]) for _, path, _ in table]


def body_of(reply: Reply) -> bytes:
    assert not callable(reply.body)
    return reply.body if isinstance(reply.body, bytes) else b"".join(reply.body)


async def test_off_changes_nothing(start: Start, upstream_tls: TLSFiles) -> None:
    table = WITH_A_CALL + WITHOUT_ONE
    bare = await through(start, upstream_tls, table, bare=True, addons=(Streamed(),))
    tapped = await through(start, upstream_tls, table, moontap_rewrite="off")
    for (name, _, reply), expected, got in zip(table, bare, tapped, strict=True):
        assert got.body == body_of(reply), name
        assert got.status == expected.status, name
        assert got.headers.raw == expected.headers.raw, name


@pytest.mark.parametrize(
    ("rewrite", "history"), [("all", False), ("all", True), ("duplicates", True)]
)
async def test_rewriting_changes_ids_alone(
    start: Start, upstream_tls: TLSFiles, rewrite: str, history: bool
) -> None:
    replies = await through(
        start, upstream_tls, WITH_A_CALL, history=history, moontap_rewrite=rewrite
    )
    for (name, _, reply), got in zip(WITH_A_CALL, replies, strict=True):
        assert len(NEW_ID.findall(got.body)) == 1, name
        assert blank(got.body) == body_of(reply).replace(b"Bash:0", b"Bash_0"), name
        assert got.headers.get("content-type") == reply.kind, name


async def test_a_first_use_keeps_its_id_in_duplicates(start: Start, upstream_tls: TLSFiles) -> None:
    table = WITH_A_CALL[:1]
    (got,) = await through(start, upstream_tls, table, moontap_rewrite="duplicates")
    assert got.body == STREAM


async def test_rewriting_changes_nothing_where_no_call_is(
    start: Start, upstream_tls: TLSFiles, caplog: pytest.LogCaptureFixture
) -> None:
    replies = await through(start, upstream_tls, WITHOUT_ONE, moontap_rewrite="all")
    for (name, _, reply), got in zip(WITHOUT_ONE, replies, strict=True):
        assert got.body == body_of(reply), name
        assert got.status == reply.status, name
        if got.status != "200 OK":  # what is not rewritten keeps its framing, too
            assert ("content-length" in got.headers) == (reply.framing == "length"), name
    said = [r.getMessage() for r in caplog.records if r.name.startswith("moontap")]
    passed = [line for line in said if "passed through unchanged" in line]
    assert len(passed) == 1  # four replies were unreadable: said once


@pytest.mark.parametrize("rewrite", ["off", "duplicates", "all"])
async def test_an_event_leaves_before_the_next_one_comes(
    start: Start, upstream_tls: TLSFiles, rewrite: str
) -> None:
    """Upstream sends an event only after the client has the one before it."""
    taken = asyncio.Event()

    async def gated() -> AsyncIterator[bytes]:
        for event in EVENTS:
            yield event
            await taken.wait()
            taken.clear()

    async with (
        raw_upstream(Scripted(Reply(gated)), upstream_tls) as port,
        start(ports={HOST: port}, mode=REVERSE, moontap_rewrite=rewrite) as p,
        httpx.AsyncClient(trust_env=False, timeout=20) as client,
        client.stream("POST", p.url + MESSAGES, content=messages_request()) as reply,
    ):
        got = []
        async for piece in reply.aiter_raw():
            got.append(piece)
            taken.set()
    assert [blank(piece) for piece in got] == EVENTS


async def test_a_delta_leaves_before_it_is_complete(start: Start, upstream_tls: TLSFiles) -> None:
    """No id can stand in it: its first line says so, and a large one is not waited for."""
    taken = asyncio.Event()
    delta = EVENTS[3]
    cut = delta.index(b"\n") + 5

    async def gated() -> AsyncIterator[bytes]:
        yield b"".join(EVENTS[:3]) + delta[:cut]
        await taken.wait()
        yield delta[cut:] + b"".join(EVENTS[4:])

    async with (
        raw_upstream(Scripted(Reply(gated)), upstream_tls) as port,
        start(ports={HOST: port}, mode=REVERSE, moontap_rewrite="all") as p,
        httpx.AsyncClient(trust_env=False, timeout=20) as client,
        client.stream("POST", p.url + MESSAGES, content=messages_request()) as reply,
    ):
        got = b""
        async for piece in reply.aiter_raw():
            got += piece
            if got.endswith(delta[:cut]):
                taken.set()
    assert blank(got) == STREAM


def gzipped(body: bytes) -> bytes:
    return gzip_fixed(body)


def raw_deflated(body: bytes) -> bytes:
    press = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return press.compress(body) + press.flush()


ENCODINGS: list[tuple[str, str | None, Callable[[bytes], bytes]]] = [
    ("gzip", "gzip", gzipped),
    ("x-gzip", "x-gzip", gzipped),
    ("gzip without a header", None, gzipped),
    ("gzip, two members", "gzip", lambda body: gzipped(body[:99]) + gzipped(body[99:])),
    ("br", "br", brotli.compress),
    ("zstd", "zstd", zstd.compress),
    ("deflate", "deflate", zlib.compress),
    ("raw deflate", "Deflate", raw_deflated),
    ("identity", "identity", lambda body: body),
]


def encoded(pieces: Callable[[bytes], list[bytes]]) -> list[Case]:
    return [
        (
            f"{name}, {kind}",
            MESSAGES,
            Reply(
                pieces(press(body)), kind, headers=(f"Content-Encoding: {coding}",) * bool(coding)
            ),
        )
        for name, coding, press in ENCODINGS
        for kind, body in ((SSE, STREAM), (JSON, messages_whole("Bash_0")))
    ]


@pytest.mark.parametrize("pieces", [one_by_one, lambda body: [body]], ids=["bytes", "whole"])
async def test_encoded_replies_are_decoded_to_be_rewritten(
    start: Start, upstream_tls: TLSFiles, tmp_path: Path, pieces: Callable[[bytes], list[bytes]]
) -> None:
    table = encoded(pieces)
    replies = await through(start, upstream_tls, table, moontap_rewrite="all")
    for (name, _, reply), got in zip(table, replies, strict=True):
        plain = STREAM if reply.kind == SSE else messages_whole("Bash_0")
        assert blank(got.body) == plain, name
        assert len(NEW_ID.findall(got.body)) == 1, name
        assert "content-encoding" not in got.headers or "identity" in name, name
    flows = saved_flows(tmp_path / "captures")
    assert [flow.metadata[metadata.UPSTREAM_BODY] for flow in flows] == [
        body_of(reply) for _, _, reply in table
    ]
    lines = pairs(tmp_path / "captures")
    assert {line["upstream_id"] for line in lines} == {"Bash_0"}
    assert len({line["id"] for line in lines}) == 1  # the same reply again: the same id


async def test_encoded_replies_are_left_alone_in_off_and_read_all_the_same(
    start: Start, upstream_tls: TLSFiles, tmp_path: Path
) -> None:
    table = encoded(one_by_one)
    bare = await through(start, upstream_tls, table, bare=True, addons=(Streamed(),))
    replies = await through(start, upstream_tls, table, moontap_rewrite="off")
    for (name, _, reply), expected, got in zip(table, bare, replies, strict=True):
        assert got.body == body_of(reply), name
        assert got.headers.raw == expected.headers.raw, name
    calls = [flow.metadata[metadata.CALLS] for flow in saved_flows(tmp_path / "captures")]
    assert calls == [1] * len(table)


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("zopfli", b"\x01\x02" + STREAM),
        ("gzip, br", gzipped(brotli.compress(STREAM))),
        ("gzip", STREAM),  # it is not what it says
        ("zstd", b"\x28\xb5\x2f\xfd" + b"\xff" * 40),
    ],
)
async def test_encodings_that_cannot_be_read_pass_as_they_are(
    start: Start,
    upstream_tls: TLSFiles,
    caplog: pytest.LogCaptureFixture,
    coding: str,
    body: bytes,
) -> None:
    reply = Reply(body, headers=(f"Content-Encoding: {coding}",))
    replies = await through(start, upstream_tls, [("", MESSAGES, reply)] * 2, moontap_rewrite="all")
    assert [blank(got.body) for got in replies] == [body, body]
    said = [r for r in caplog.records if "passed through unchanged" in r.getMessage()]
    assert len(said) == 1


async def test_an_event_longer_than_is_held_passes_unread(
    start: Start, upstream_tls: TLSFiles, tmp_path: Path
) -> None:
    huge = b'data: {"tool_use": "' + b"x" * (MAX_HELD + 100_000) + b'"}\n\n'
    table: list[Case] = [("", MESSAGES, Reply([huge, STREAM]))]
    (got,) = await through(start, upstream_tls, table, moontap_rewrite="all")
    assert blank(got.body) == huge + STREAM
    assert len(NEW_ID.findall(got.body)) == 1


async def test_what_is_saved(start: Start, upstream_tls: TLSFiles, tmp_path: Path) -> None:
    """`traffic.flow` holds both sides of a reply, its chunks, and scalars to filter on."""
    table: list[Case] = [
        ("", MESSAGES, Reply(EVENTS)),
        ("", MESSAGES, Reply(EVENTS[-1:])),
        ("", CHAT, Reply(chat_whole("Bash:0", "Bash:0"), JSON, framing="length")),
    ]
    got = await through(start, upstream_tls, table, moontap_rewrite="all")
    flows = saved_flows(tmp_path / "captures")
    for (_, _, reply), client, flow in zip(table, got, flows, strict=True):
        assert flow.response
        upstream = body_of(reply)
        assert flow.response.raw_content == client.body
        assert flow.metadata.get(metadata.UPSTREAM_BODY, client.body) == upstream
        chunks = flow.metadata[metadata.CHUNKS]
        assert sum(size for size, _ in chunks) == len(upstream)
        assert [at for _, at in chunks] == sorted(at for _, at in chunks)
        assert metadata.INCOMPLETE not in flow.metadata
    assert [flow.metadata[metadata.CALLS] for flow in flows] == [1, 0, 2]
    assert [flow.metadata[metadata.REWRITTEN] for flow in flows] == [1, 0, 2]
    assert metadata.UPSTREAM_BODY not in flows[1].metadata
    assert all(flow.metadata[metadata.SESSION] for flow in flows)
