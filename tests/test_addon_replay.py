"""`traffic.flow` is the source of truth: loaded again, it gives the same log and the same ids."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from mitmproxy import http, io

from moontap.capture import metadata
from moontap.standin import Conversation, Fault, FaultKind, Script, Standin, TLSFiles
from moontap.standin.script import DEFAULT_SCRIPT
from tests.conftest import Start
from tests.proxying import HOST, Streamed, Tap, capture, pairs, replay, saved_flows
from tests.samples import CHAT, MESSAGES, Pair, chat_request, messages_request

pytestmark = pytest.mark.usefixtures("_no_errors")

ROOT = Path(__file__).parents[1]
ID = re.compile(rb'"id":\s*"(Bash[^"]*)"')
URL = f"https://{HOST}"

type Make = Callable[..., bytes]


def script(*faults: Fault) -> Script:
    steps = DEFAULT_SCRIPT.default.steps[:1]
    return Script(default=Conversation(steps=steps), seed=7, faults=faults)


FAULTS = (
    Fault(FaultKind.CUT, at_request=4, after_events=6),
    Fault(FaultKind.ENCODING, at_request=6, encoding="zstd"),
    Fault(FaultKind.CUT, at_request=9, after_events=1),
    Fault(FaultKind.STATUS, at_request=10, status=500),
    Fault(FaultKind.WHOLE, at_request=11),
    Fault(FaultKind.EMPTY, at_request=12),
    Fault(FaultKind.ENCODING, at_request=13, encoding="gzip", header=False),
    Fault(FaultKind.SAME_ID, at_request=14),
)


async def agent(
    client: httpx.AsyncClient,
    path: str,
    opening: str,
    *,
    turns: int = 4,
    history: tuple[Pair, ...] = (),
    session: str | None = None,
    sub_agent: str | None = None,
) -> None:
    """Runs into whatever upstream does, asks again where it got no call, and ends unanswered."""
    make: Make = messages_request if path == MESSAGES else chat_request
    tool = {"name": "Bash", "input_schema": {}, "function": {"name": "Bash"}}
    named = {"x-claude-code-session-id": session, "x-claude-code-agent-id": sub_agent}
    headers = {name: value for name, value in named.items() if value}
    said = list(history)
    for turn in range(turns):
        got = b""
        with suppress(httpx.RemoteProtocolError, httpx.ReadError):
            body = make(said, opening=opening, tools=[tool])
            async with client.stream("POST", URL + path, content=body, headers=headers) as reply:
                async for piece in reply.aiter_raw():
                    got += piece
        said += [(id_, "pwd", f"{opening} {turn}") for id_ in _ids(got)]


def _ids(body: bytes) -> list[str]:
    return list(dict.fromkeys(id_.decode() for id_ in ID.findall(body)))


async def agents(p: Tap) -> None:
    """Conversations of one session, of another, and of none, all at once."""
    async with p.client() as client:
        await asyncio.gather(
            agent(client, MESSAGES, "a", session="s1"),
            agent(client, MESSAGES, "b", session="s1", sub_agent="g2"),
            agent(client, CHAT, "c"),
            agent(client, MESSAGES, "d", history=(("Bash_0", "x", "1"), ("Bash_0", "y", "2"))),
        )
        await client.get(f"{URL}/v1/models")
        await client.post(URL + MESSAGES, content=b"unreadable")


@pytest.mark.parametrize("rewrite", ["off", "duplicates", "all"])
async def test_a_replay_gives_the_same_log(
    start: Start, upstream_tls: TLSFiles, tmp_path: Path, rewrite: str
) -> None:
    """Line for line, whatever rewriting the replay is set to: what was recorded stays."""
    async with (
        Standin(script(*FAULTS), tls=upstream_tls) as standin,
        start(ports={HOST: standin.port}, moontap_rewrite=rewrite) as p,
    ):
        await agents(p)
    lines = pairs(p.captures)
    assert {line["status"] for line in lines} >= {"ok", "unanswered"}
    assert any(line["source"] == "history" for line in lines)
    flows = saved_flows(p.captures)
    assert sum(metadata.INCOMPLETE in flow.metadata for flow in flows) >= 2
    log = (capture(p.captures) / "pairs.jsonl").read_bytes()
    for again in ("off", "all"):
        captures = tmp_path / f"again-{again}"
        await replay(capture(p.captures) / "traffic.flow", captures, moontap_rewrite=again)
        assert (capture(captures) / "pairs.jsonl").read_bytes() == log
        assert [state(flow) for flow in saved_flows(captures)] == [state(flow) for flow in flows]


def state(flow: http.HTTPFlow) -> dict[str, Any]:
    return {key: value for key, value in flow.get_state().items() if key != "backup"}


async def test_mitmdump_replays_by_the_script(
    start: Start, upstream_tls: TLSFiles, tmp_path: Path
) -> None:
    async with (
        Standin(script(*FAULTS), tls=upstream_tls) as standin,
        start(ports={HOST: standin.port}, moontap_rewrite="all") as p,
    ):
        await agents(p)
    captures = tmp_path / "again"
    mitmdump = Path(sys.executable).with_name("mitmdump")
    done = await asyncio.to_thread(
        subprocess.run,
        [
            str(mitmdump),
            *("-n", "-q", "-r", str(capture(p.captures) / "traffic.flow")),
            *("-s", str(ROOT / "addon" / "main.py")),
            *("--set", f"moontap_dir={captures}", "--set", f"confdir={p.ca.parent}"),
        ],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(ROOT / "addon")},
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert pairs(captures) == pairs(p.captures)


@pytest.mark.parametrize("rewrite", ["duplicates", "all"])
async def test_ids_are_the_same_live_and_offline(
    start: Start, upstream_tls: TLSFiles, tmp_path: Path, rewrite: str
) -> None:
    """What upstream sent, in a file that no tap wrote, is rewritten to what the client got."""
    faults = (fault for fault in FAULTS if fault.kind is not FaultKind.CUT)
    async with (
        Standin(script(*faults), tls=upstream_tls) as standin,
        start(ports={HOST: standin.port}, moontap_rewrite=rewrite) as p,
        p.client() as client,
    ):
        await agent(client, MESSAGES, "a", turns=6)
        await agent(client, CHAT, "b", turns=9)
    plain = tmp_path / "plain.flow"
    live = saved_flows(p.captures)
    with plain.open("wb") as file:
        writer = io.FlowWriter(file)
        for flow in saved_flows(p.captures):
            assert flow.response
            upstream = flow.metadata.get(metadata.UPSTREAM_BODY, flow.response.raw_content)
            flow.response.raw_content = upstream
            if coding := flow.metadata.get(metadata.UPSTREAM_ENCODING):
                flow.response.headers["content-encoding"] = coding
            flow.metadata.clear()
            writer.add(flow)
    await replay(plain, tmp_path / "again", moontap_rewrite=rewrite)
    again = saved_flows(tmp_path / "again")
    assert sum(flow.metadata.get(metadata.REWRITTEN, 0) for flow in live) >= 8
    for ours, theirs in zip(again, live, strict=True):
        assert ours.response
        assert theirs.response
        assert ours.response.content == theirs.response.content
        for name in (metadata.UPSTREAM_BODY, metadata.CALLS, metadata.REWRITTEN):
            assert ours.metadata.get(name) == theirs.metadata.get(name)
    assert pairs(tmp_path / "again") == pairs(p.captures)


@pytest.mark.parametrize("kept", [True, False], ids=["with bodies", "without bodies"])
async def test_flows_that_mitmproxy_saved_itself_are_read(
    start: Start, upstream_tls: TLSFiles, tmp_path: Path, kept: bool
) -> None:
    """Where replies were streamed past it unkept, the histories tell of the calls."""
    plain = tmp_path / "plain.flow"
    async with (
        Standin(script(*FAULTS[:2]), tls=upstream_tls) as standin,
        start(
            ports={HOST: standin.port},
            bare=True,
            addons=(Streamed(),),
            save_stream_file=str(plain),
            store_streamed_bodies=kept,
        ) as p,
        p.client() as client,
    ):
        await agent(client, MESSAGES, "a")
    await replay(plain, tmp_path / "again")
    assert [(line["status"], line["result"]) for line in pairs(tmp_path / "again")] == [
        ("ok", "a 0"),
        ("ok", "a 1"),
        ("ok", "a 2"),
    ]
    source = "live" if kept else "history"
    assert {line["source"] for line in pairs(tmp_path / "again")} == {source}
    flows = saved_flows(tmp_path / "again")
    with plain.open("rb") as file:
        recorded = [f for f in io.FlowReader(file).stream() if isinstance(f, http.HTTPFlow)]
    for ours, theirs in zip(flows, recorded, strict=True):
        assert ours.response
        assert theirs.response
        assert ours.response.raw_content == theirs.response.raw_content
        assert ours.request.headers["accept-encoding"] == theirs.request.headers["accept-encoding"]
        assert metadata.CHUNKS not in ours.metadata
    assert [metadata.INCOMPLETE in flow.metadata for flow in flows] == [False] * 3 + [True]


async def test_a_served_replay_is_rewritten_too(
    start: Start, upstream_tls: TLSFiles, tmp_path: Path
) -> None:
    """mitmproxy's `-S` gives a saved reply in one block, to a request like the recorded one."""
    body = messages_request([("Bash_0", "pwd", "1")], tools=[{"name": "Bash"}])
    async with (
        Standin(script(), tls=upstream_tls) as standin,
        start(ports={HOST: standin.port}) as p,
        p.client() as client,
    ):
        recorded = await client.post(URL + MESSAGES, content=body)
    file = capture(p.captures) / "traffic.flow"
    served = tmp_path / "served"
    async with (
        start(
            ports={},
            server_replay=[str(file)],
            keepserving=True,
            moontap_rewrite="duplicates",
            moontap_dir=str(served),
            connection_strategy="lazy",
        ) as q,
        q.client() as client,
    ):
        reply = await client.post(URL + MESSAGES, content=body)
    assert ID.findall(recorded.content) == [b"Bash_0"]
    (new,) = ID.findall(reply.content)
    assert new != b"Bash_0"
    assert reply.content.replace(new, b"Bash_0") == recorded.content
    (flow,) = saved_flows(served)
    assert flow.metadata[metadata.UPSTREAM_BODY] == recorded.content
    assert flow.metadata[metadata.REWRITTEN] == 1
