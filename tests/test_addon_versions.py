"""HTTP/1.0, HTTP/1.1 and HTTP/2 on either side of the tap, rewriting on."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from mitmproxy import proxy

from moontap.standin import TLSFiles
from tests.conftest import Start
from tests.proxying import HOST, Tap, pairs, saved_flows
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
from tests.test_addon_streams import NEW_ID
from tests.upstreams import JSON, SSE, App, Reply, Scripted, asgi_upstream, raw_upstream

pytestmark = pytest.mark.usefixtures("_no_errors")

EVENTS = messages_events("Bash_0")
MIXES = [
    # client, upstream, mode, connection strategy. Lazy mode takes what the client offers before
    # upstream is asked. A client without TLS has upstream offered nothing: see `OfferHTTP2`.
    ("1.1", "1.1", "regular", "eager"),
    ("2", "1.1", "regular", "lazy"),
    ("2", "2", "regular", "eager"),
    ("1.1", "2", "reverse", "eager"),
]
KINDS = [
    (MESSAGES, messages_request(), SSE, EVENTS),
    (MESSAGES, messages_request(stream=False), JSON, [messages_whole("Bash_0")]),
    (CHAT, chat_request(), SSE, chat_events("Bash:0")),
    (CHAT, chat_request(stream=False), JSON, [chat_whole("Bash:0")]),
]


class OfferHTTP2:
    """mitmproxy itself keeps an HTTP/1 client's upstream on HTTP/1 where it can."""

    def server_connect(self, data: proxy.server_hooks.ServerConnectionHookData) -> None:
        data.server.alpn_offers = [b"h2"]


class OnlyHTTP2(ssl.SSLContext):
    """httpx always offers HTTP/1.1 too, and first."""

    def set_alpn_protocols(self, alpn_protocols: object) -> None:
        super().set_alpn_protocols(["h2"])


def http2_trust(p: Tap) -> ssl.SSLContext:
    context = OnlyHTTP2(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(p.ca)
    return context


def blank(body: bytes) -> bytes:
    """The body with each new id replaced by the readable part of it."""
    return NEW_ID.sub(rb"\1", body).replace(b"Bash:0", b"Bash_0")


@pytest.mark.parametrize(("client", "upstream", "mode", "strategy"), MIXES)
@pytest.mark.parametrize(
    ("path", "request_", "kind", "pieces"),
    KINDS,
    ids=["messages-streamed", "messages-whole", "chat-streamed", "chat-whole"],
)
async def test_every_mix_of_versions(
    start: Start,
    upstream_tls: TLSFiles,
    client: str,
    upstream: str,
    mode: str,
    strategy: str,
    path: str,
    request_: bytes,
    kind: str,
    pieces: list[bytes],
) -> None:
    """Each piece is sent only when the client has the one before, on every mix."""
    taken = asyncio.Event()

    async def gated() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece
            if kind == SSE:
                await taken.wait()
                taken.clear()

    app = App(gated, kind)
    opts: dict[str, Any] = {"connection_strategy": strategy, "moontap_rewrite": "all"}
    if mode == "reverse":
        opts |= {"mode": f"reverse:https://{HOST}", "addons": (OfferHTTP2(),)}
    alpn = {"1.1": ["http/1.1"], "2": ["h2", "http/1.1"]}[upstream]
    async with (
        asgi_upstream(app, upstream_tls, *alpn) as port,
        start(ports={HOST: port}, **opts) as p,
    ):
        base = p.url if mode == "reverse" else f"https://{HOST}"
        proxied: dict[str, Any] = (
            {"trust_env": False}
            if mode == "reverse"
            else {"proxy": p.url, "verify": http2_trust(p) if client == "2" else p.trust}
        )
        got = []
        async with (
            httpx.AsyncClient(http2=client == "2", timeout=20, **proxied) as http,
            http.stream("POST", base + path, content=request_) as reply,
        ):
            async for piece in reply.aiter_raw():
                got.append(piece)
                taken.set()
    assert reply.http_version == f"HTTP/{client}"
    assert [seen.version for seen in app.seen] == [upstream]
    body = b"".join(got)
    assert len(NEW_ID.findall(body)) == 1
    assert blank(body) == blank(b"".join(pieces))
    assert [seen.body for seen in app.seen] == [request_]
    (line,) = pairs(p.captures)
    assert (line["rewritten"], line["status"]) == (True, "unanswered")
    (flow,) = saved_flows(p.captures)
    assert flow.response
    assert (flow.request.http_version, flow.response.http_version) == (
        f"HTTP/{client}" + ".0" * (client == "2"),
        f"HTTP/{upstream}" + ".0" * (upstream == "2"),
    )


async def test_trailers_reach_the_client(start: Start, upstream_tls: TLSFiles) -> None:
    """They are HTTP/2's alone here: mitmproxy 12.3 has none on HTTP/1."""
    app = App(EVENTS, trailers=((b"x-sum", b"7"),))
    async with (
        asgi_upstream(app, upstream_tls, "h2") as port,
        start(ports={HOST: port}, moontap_rewrite="all") as p,
        httpx.AsyncClient(http2=True, proxy=p.url, verify=http2_trust(p)) as client,
    ):
        reply = await client.post(
            f"https://{HOST}{MESSAGES}", content=messages_request(), headers={"te": "trailers"}
        )
    assert NEW_ID.sub(rb"\1", reply.content) == b"".join(EVENTS)
    (flow,) = saved_flows(p.captures)
    assert flow.response
    assert flow.response.trailers
    assert flow.response.trailers["x-sum"] == "7"


@pytest.mark.parametrize("framing", ["length", "close"])
@pytest.mark.parametrize("rewrite", ["off", "all"])
async def test_an_http_1_0_client(
    start: Start, upstream_tls: TLSFiles, rewrite: str, framing: str
) -> None:
    """It knows no chunks: where the length may change, the end of the connection is the end."""
    upstream = Scripted(Reply(EVENTS, framing=framing))
    body = messages_request()
    async with (
        raw_upstream(upstream, upstream_tls) as port,
        start(ports={HOST: port}, mode=f"reverse:https://{HOST}", moontap_rewrite=rewrite) as p,
    ):
        address = urlsplit(p.url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        head = f"POST {MESSAGES} HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        got_head, _, got = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
    assert NEW_ID.sub(rb"\1", got) == b"".join(EVENTS)
    assert len(NEW_ID.findall(got)) == (rewrite == "all")
    assert b"chunked" not in got_head.lower()
