"""The flow list of a real mitmproxy: as a run goes on, loaded from a file, and played again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from mitmproxy import flow, flowfilter, http, io, options
from mitmproxy.addons.view import View
from mitmproxy.tools.dump import DumpMaster

from moontap.addon import Moontap
from moontap.capture import metadata
from moontap.looking import feed
from moontap.looking.comment import ERROR_MARK
from moontap.standin import TLSFiles
from tests.conftest import Start
from tests.looking.rig import Updates, until
from tests.proxying import HOST, Tap, replay, saved_flows
from tests.samples import MESSAGES, messages_events, messages_request, messages_whole
from tests.saved import conversation, write
from tests.upstreams import Reply, Scripted, raw_upstream, read_request

pytestmark = pytest.mark.usefixtures("_no_errors")

FLOWS = Path(__file__).parents[1] / "flows"
REVERSE = f"reverse:https://{HOST}"
EVENTS = messages_events("Bash_0", "Read_0")
SECOND = next(at for at, event in enumerate(EVENTS) if b"Read_0" in event)
TEXT = (
    b"event: content_block_delta\n"
    b'data: {"type":"content_block_delta","index":9,"delta":{"type":"text_delta","text":"hm"}}\n\n'
)


class Listed:
    """mitmproxy with a list, in which the addon runs as `-s` would load it; no server."""

    def __init__(self, master: DumpMaster, view: View, addon: Moontap) -> None:
        self.master, self.view, self.addon = master, view, addon

    @property
    def flows(self) -> list[http.HTTPFlow]:
        return list(self.view)

    @property
    def comments(self) -> list[str]:
        return [one.comment for one in self.flows]

    def found(self, words: str) -> list[int]:
        """Which of the flows a filter leaves, as mitmproxy reads it."""
        wanted = flowfilter.parse(words)
        return [at for at, one in enumerate(self.flows) if flowfilter.match(wanted, one)]


@asynccontextmanager
async def loaded(file: Path, **opts: Any) -> AsyncIterator[Listed]:
    """As `mitmweb -nr FILE -s addon/main.py` does it."""
    addon, view = Moontap(), View()
    master = DumpMaster(options.Options(), with_termlog=False, with_dumper=False)
    master.addons.get("scriptloader").addons.append(addon)
    master.addons.register(addon)
    master.addons.add(view)
    master.options.update(server=False, moontap_dir="", **opts)
    task = asyncio.create_task(master.run())
    try:
        with file.open("rb") as flows:
            for one in io.FlowReader(flows).stream():
                await master.load_flow(one)
        await addon.settled(5)
        addon.board.settle()
        yield Listed(master, view, addon)
    finally:
        master.shutdown()
        await task


# loaded


async def test_a_loaded_file_has_the_list_of_the_run() -> None:
    async with loaded(FLOWS / "claude-code-loses-pairs.flow") as listed:
        assert listed.comments[:3] == [
            "Bash · answered in 1.0 s",
            "Bash ×2 · 1 unanswered · id-reused",
            "Bash ×2 · 2 unanswered · id-reused · pair-dropped-by-client",
        ]
        assert [one.marked for one in listed.flows[:3]] == ["", ERROR_MARK, ERROR_MARK]
    async with loaded(FLOWS / "claude-code-rewritten.flow") as listed:
        assert listed.comments == [
            "Bash · answered in 1.0 s · 1 id rewritten",
            "Bash ×2 · answered in 1.0 s · 2 ids rewritten, 1 reused",
            "Bash · answered in 1.0 s · 1 id rewritten, 1 reused",
            "only text · end_turn",
        ]
        assert not any(one.marked for one in listed.flows)  # what was mended needs no look


async def test_what_is_not_paired_has_no_comment() -> None:
    async with loaded(FLOWS / "messages-side-requests.flow") as listed:
        said = {one.request.path.rpartition("/")[2]: one.comment for one in listed.flows}
    assert said["count_tokens"] == ""
    assert said["messages"] != ""


async def test_what_mitmweb_has_saved_is_read_like_any_other(tmp_path: Path) -> None:
    """Its comments are moontap's own, and go; a person's stay."""
    async with loaded(FLOWS / "claude-code-loses-pairs.flow") as listed:
        listed.flows[0].comment = "look here"
        saved = write(tmp_path / "mitmweb.flow", listed.flows)
        before = listed.comments
    async with loaded(saved) as listed:
        assert listed.comments == before
        assert listed.comments[0] == "look here"
    await replay(saved, tmp_path / "captures")
    again = saved_flows(tmp_path / "captures")
    assert [one.comment for one in again] == ["look here", *[""] * (len(again) - 1)]
    assert not any(one.marked for one in again)
    assert not any(name in one.metadata for one in again for name in metadata.LIVE)


LOST, REWRITTEN = "claude-code-loses-pairs.flow", "claude-code-rewritten.flow"
FILTERS: list[tuple[str, str, list[int]]] = [
    (LOST, "~meta tool=Bash", [0, 1, 2, 3, 4, 5, 6, 7]),
    (LOST, "~meta tool=Read", []),
    (LOST, "~meta id=Bash_1;", [1, 2, 3, 4, 5, 6, 7]),
    (LOST, "~meta finding=id-reused", [1, 2]),
    (LOST, "~meta severity=error", [1, 2, 3, 4, 5, 6, 7]),
    (LOST, "~meta unanswered=", [1, 2, 3, 4, 5, 6]),
    (LOST, "~meta unanswered=1", [1]),
    (LOST, "~meta pairs= & ~meta unanswered=", [1]),
    (LOST, "~meta reused=", [1, 2, 3, 4, 5, 6, 7]),
    (LOST, "~meta rewritten=", []),
    (LOST, "~meta model=kimi-k3 & !~meta finding=", [0]),
    (LOST, "~meta conversation=1", [0, 1, 2, 3, 4, 5, 6, 7]),
    (LOST, "~comment unanswered", [1, 2, 3, 4, 5, 6]),
    (LOST, "~marked", [1, 2, 3, 4, 5, 6, 7]),
    (LOST, "~marker red", [1, 2, 3, 4, 5, 6, 7]),
    (LOST, "~meta session=a795a23d", [0, 1, 2, 3, 4, 5, 6, 7]),
    (REWRITTEN, "~meta rewritten=", [0, 1, 2]),
    (REWRITTEN, "~meta rewritten=2", [1]),
    (REWRITTEN, "~meta id=Bash_1;", [1]),
    (REWRITTEN, "~meta id=Bash_1_", [1]),
    (REWRITTEN, "~meta stop=end_turn", [3]),
    ("claude-code-sub-agents.flow", "~meta agent=", [1, 2, 3, 4, 5]),
    ("claude-code-fallback.flow", "~meta error=overloaded_error", [1]),
    ("claude-code-broken-stream.flow", "~meta ended=cut", [2]),
    ("chat-guard-stopped.flow", "~meta guard=blocked", [12]),
    ("messages-guard-reminded.flow", "~meta guard=reminded", [3]),
    ("messages-healing-stream.flow", "~meta healed=", [0, 1]),
    ("messages-orphan-result.flow", "~meta orphans=", [0]),
]  # fmt: skip


@pytest.mark.parametrize("file", sorted({file for file, _, _ in FILTERS}))
async def test_filters(file: str) -> None:
    async with loaded(FLOWS / file) as listed:
        for _, words, numbers in (case for case in FILTERS if case[0] == file):
            assert listed.found(words) == numbers, words


async def test_metadata_is_a_short_text() -> None:
    """mitmproxy writes all of it down for each flow and each letter of a filter that is typed."""
    async with loaded(FLOWS / REWRITTEN) as listed:
        one = listed.flows[1]
        body = one.metadata[metadata.UPSTREAM_BODY]
        assert b"content_block_start" in body
        assert (
            f"{metadata.UPSTREAM_BODY}: {body}"
            == f"{metadata.UPSTREAM_BODY}: <{len(body):,} bytes>"
        )
        assert listed.found("~meta content_block") == []
        assert listed.found("~meta chunks") == [0, 1, 2, 3]
        for each in listed.flows:
            assert len("".join(f"{key}: {value}" for key, value in each.metadata.items())) < 1200


async def test_notes_can_be_switched_while_it_runs() -> None:
    async with loaded(FLOWS / LOST) as listed:
        listed.master.options.update(moontap_notes=False)
        assert listed.comments == [""] * 8
        assert listed.found("~marked") == []
        assert listed.found("~meta unanswered=") == [1, 2, 3, 4, 5, 6]
        listed.master.options.update(moontap_notes=True)
        assert listed.comments[0] == "Bash · answered in 1.0 s"
        assert listed.found("~marked") == [1, 2, 3, 4, 5, 6, 7]


# live


class Gate:
    """Lets an upstream go on when the test has seen what it waits for."""

    def __init__(self) -> None:
        self.events: dict[str, asyncio.Event] = {}

    def __getitem__(self, name: str) -> asyncio.Event:
        return self.events.setdefault(name, asyncio.Event())


def kept(one: http.HTTPFlow) -> tuple[Any, ...]:
    """What a capture holds of a reply, but for the times and sizes of its chunks."""
    assert one.response
    rest = {name: value for name, value in one.metadata.items() if name != metadata.CHUNKS}
    size = sum(chunk[0] for chunk in one.metadata[metadata.CHUNKS])
    return one.response.raw_content, list(rest.items()), size


async def test_a_stream_of_2000_events(
    start: Start, upstream_tls: TLSFiles, tmp_path: Path
) -> None:
    """The list follows it at its own pace; a person's mark stays; what is saved is the same."""
    gate = Gate()

    async def gated() -> AsyncIterator[bytes]:
        yield b"".join(EVENTS[:SECOND])
        await gate["second"].wait()
        for at in range(2000):
            yield TEXT
            if at % 100 == 0:
                await asyncio.sleep(0.01)
        yield b"".join(EVENTS[SECOND:-1])
        await gate["end"].wait()
        yield EVENTS[-1]

    async def asked(p: Tap, client: httpx.AsyncClient) -> bytes:
        return (await client.post(p.url + MESSAGES, content=messages_request())).content

    async def unseen(p: Tap, client: httpx.AsyncClient) -> bytes:
        gate["second"].set()
        gate["end"].set()
        return await asked(p, client)

    async def seen(p: Tap, client: httpx.AsyncClient) -> bytes:
        begun = asyncio.get_running_loop().time()
        reply = asyncio.create_task(asked(p, client))
        await until(lambda: view and view[0].comment == "streaming: Bash")
        view[0].marked = ":star:"
        gate["second"].set()
        await until(lambda: view[0].comment == "streaming: Bash ×2")
        gate["end"].set()
        await until(lambda: view[0].comment == "Bash ×2 · no result yet · 2 ids rewritten")
        took = asyncio.get_running_loop().time() - begun
        assert 2 <= len(updates.batches) <= took / 0.2 + 5
        assert view[0].marked == ":star:"
        return await reply

    view, updates = View(), Updates()
    captured = []
    for ask, addons in ((unseen, ()), (seen, (view, updates))):
        captures = tmp_path / ask.__name__
        async with (
            raw_upstream(Scripted(Reply(gated)), upstream_tls) as port,
            start(
                ports={HOST: port},
                mode=REVERSE,
                moontap_rewrite="all",
                moontap_dir=str(captures),
                addons=addons,
            ) as p,
            httpx.AsyncClient(trust_env=False, timeout=20) as client,
        ):
            got = await ask(p, client)
        (saved,) = saved_flows(captures)
        assert saved.response
        assert saved.response.raw_content == got
        captured.append((kept(saved), saved.comment, saved.marked))
        gate.events.clear()
    (without, *plain), (with_view, *noted) = captured
    assert with_view == without
    assert (plain, noted) == (["", ""], ["", ":star:"])


class Ends:
    """How a stream can end that does not end well, and what the list says then."""

    @staticmethod
    async def upstream(p: Tap, gate: Gate, asked: asyncio.Task[Any], view: View) -> None:
        gate["go"].set()

    @staticmethod
    async def client(p: Tap, gate: Gate, asked: asyncio.Task[Any], view: View) -> None:
        asked.cancel()

    @staticmethod
    async def kill(p: Tap, gate: Gate, asked: asyncio.Task[Any], view: View) -> None:
        view[0].kill()
        await until(lambda: view[0].comment == "killed · Bash")
        gate["go"].set()

    @staticmethod
    async def reload(p: Tap, gate: Gate, asked: asyncio.Task[Any], view: View) -> None:
        """As mitmproxy's script loader does it."""
        p.master.addons.remove(p.addon)
        slot, new = p.master.addons.get("scriptloader"), Moontap()
        slot.addons.remove(p.addon)
        slot.addons.append(new)
        p.master.addons.register(new)
        new.configure({"moontap_dir"})


@pytest.mark.parametrize(
    ("end", "comment", "then"),
    [
        (Ends.upstream, "broke off · Bash", "broke off · Bash"),
        (Ends.client, "client left · Bash", "client left · Bash"),
        # mitmproxy lets a stream run on that was killed; how that ends is the last that is known.
        (Ends.kill, "killed · Bash", "broke off · Bash"),
        (Ends.reload, "not finished · Bash", "broke off · Bash"),
    ],
)
async def test_no_stream_is_left_streaming(
    start: Start, upstream_tls: TLSFiles, end: Any, comment: str, then: str
) -> None:
    gate, view = Gate(), View()

    async def gated() -> AsyncIterator[bytes]:
        yield b"".join(EVENTS[:SECOND])
        await gate["go"].wait()

    async with (
        raw_upstream(Scripted(Reply(gated, whole=False)), upstream_tls) as port,
        start(ports={HOST: port}, mode=REVERSE, addons=(view,)) as p,
        httpx.AsyncClient(trust_env=False, timeout=20) as client,
    ):
        asked = asyncio.create_task(client.post(p.url + MESSAGES, content=messages_request()))
        await until(lambda: view and view[0].comment == "streaming: Bash")
        await end(p, gate, asked, view)
        await until(lambda: view[0].comment.startswith(comment))
        assert p.addon._feed.idle
        assert "streaming" not in view[0].metadata[metadata.LABELS]
        gate["go"].set()
        await asyncio.wait({asked})
        assert asked.cancelled() or asked.exception()
        await until(lambda: view[0].comment.startswith(then))


@pytest.mark.parametrize(
    ("end", "then"), [("reply", "Bash · no result yet"), ("client", "client left")]
)
async def test_a_request_that_waits_says_so(
    start: Start, upstream_tls: TLSFiles, monkeypatch: pytest.MonkeyPatch, end: str, then: str
) -> None:
    monkeypatch.setattr(feed, "PATIENCE", 0.05)
    gate, view = asyncio.Event(), View()

    async def upstream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        await gate.wait()
        body = messages_whole("Bash_0")
        writer.write(Reply(body, kind="application/json", framing="length").head() + body)
        await writer.drain()

    async with (
        raw_upstream(upstream, upstream_tls) as port,
        start(ports={HOST: port}, mode=REVERSE, addons=(view,)) as p,
        httpx.AsyncClient(trust_env=False, timeout=20) as client,
    ):
        asked = asyncio.create_task(client.post(p.url + MESSAGES, content=messages_request()))
        await until(lambda: view and view[0].comment == "waiting for the reply")
        assert view[0].metadata[metadata.LABELS].endswith("waiting=yes;")
        if end == "reply":
            gate.set()
        else:
            asked.cancel()
        await until(lambda: view[0].comment == then)
        assert "waiting=" not in view[0].metadata[metadata.LABELS]
        assert p.addon._feed.idle
        gate.set()
        await asyncio.wait({asked})


async def test_what_was_held_when_a_stream_was_killed_is_not_kept(
    start: Start, upstream_tls: TLSFiles, tmp_path: Path
) -> None:
    """A person killed it while upstream had sent more than the client had got; in the end both
    had the same."""
    gate, view = Gate(), View()

    async def gated() -> AsyncIterator[bytes]:
        yield b"".join(EVENTS[:SECOND]) + EVENTS[SECOND][:-9]
        await gate["go"].wait()
        yield EVENTS[SECOND][-9:] + b"".join(EVENTS[SECOND + 1 :])

    async with (
        raw_upstream(Scripted(Reply(gated)), upstream_tls) as port,
        start(
            ports={HOST: port},
            mode=REVERSE,
            moontap_rewrite="duplicates",
            moontap_dir=str(tmp_path),
            addons=(view,),
        ) as p,
        httpx.AsyncClient(trust_env=False, timeout=20) as client,
    ):
        asked = asyncio.create_task(client.post(p.url + MESSAGES, content=messages_request()))
        await until(lambda: view and metadata.UPSTREAM_BODY in view[0].metadata)
        await Ends.kill(p, gate, asked, view)
        await asyncio.wait({asked})
        assert asked.exception()
        await until(lambda: metadata.CALLS in view[0].metadata)
    (saved,) = saved_flows(tmp_path)
    assert saved.response
    assert saved.response.raw_content == b"".join(EVENTS)
    assert metadata.UPSTREAM_BODY not in saved.metadata


async def test_a_flow_that_is_played_again_begins_anew(
    start: Start, upstream_tls: TLSFiles, tmp_path: Path
) -> None:
    """mitmproxy's client replay, of a flow with a comment of ours and of one with a person's."""
    view, gate = View(), Gate()
    flows: list[flow.Flow] = list(conversation(["pwd", "ls"], lost=frozenset({1})))
    async with loaded(write(tmp_path / "a.flow", flows)) as listed:
        old = listed.flows[:2]
    old[0].comment = "mine"
    assert old[1].comment.startswith("Bash · unanswered")

    async def gated() -> AsyncIterator[bytes]:
        await gate["go"].wait()
        yield b"".join(messages_events())

    async with (
        raw_upstream(Scripted(Reply(messages_events()), Reply(gated)), upstream_tls) as port,
        start(ports={HOST: port}, addons=(view,)) as p,
    ):
        view.add(old)
        p.master.commands.call("replay.client", old)
        await until(lambda: old[1].comment == "streaming")
        assert (old[1].marked, old[0].comment) == ("", "mine")
        gate["go"].set()
        await until(lambda: old[1].comment == "only text · end_turn")
        assert old[0].comment == "mine"
        assert old[0].metadata[metadata.LABELS].endswith("stop=end_turn;")


async def test_what_mitmproxy_serves_from_a_file_is_in_the_list(
    start: Start, tmp_path: Path
) -> None:
    flows, view = conversation(["pwd", "ls"]), View()
    served = write(tmp_path / "served.flow", flows)
    async with (
        start(
            ports={HOST: 1},
            server_replay=[str(served)],
            connection_strategy="lazy",
            addons=(view,),
        ) as p,
        p.client() as client,
    ):
        for one in flows:
            await client.post(one.request.url, content=one.request.content)
        await until(lambda: len(view) == 3 and "· answered" in view[1].comment)
        assert [one.comment.partition(" in ")[0] for one in view] == [
            "Bash · answered",
            "Bash · id-reused · answered",
            "only text · end_turn",
        ]
