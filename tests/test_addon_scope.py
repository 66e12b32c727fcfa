"""What is tapped and what is left alone; and what of a tapped request may differ upstream."""

import asyncio
import gzip
import json
import ssl
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from moontap.capture import metadata, runfile
from moontap.standin import Standin, TLSFiles, make_tls
from tests.conftest import Start
from tests.fixed import gzip_fixed
from tests.proxying import HOST, Tap, capture, pairs, saved_flows
from tests.samples import CHAT, MESSAGES, chat_request, messages_events, messages_request
from tests.upstreams import JSON, SSE, Reply, Scripted, raw_upstream

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

pytestmark = pytest.mark.usefixtures("_no_errors")

OTHER = "other.example"
REVERSE = f"reverse:https://{HOST}"
REPLY = Reply(b"{}", JSON, framing="length")
DUPLICATES = [("Bash_0", "a", "1"), ("Bash_0", "b", "2"), ("Bash_0", "c", "3")]


async def peer_certificate(p: Tap, host: str, trust: ssl.SSLContext) -> bytes:
    """What a client of the proxy is shown as the certificate of a host."""
    address = urlsplit(p.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n".encode())
    assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
    await writer.start_tls(trust, server_hostname=host)
    certificate: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.write(f"GET /v1/models HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    assert (await reader.read()).endswith(b"{}")
    writer.close()
    return certificate


async def test_tls_to_other_hosts_passes_with_its_own_certificate(
    start: Start, tmp_path: Path
) -> None:
    other = make_tls(tmp_path / "other", OTHER)
    upstream = Scripted(Reply(b"{}", JSON, framing="close"))
    async with raw_upstream(upstream, other) as port, start(ports={OTHER: port}) as p:
        trust = ssl.create_default_context(cafile=str(other.ca))
        shown = await peer_certificate(p, OTHER, trust)
    leaf = other.leaf.read_text()
    own = leaf[leaf.index("-----BEGIN CERT") :]
    assert shown == ssl.PEM_cert_to_DER_cert(own)
    assert b"identity" not in upstream.requests[0][0]
    assert not p.captures.exists()


@pytest.mark.parametrize(
    ("hosts", "asked"),
    [
        ([HOST], HOST),
        ([HOST.upper()], HOST),
        ([HOST], HOST.upper()),
        (["example.com", HOST], HOST),
    ],
)
@pytest.mark.parametrize("port_asked", ["", ":8443"])
async def test_hosts_are_compared_without_case_or_port(
    start: Start, upstream_tls: TLSFiles, hosts: list[str], asked: str, port_asked: str
) -> None:
    upstream = Scripted(REPLY)
    async with (
        raw_upstream(upstream, upstream_tls) as port,
        start(ports={HOST: port, HOST.upper(): port}, moontap_hosts=hosts) as p,
        p.client() as client,
    ):
        await client.get(f"https://{asked}{port_asked}/v1/models")
    assert len(saved_flows(p.captures)) == 1


async def test_plain_http_to_other_hosts_is_neither_changed_nor_saved(start: Start) -> None:
    upstream = Scripted(REPLY)
    async with (
        raw_upstream(upstream, None) as port,
        start(ports={OTHER: port}, moontap_rewrite="all") as p,
        p.client() as client,
    ):
        body = messages_request(DUPLICATES)
        await client.post(f"http://{OTHER}{MESSAGES}", content=body)
    ((head, sent),) = upstream.requests
    assert sent == body
    assert b"identity" not in head
    assert not p.captures.exists()


async def test_the_certificate_of_a_tapped_host_is_checked(
    start: Start, upstream_tls: TLSFiles, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        Standin(tls=upstream_tls) as standin,
        start(ports={HOST: standin.port}, upstream_ca=None, mode=REVERSE) as p,
        httpx.AsyncClient(trust_env=False) as client,
    ):
        reply = await client.post(p.url + MESSAGES, content=messages_request())
    assert reply.status_code == 502
    assert not standin.requests
    assert "Certificate verify failed" in caplog.text


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/anthropic/v1/messages/count_tokens"),
        ("GET", "/v1/models"),
        ("GET", MESSAGES),
        ("POST", "/v1/responses"),
        ("POST", "/v1/chat/completions/x"),
    ],
)
async def test_other_paths_are_saved_and_not_read(
    start: Start, upstream_tls: TLSFiles, method: str, path: str
) -> None:
    """Events of what is not read stream all the same."""
    taken = asyncio.Event()

    async def gated() -> AsyncIterator[bytes]:
        for event in messages_events("Bash_0"):
            yield event
            await taken.wait()
            taken.clear()

    upstream = Scripted(Reply(gated))
    body = messages_request(DUPLICATES) if method == "POST" else b""
    async with (
        raw_upstream(upstream, upstream_tls) as port,
        start(ports={HOST: port}, mode=REVERSE, moontap_rewrite="all") as p,
        httpx.AsyncClient(trust_env=False, timeout=20) as client,
        client.stream(method, p.url + path, content=body) as reply,
    ):
        got = []
        async for piece in reply.aiter_raw():
            got.append(piece)
            taken.set()
    assert got == messages_events("Bash_0")
    assert upstream.requests[0][1] == body
    (flow,) = saved_flows(p.captures)
    assert flow.response
    assert flow.response.raw_content == b"".join(got)
    assert metadata.CALLS not in flow.metadata
    assert not pairs(p.captures)


@pytest.mark.parametrize("path", [MESSAGES, MESSAGES + "?beta=true", CHAT, "/v1/models"])
@pytest.mark.parametrize("rewrite", ["off", "all"])
async def test_accept_encoding_alone_changes_in_a_request(
    start: Start, upstream_tls: TLSFiles, path: str, rewrite: str
) -> None:
    headers = {
        "X-Api-Key": "made-up-key",
        "user-AGENT": "KimiCLI/1.0",
        "Accept-Encoding": "gzip, deflate, br, zstd",
        "Content-Type": JSON,
        "X-Odd": "a,b ;c",
    }
    body = messages_request(DUPLICATES[:1])
    heads = []
    for more in ({"bare": True}, {"moontap_rewrite": rewrite}):
        upstream = Scripted(REPLY)
        async with (
            raw_upstream(upstream, upstream_tls) as port,
            start(ports={HOST: port}, mode=REVERSE, **more) as p,
            httpx.AsyncClient(trust_env=False) as client,
        ):
            await client.post(p.url + path, content=body, headers=headers)
        ((head, sent),) = upstream.requests
        assert sent == body
        heads.append(head)
    bare, tapped = heads
    read = b"identity" if path != "/v1/models" else b"gzip, deflate, br, zstd"
    assert tapped == bare.replace(b"gzip, deflate, br, zstd", read)


def same(body: bytes) -> bytes:
    return body


@pytest.mark.parametrize(
    ("coding", "press", "unpress"),
    [
        (None, same, same),
        ("gzip", gzip_fixed, gzip.decompress),
        ("zstd", zstd.compress, zstd.decompress),
    ],
    ids=["plain", "gzip", "zstd"],
)
@pytest.mark.parametrize("path", [MESSAGES, CHAT])
async def test_a_history_with_duplicates_is_healed_alike_on_every_turn(
    start: Start,
    upstream_tls: TLSFiles,
    path: str,
    coding: str | None,
    press: Callable[[bytes], bytes],
    unpress: Callable[[bytes], bytes],
) -> None:
    make = messages_request if path == MESSAGES else chat_request
    turns = [make(DUPLICATES[:1]), make(DUPLICATES[:2]), make(DUPLICATES), make(DUPLICATES)]
    upstream = Scripted(REPLY)
    async with (
        raw_upstream(upstream, upstream_tls) as port,
        start(ports={HOST: port}, mode=REVERSE, moontap_rewrite="duplicates") as p,
        httpx.AsyncClient(trust_env=False) as client,
    ):
        for body in turns:
            coded = {"content-encoding": coding} if coding else {}
            await client.post(p.url + path, content=press(body), headers=coded)
    seen = [ids(unpress(sent)) for _, sent in upstream.requests]
    assert all(calls == results for calls, results in seen)
    assert [len(set(calls)) for calls, _ in seen] == [1, 2, 3, 3]
    assert all(calls == seen[-1][0][: len(calls)] for calls, _ in seen)
    assert upstream.requests[0][1] == press(turns[0])  # nothing to heal: not touched
    flows = saved_flows(p.captures)
    assert [len(flow.metadata.get(metadata.HEALED, ())) for flow in flows] == [0, 2, 4, 4]
    lines = pairs(p.captures)
    assert [(line["id"], line["result"], line["source"]) for line in lines] == [
        ("Bash_0", "1", "history"),
        ("Bash_0", "2", "history"),
        ("Bash_0", "3", "history"),
    ]


async def test_off_heals_nothing(start: Start, upstream_tls: TLSFiles) -> None:
    upstream = Scripted(REPLY)
    body = gzip_fixed(messages_request(DUPLICATES))
    async with (
        raw_upstream(upstream, upstream_tls) as port,
        start(ports={HOST: port}, mode=REVERSE) as p,
        httpx.AsyncClient(trust_env=False) as client,
    ):
        await client.post(p.url + MESSAGES, content=body, headers={"content-encoding": "gzip"})
    assert upstream.requests[0][1] == body
    assert [line["result"] for line in pairs(p.captures)] == ["1", "2", "3"]


def ids(body: bytes) -> tuple[list[str], list[str]]:
    """The ids of a request's calls and of its results."""
    calls: list[str] = []
    results: list[str] = []
    for message in json.loads(body)["messages"]:
        calls += [call["id"] for call in message.get("tool_calls", ())]
        if message["role"] == "tool":
            results.append(message["tool_call_id"])
        blocks: Any = message["content"] if isinstance(message["content"], list) else ()
        calls += [block["id"] for block in blocks if block["type"] == "tool_use"]
        results += [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    return calls, results


UNREADABLE = [
    b"",
    b"not JSON",
    b"\xff\xfe\x00",
    b"null",
    b"[]",
    b'{"messages": 7}',
    b'{"messages":' + b"[" * 100_000,
    b'{"messages":[{"role":"user","content":' + b"[" * 100_000 + b"]" * 100_000 + b"}]}",
]


async def test_requests_that_cannot_be_read_pass_unchanged(
    start: Start, upstream_tls: TLSFiles, caplog: pytest.LogCaptureFixture
) -> None:
    upstream = Scripted(REPLY)
    async with (
        raw_upstream(upstream, upstream_tls) as port,
        start(ports={HOST: port}, mode=REVERSE, moontap_rewrite="all") as p,
        httpx.AsyncClient(trust_env=False) as client,
    ):
        for path in (MESSAGES, CHAT):
            for body in UNREADABLE:
                await client.post(p.url + path, content=body)
        broken = {"content-encoding": "gzip"}
        await client.post(p.url + MESSAGES, content=b"not gzip", headers=broken)
    assert [sent for _, sent in upstream.requests] == [*UNREADABLE, *UNREADABLE, b"not gzip"]
    assert len(saved_flows(p.captures)) == 2 * len(UNREADABLE) + 1
    said = [r.getMessage() for r in caplog.records if r.name.startswith("moontap")]
    warned = [r for r in caplog.records if r.name.startswith("moontap") and r.levelno >= 30]
    assert len(warned) == 2, said  # passed through, and not read: each once


async def test_a_reply_to_an_unreadable_request_streams(
    start: Start, upstream_tls: TLSFiles
) -> None:
    taken = asyncio.Event()

    async def gated() -> AsyncIterator[bytes]:
        for event in messages_events("Bash_0"):
            yield event
            await taken.wait()
            taken.clear()

    async with (
        raw_upstream(Scripted(Reply(gated, SSE)), upstream_tls) as port,
        start(ports={HOST: port}, mode=REVERSE, moontap_rewrite="duplicates") as p,
        httpx.AsyncClient(trust_env=False, timeout=20) as client,
        client.stream("POST", p.url + MESSAGES, content=b"?") as reply,
    ):
        got = []
        async for piece in reply.aiter_raw():
            got.append(piece)
            taken.set()
    assert got == messages_events("Bash_0")


async def test_the_folder_is_its_owner_s_alone(
    start: Start, upstream_tls: TLSFiles, tmp_path: Path
) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("tools: {pay: [charge]}\n")
    given = {"moontap_rewrite": "all", "moontap_rules": str(rules)}
    async with (
        raw_upstream(Scripted(REPLY), upstream_tls) as port,
        start(ports={HOST: port}, mode=REVERSE, **given) as p,
        httpx.AsyncClient(trust_env=False) as client,
    ):
        await client.post(p.url + MESSAGES, content=messages_request(DUPLICATES))
    folder = capture(p.captures)
    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert folder.stat().st_mode & 0o777 == 0o700
    files = ["run.json", "traffic.flow", "pairs.jsonl", "findings.jsonl"]
    assert modes == dict.fromkeys(files, 0o600)
    run = json.loads((folder / "run.json").read_text())
    assert run["options"]["moontap_rewrite"] == "all"
    assert run["rules"] == runfile.noted(str(rules))
    assert run["options"]["mode"] == [f"{REVERSE}@127.0.0.1:0"]
    assert run["mitmproxy"].startswith("12.")
