"""What breaks off: a client that leaves, an upstream that stops, a run that ends in mid-stream."""

import asyncio
import contextlib
import gzip
import os
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from mitmproxy import http

from moontap.addon import Moontap
from moontap.capture import metadata
from moontap.standin import TLSFiles
from tests.conftest import Start
from tests.proxying import HOST, Tap, capture, flows_of, pairs, saved_flows
from tests.samples import MESSAGES, messages_events, messages_request, messages_whole
from tests.test_addon_streams import NEW_ID, blank
from tests.upstreams import JSON, App, Reply, Scripted, asgi_upstream, raw_upstream

pytestmark = pytest.mark.usefixtures("_no_errors")

REVERSE = f"reverse:https://{HOST}"
EVENTS = messages_events("Bash_0")
STREAM = b"".join(EVENTS)
WHOLE = Reply(EVENTS)


class Ended:
    """Says when the tap has dealt with an exchange: it stands behind it in the line of addons."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[http.HTTPFlow] = asyncio.Queue()

    def response(self, flow: http.HTTPFlow) -> None:
        self.events.put_nowait(flow)

    def error(self, flow: http.HTTPFlow) -> None:
        self.events.put_nowait(flow)


async def take(client: httpx.AsyncClient, url: str) -> bytes:
    """What a client gets of a reply that may break off."""
    got = b""
    with contextlib.suppress(httpx.RemoteProtocolError, httpx.ReadError):
        async with client.stream("POST", url, content=messages_request()) as reply:
            async for piece in reply.aiter_raw():
                got += piece
    return got


BREAKS = [
    ("before any event", Reply([], whole=False), b""),
    ("between events", Reply(EVENTS[:4], whole=False), b"".join(EVENTS[:4])),
    ("within an event", Reply([*EVENTS[:2], EVENTS[2][:90]], whole=False), b"".join(EVENTS[:2])),
    (
        "short of its length",
        Reply(STREAM, framing="length", whole=False),
        STREAM,
    ),
    ("a whole reply", Reply(messages_whole("Bash_0")[:70], JSON, whole=False), b""),
]


@pytest.mark.parametrize(
    ("reply", "rewritten"), [case[1:] for case in BREAKS], ids=[case[0] for case in BREAKS]
)
@pytest.mark.parametrize("rewrite", ["off", "all"])
async def test_an_upstream_that_breaks_off(
    start: Start, upstream_tls: TLSFiles, rewrite: str, reply: Reply, rewritten: bytes
) -> None:
    """What arrived is kept and marked; the next exchange is as good as any."""
    assert not callable(reply.body)
    sent = reply.body if isinstance(reply.body, bytes) else b"".join(reply.body)
    async with (
        raw_upstream(Scripted(reply, WHOLE), upstream_tls) as port,
        start(ports={HOST: port}, mode=REVERSE, moontap_rewrite=rewrite) as p,
        httpx.AsyncClient(trust_env=False, timeout=20) as client,
    ):
        got = await take(client, p.url + MESSAGES)
        then = await take(client, p.url + MESSAGES)
    assert blank(then) == STREAM
    assert blank(got) == (sent if rewrite == "off" else rewritten)
    broken, good = saved_flows(p.captures)
    assert broken.response
    assert good.response
    assert broken.metadata[metadata.INCOMPLETE] is True
    assert metadata.INCOMPLETE not in good.metadata
    assert broken.response.raw_content == got
    assert broken.metadata.get(metadata.UPSTREAM_BODY, got) == sent
    assert good.response.raw_content == then


async def test_an_upstream_that_says_nothing(start: Start, upstream_tls: TLSFiles) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")

    async with (
        raw_upstream(silent, upstream_tls) as port,
        start(ports={HOST: port}, mode=REVERSE, moontap_rewrite="all") as p,
        httpx.AsyncClient(trust_env=False, timeout=20) as client,
    ):
        reply = await client.post(p.url + MESSAGES, content=messages_request())
    assert reply.status_code == 502
    (flow,) = saved_flows(p.captures)
    assert (flow.response, flow.metadata[metadata.INCOMPLETE]) == (None, True)
    assert flow.error


async def test_an_upstream_that_is_not_there(start: Start) -> None:
    async with (
        start(
            ports={HOST: 1}, mode=REVERSE, moontap_rewrite="all", connection_strategy="lazy"
        ) as p,
        httpx.AsyncClient(trust_env=False, timeout=20) as client,
    ):
        reply = await client.post(p.url + MESSAGES, content=messages_request())
    assert reply.status_code == 502
    assert len(saved_flows(p.captures)) == 1


async def test_an_upstream_that_answers_garbage(start: Start, upstream_tls: TLSFiles) -> None:
    async def garbage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"\x00\x01 what?\r\n\r\n")
        await writer.drain()

    async with (
        raw_upstream(garbage, upstream_tls) as port,
        start(ports={HOST: port}, mode=REVERSE, moontap_rewrite="all") as p,
        httpx.AsyncClient(trust_env=False, timeout=20) as client,
    ):
        reply = await client.post(p.url + MESSAGES, content=messages_request())
    assert reply.status_code == 502
    assert len(saved_flows(p.captures)) == 1


@pytest.mark.parametrize("http2", [False, True], ids=["http1", "http2"])
@pytest.mark.parametrize("rewrite", ["off", "all"])
async def test_a_client_that_leaves(
    start: Start, upstream_tls: TLSFiles, rewrite: str, http2: bool
) -> None:
    """In the middle of an event; upstream, which would have sent on, is done with as well."""
    never = asyncio.Event()

    async def stuck() -> AsyncIterator[bytes]:
        yield STREAM[:sent]
        await never.wait()

    sent = len(b"".join(EVENTS[:3])) + 50
    ended = Ended()
    app = App(stuck)
    async with (
        asgi_upstream(app, upstream_tls, *(["h2"] if http2 else ["http/1.1"])) as port,
        start(ports={HOST: port}, addons=(ended,), moontap_rewrite=rewrite) as p,
    ):
        url = f"https://{HOST}{MESSAGES}"
        async with (
            p.client(http2=http2) as client,
            client.stream("POST", url, content=messages_request()) as reply,
        ):
            assert reply.http_version == ("HTTP/2" if http2 else "HTTP/1.1")
            got = b""
            async for piece in reply.aiter_raw():
                got += piece
                if len(blank(got)) >= sent:
                    break
        flow = await asyncio.wait_for(ended.events.get(), 10)
        assert flow.error
        never.set()
        async with p.client(http2=http2) as client:
            await take(client, url)
    first, second = saved_flows(p.captures)
    assert first.response
    assert first.metadata[metadata.INCOMPLETE] is True
    assert first.response.raw_content == got
    assert blank(got) == STREAM[: len(blank(got))]
    assert metadata.INCOMPLETE not in second.metadata
    lines = pairs(p.captures)
    # Both replies answer the same request: the second is the one that counts.
    assert [(line["tool"], line["status"]) for line in lines] == [("Bash", "unanswered")]
    assert bool(NEW_ID.fullmatch(lines[0]["id"].encode())) == (rewrite == "all")


@pytest.mark.parametrize("rewrite", ["off", "all"])
async def test_a_run_that_ends_while_streams_are_open(
    start: Start, upstream_tls: TLSFiles, rewrite: str
) -> None:
    async def stuck() -> AsyncIterator[bytes]:
        yield b"".join(EVENTS[:5])
        await asyncio.Event().wait()

    async with (
        raw_upstream(Scripted(WHOLE, Reply(stuck)), upstream_tls) as port,
        httpx.AsyncClient(trust_env=False, timeout=20) as client,
        contextlib.AsyncExitStack() as running,
    ):
        p: Tap = await running.enter_async_context(
            start(ports={HOST: port}, mode=REVERSE, moontap_rewrite=rewrite)
        )
        await take(client, p.url + MESSAGES)
        second = messages_request([("Bash_0", "ls", "x")])
        async with client.stream("POST", p.url + MESSAGES, content=second) as reply:
            got = b""
            async for piece in reply.aiter_raw():
                got += piece
                if blank(got) == b"".join(EVENTS[:5]):
                    break
            await running.aclose()
    whole, broken = saved_flows(p.captures)
    assert broken.response
    assert metadata.INCOMPLETE not in whole.metadata
    assert broken.metadata[metadata.INCOMPLETE] is True
    assert broken.response.raw_content == got
    assert broken.metadata[metadata.CALLS] == 1
    last = pairs(p.captures)[-1]
    assert (last["status"], last["call_flow"], last["called_at"]) == ("unanswered", broken.id, None)


async def test_a_reload_of_the_script_leaves_open_streams_whole(
    start: Start, upstream_tls: TLSFiles
) -> None:
    """`mitmdump -s` reloads a script that was edited: `done`, with the connections going on."""
    reloaded = asyncio.Event()
    cut = len(b"".join(EVENTS[:2])) + 60  # within the event that holds the id

    async def gated() -> AsyncIterator[bytes]:
        yield STREAM[:cut]
        await reloaded.wait()
        yield STREAM[cut:]

    async with (
        raw_upstream(Scripted(Reply(gated)), upstream_tls) as port,
        start(ports={HOST: port}, mode=REVERSE, moontap_rewrite="all") as p,
        httpx.AsyncClient(trust_env=False, timeout=20) as client,
    ):
        async with client.stream("POST", p.url + MESSAGES, content=messages_request()) as reply:
            got = b""
            async for piece in reply.aiter_raw():
                got += piece
                if not reloaded.is_set():
                    p.addon.done()
                    reloaded.set()
        again = await client.post(p.url + MESSAGES, content=messages_request())
    assert blank(got) == STREAM
    assert len(NEW_ID.findall(got)) == 1
    assert again.content == STREAM  # this one came after the end
    (flow,) = saved_flows(p.captures)
    assert flow.metadata[metadata.INCOMPLETE] is True


def reload(p: Tap) -> None:
    """As mitmproxy's script loader does it."""
    slot, new = p.master.addons.get("scriptloader"), Moontap()
    p.master.addons.remove(p.addon)
    slot.addons.remove(p.addon)
    slot.addons.append(new)
    p.master.addons.register(new)
    new.configure({"moontap_dir", "moontap_rewrite"})


async def test_after_a_reload_the_new_instance_keeps_the_whole_stream(
    start: Start, upstream_tls: TLSFiles
) -> None:
    reloaded = asyncio.Event()

    async def gated() -> AsyncIterator[bytes]:
        yield EVENTS[0]
        await reloaded.wait()
        yield b"".join(EVENTS[1:])

    async with (
        raw_upstream(Scripted(Reply(gated)), upstream_tls) as port,
        start(ports={HOST: port}, mode=REVERSE, moontap_rewrite="all") as p,
        httpx.AsyncClient(trust_env=False, timeout=20) as client,
        client.stream("POST", p.url + MESSAGES, content=messages_request()) as reply,
    ):
        got = b""
        async for piece in reply.aiter_raw():
            got += piece
            if not reloaded.is_set():
                reload(p)
                reloaded.set()
    first, second = sorted(p.captures.glob("*Z-*"))
    assert [len(flows_of(folder)) for folder in (first, second)] == [1, 1]
    (flow,) = flows_of(second)
    assert flow.response
    assert flow.response.raw_content == got
    assert flow.metadata[metadata.UPSTREAM_BODY] == STREAM
    assert metadata.INCOMPLETE not in flow.metadata


async def test_a_reload_before_the_first_byte_keeps_how_upstream_had_packed_it(
    start: Start, upstream_tls: TLSFiles
) -> None:
    """A server that packs its replies, although it was asked not to."""
    reloaded, ended = asyncio.Event(), Ended()

    async def gated() -> AsyncIterator[bytes]:
        await reloaded.wait()
        yield gzip.compress(STREAM)

    async with (
        raw_upstream(
            Scripted(Reply(gated, headers=("Content-Encoding: gzip",))), upstream_tls
        ) as port,
        start(ports={HOST: port}, mode=REVERSE, moontap_rewrite="all", addons=(ended,)) as p,
        httpx.AsyncClient(trust_env=False, timeout=20) as client,
        client.stream("POST", p.url + MESSAGES, content=messages_request()) as reply,
    ):
        reload(p)
        reloaded.set()
        assert blank(await reply.aread()) == STREAM
        flow = await ended.events.get()
    assert flow.metadata[metadata.UPSTREAM_ENCODING] == "gzip"
    assert gzip.decompress(flow.metadata[metadata.UPSTREAM_BODY]) == STREAM


async def test_parallel_exchanges_do_not_wait_for_each_other(
    start: Start, upstream_tls: TLSFiles
) -> None:
    """The first stream ends only after the second one has."""
    release = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield EVENTS[0]
        await release.wait()
        yield b"".join(EVENTS[1:])

    async with (
        raw_upstream(Scripted(Reply(slow), WHOLE), upstream_tls) as port,
        start(ports={HOST: port}, mode=REVERSE, moontap_rewrite="duplicates") as p,
        httpx.AsyncClient(trust_env=False, timeout=20) as client,
        client.stream("POST", p.url + MESSAGES, content=messages_request()) as first,
    ):
        pieces = first.aiter_raw()
        got = await anext(pieces)
        second = await take(client, p.url + MESSAGES)
        release.set()
        got += b"".join([piece async for piece in pieces])
    assert got == EVENTS[0] + b"".join(EVENTS[1:])
    assert second == STREAM
    assert len(saved_flows(p.captures)) == 2


@pytest.mark.skipif(os.geteuid() == 0 and not Path("/dev/full").exists(), reason="no /dev/full")
async def test_a_disk_that_is_full(
    start: Start, upstream_tls: TLSFiles, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """Traffic goes on, the log says so once and at the end what was lost."""
    async with (
        raw_upstream(Scripted(WHOLE), upstream_tls) as port,
        start(ports={HOST: port}, mode=REVERSE, moontap_rewrite="all") as p,
        httpx.AsyncClient(trust_env=False, timeout=20) as client,
    ):
        await take(client, p.url + MESSAGES)
        folder = capture(p.captures)
        os.unlink(folder / "traffic.flow")
        (folder / "traffic.flow").symlink_to("/dev/full")
        p.addon.recorder._folder.close()  # type: ignore[union-attr]  # makes it open them anew
        for _ in range(3):
            assert blank(await take(client, p.url + MESSAGES)) == STREAM
    said = [r.getMessage() for r in caplog.records if r.levelname == "ERROR"]
    assert len([line for line in said if "CANNOT WRITE" in line]) == 1
    assert "3 records could NOT be written" in said[-1]
    caplog.clear()
    assert p.addon.recorder.counts.lost == 3


async def test_a_folder_that_cannot_be_made(
    start: Start, upstream_tls: TLSFiles, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    blocked = tmp_path / "blocked"
    async with (
        raw_upstream(Scripted(WHOLE), upstream_tls) as port,
        start(
            ports={HOST: port}, mode=REVERSE, moontap_rewrite="all", moontap_dir=str(blocked)
        ) as p,
        httpx.AsyncClient(trust_env=False, timeout=20) as client,
    ):
        blocked.write_text("a file came in between")
        assert blank(await take(client, p.url + MESSAGES)) == STREAM
    assert "CANNOT WRITE" in caplog.text
    caplog.clear()
