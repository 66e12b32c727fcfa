"""The guard in a real mitmproxy: what upstream sees, what the client gets, what is on record."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest
from mitmproxy.exceptions import OptionsError
from mitmproxy.test import taddons

from moontap.addon import Moontap
from moontap.capture import metadata
from moontap.capture.exchange import client_request
from moontap.capture.upstream import answer, before_the_tap
from moontap.gate import Gate
from tests.conftest import Start
from tests.proxying import Tap, capture, pairs, replay, saved_flows
from tests.samples import (
    CHAT,
    MESSAGES,
    Pair,
    chat_request,
    chat_whole,
    messages_request,
    messages_whole,
)
from tests.upstreams import JSON, Reply, Scripted, raw_upstream

pytestmark = pytest.mark.usefixtures("_own_home")

KEY = "made-up-key"
MAKE: dict[str, Callable[..., bytes]] = {MESSAGES: messages_request, CHAT: chat_request}
WHOLE = {MESSAGES: messages_whole, CHAT: chat_whole}


def loop(count: int, *, id_: str = "Bash_{n}") -> list[Pair]:
    """A history in which the same was done so many times."""
    return [(id_.format(n=n), "pwd", "/w") for n in range(count)]


@asynccontextmanager
async def guarded(
    start: Start, guard: str, path: str = MESSAGES, **opts: Any
) -> AsyncIterator[tuple[Tap, Scripted, httpx.AsyncClient]]:
    """A tap before an upstream that always calls the same tool."""
    calls = [WHOLE[path](f"Bash_{n}") for n in range(20)]
    upstream = Scripted(*(Reply(body, JSON, framing="length") for body in calls))
    async with (
        raw_upstream(upstream, None) as port,
        start(ports={}, mode=f"reverse:http://127.0.0.1:{port}", moontap_guard=guard, **opts) as p,
        httpx.AsyncClient(trust_env=False, timeout=20, base_url=p.url) as client,
    ):
        yield p, upstream, client


def findings(captures: Path) -> list[dict[str, Any]]:
    text = (capture(captures) / "findings.jsonl").read_text("utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    return [line for line in lines if line["code"] == "no-progress"]


@pytest.mark.usefixtures("_no_errors")
@pytest.mark.parametrize("coding", ["", "gzip"])
@pytest.mark.parametrize("path", MAKE)
async def test_a_reminder(
    start: Start, path: str, coding: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    press, unpress = (gzip.compress, gzip.decompress) if coding else (bytes, bytes)
    sent = [MAKE[path](loop(n)) for n in (0, 1, 2, 3, 3, 4)]
    async with guarded(start, "remind", path) as (p, upstream, client):
        for body in sent:
            headers = {"content-encoding": coding} if coding else {}
            reply = await client.post(path, content=press(body), headers=headers)
            assert reply.status_code == 200
    got = [unpress(body) for _, body in upstream.requests]
    assert [before == after for before, after in zip(sent, got, strict=True)] == [
        *(True, True, True, False, False, True)
    ]
    assert upstream.requests[3][1] == upstream.requests[4][1]  # sent again: the same bytes
    last = json.loads(got[3])["messages"][-1]
    assert (last["role"], json.dumps(last).count("3 times in a row")) == ("user", 1)
    flows = saved_flows(p.captures)
    assert [client_request(flow) for flow in flows] == sent
    assert [before_the_tap(flow).request.content for flow in flows] == sent
    assert [flow.metadata.get(metadata.REPEATS) for flow in flows] == [None, None, None, 3, 3, None]
    assert caplog.text.count("reminded the model: Bash was called 3 times") == 1
    assert [line["evidence"]["count"] for line in findings(p.captures)] == [3]
    await replay(capture(p.captures) / "traffic.flow", tmp_path / "again")
    assert pairs(tmp_path / "again") == pairs(p.captures)
    assert findings(tmp_path / "again") == findings(p.captures)


@pytest.mark.usefixtures("_no_errors")
@pytest.mark.parametrize("path", MAKE)
async def test_a_reminder_that_found_no_place_goes_with_the_next_request(
    start: Start, path: str
) -> None:
    """`messages` stands twice: decoders take the last, and nothing shall be put into the first."""
    sent = [MAKE[path](loop(n)) for n in (0, 1, 2, 3, 4)]
    again = json.dumps(json.loads(sent[3])["messages"]).encode()
    sent[3] = sent[3].rstrip()[:-1] + b',"messages":' + again + b"}"
    async with guarded(start, "remind", path) as (p, upstream, client):
        for body in sent:
            assert (await client.post(path, content=body)).status_code == 200
    got = [body for _, body in upstream.requests]
    assert got[:4] == sent[:4]
    assert b"4 times in a row" in got[4]
    flows = saved_flows(p.captures)
    marked = [metadata.REMINDED in flow.metadata for flow in flows]
    assert marked == [False, False, False, False, True]


@pytest.mark.usefixtures("_no_errors")
@pytest.mark.parametrize("path", MAKE)
async def test_a_reminder_in_a_history_that_was_healed(start: Start, path: str) -> None:
    sent = [MAKE[path](loop(n, id_="Bash_0")) for n in (1, 2, 3)]
    async with guarded(start, "remind", path, moontap_rewrite="duplicates") as (
        p,
        upstream,
        client,
    ):
        for body in sent:
            await client.post(path, content=body)
    flows = saved_flows(p.captures)
    last = flows[-1]
    assert {metadata.HEALED, metadata.REMINDED} <= last.metadata.keys()
    assert upstream.requests[-1][1].count(b"Bash_0_t") == 4
    assert b"3 times in a row" in upstream.requests[-1][1]
    assert [client_request(flow) for flow in flows] == sent
    assert before_the_tap(last).request.content == sent[-1]


@pytest.mark.usefixtures("_no_errors")
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("path", MAKE)
async def test_a_block(
    start: Start, path: str, stream: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with guarded(start, "block", path) as (p, upstream, client):
        for count in range(12):
            reply = await client.post(path, content=MAKE[path](loop(count), stream=stream))
            assert reply.status_code == 200
        body = MAKE[path](loop(12), stream=stream)
        refused = [await client.post(path, content=body) for _ in range(2)]
        assert len(upstream.requests) == 12
        said = [p.master.commands.call("moontap.guard.release") for _ in range(2)]
        assert said == [
            ["the guard lets go on what it had stopped: 1"],
            ["the guard has stopped none of them"],
        ]
        assert (await client.post(path, content=body)).status_code == 200
    for reply in refused:
        assert (reply.status_code, reply.headers["content-type"]) == (423, JSON)
        details = reply.json()["error"]["blocked_no_progress"]
        assert (details["tool"], details["count"]) == ("Bash", 12)
        assert details["requires_review"] is True
    flows = saved_flows(p.captures)
    assert (details["first_exchange"], details["last_exchange"]) == (flows[0].id, flows[11].id)
    blocked = [flow for flow in flows if flow.metadata.get(metadata.BLOCKED)]
    assert [flow.metadata[metadata.BLOCKED] for flow in blocked] == ["blocked_no_progress"] * 2
    assert [answer(flow) for flow in blocked] == [None, None]
    assert [before_the_tap(flow).response for flow in blocked] == [None, None]
    assert caplog.text.count("moontap stopped this agent") == 1
    lines = (capture(p.captures) / "findings.jsonl").read_text("utf-8")
    assert "api-refused" not in lines
    assert [line["evidence"]["count"] for line in findings(p.captures)] == [3, 5, 8, 12]
    await replay(capture(p.captures) / "traffic.flow", tmp_path / "again")
    assert (capture(tmp_path / "again") / "findings.jsonl").read_text("utf-8") == lines


@pytest.mark.usefixtures("_no_errors")
async def test_the_limits_of_a_session(start: Start, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("guard: {session: {calls: 2}}\n")
    async with guarded(start, "block", moontap_rules=str(rules)) as (p, upstream, client):
        headers = {"x-claude-code-session-id": "s"}
        for opening, status in (("a", 200), ("b", 200), ("c", 423)):
            body = messages_request(opening=opening)
            reply = await client.post(MESSAGES, content=body, headers=headers)
            assert reply.status_code == status
        other = await client.post(MESSAGES, content=messages_request())
        p.master.commands.call("moontap.guard.release", [])
        again = await client.post(MESSAGES, content=body, headers=headers)
    assert (other.status_code, again.status_code, len(upstream.requests)) == (200, 200, 4)
    details = reply.json()["error"]["blocked_limit"]
    assert (details["limit"], details["used"], details["allowed"]) == ("calls", 2, 2)


async def test_limits_that_nobody_keeps_are_said(
    start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("guard: {session: {calls: 1}}\n")
    async with guarded(start, "warn", moontap_rules=str(rules)) as (_, _, client):
        for opening in "ab":
            reply = await client.post(MESSAGES, content=messages_request(opening=opening))
            assert reply.status_code == 200
    assert "the rules limit sessions; that needs moontap_guard=block" in caplog.text


@pytest.mark.usefixtures("_no_errors")
@pytest.mark.parametrize(("guard", "warns"), [("off", False), ("warn", True)])
async def test_off_is_silent_and_writes_it_down(
    start: Start, guard: str, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    sent = [messages_request(loop(n)) for n in range(14)]
    async with guarded(start, guard) as (p, upstream, client):
        for body in sent:
            await client.post(MESSAGES, content=body)
    assert [body for _, body in upstream.requests] == sent
    assert [line["evidence"]["count"] for line in findings(p.captures)] == [3, 5, 8, 12]
    said = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert any("no-progress" in record.getMessage() for record in said) is warns


@pytest.mark.usefixtures("_no_errors")
async def test_it_is_switched_for_the_next_request(start: Start) -> None:
    body = messages_request(loop(12))
    async with guarded(start, "warn") as (p, _, client):
        got = []
        for guard in ("warn", "block", "off", "block"):
            p.master.options.update(moontap_guard=guard)
            got.append((await client.post(MESSAGES, content=body)).status_code)
    assert got == [200, 423, 200, 423]


HOSTILE = [
    b"",
    b"[]",
    b"\xff\xfe{",
    b'{"messages":{}}',
    b'{"messages":[null,5]}',
    b'{"messages":[{"role":"user","content":"x"}],"messages":[]}',
]


@pytest.mark.parametrize("guard", ["remind", "block"])
async def test_what_cannot_be_read_goes_through(start: Start, guard: str) -> None:
    async with guarded(start, guard) as (p, upstream, client):
        for body in HOSTILE:
            assert (await client.post(MESSAGES, content=body)).status_code == 200
        coded = {"content-encoding": "gzip"}
        assert (await client.post(MESSAGES, content=b"no gzip", headers=coded)).status_code == 200
        p.master.options.update(stream_large_bodies="1k")
        large = messages_request(loop(20))
        assert (await client.post(MESSAGES, content=large)).status_code == 200
    assert [body for _, body in upstream.requests] == [*HOSTILE, b"no gzip", large]


@pytest.mark.parametrize("guard", ["remind", "block"])
async def test_a_fault_of_its_own_lets_the_request_through(
    start: Start, guard: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("what nobody thought of")

    monkeypatch.setattr(Gate, "ask", fail)
    async with guarded(start, guard) as (_, upstream, client):
        for _ in range(2):
            body = messages_request(loop(20))
            assert (await client.post(MESSAGES, content=body)).status_code == 200
    assert len(upstream.requests) == 2
    assert caplog.text.count("what nobody thought of") == 1


async def test_a_reminder_without_a_place_is_left_out(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    body = json.loads(messages_request(loop(3)))
    body["messages"].append({"role": "assistant", "content": "I begin"})
    async with guarded(start, "remind") as (p, upstream, client):
        sent = json.dumps(body).encode()
        assert (await client.post(MESSAGES, content=sent)).status_code == 200
    assert [got for _, got in upstream.requests] == [sent]
    assert metadata.REMINDED not in saved_flows(p.captures)[0].metadata
    assert "the newest message is of the role 'assistant'" in caplog.text


@pytest.mark.parametrize("value", ["on", "BLOCK", ""])
async def test_a_bad_value_is_refused(value: str) -> None:
    addon = Moontap()
    with taddons.context(addon) as context:
        with pytest.raises(OptionsError, match="is not one of off, warn, remind, block"):
            context.configure(addon, moontap_guard=value)
        assert context.options.moontap_guard == "warn"


def ask_anthropic(url: str, stream: bool) -> Any:
    client = anthropic.Anthropic(base_url=f"{url}/anthropic", api_key=KEY)
    asked = json.loads(messages_request(loop(12)))
    asked |= {"stream": stream, "max_tokens": 99}
    return client.messages.create(**asked)


def ask_openai(url: str, stream: bool) -> Any:
    client = openai.OpenAI(base_url=f"{url}/v1", api_key=KEY)
    return client.chat.completions.create(**json.loads(chat_request(loop(12))) | {"stream": stream})


@pytest.mark.usefixtures("_no_errors")
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("ask", "error"),
    [(ask_anthropic, anthropic.APIStatusError), (ask_openai, openai.APIStatusError)],
)
async def test_the_sdks_do_not_try_again(
    start: Start, ask: Callable[[str, bool], Any], error: type[Exception], stream: bool
) -> None:
    """With the retries that they make by default."""
    async with guarded(start, "block") as (p, upstream, _):
        with pytest.raises(error, match="blocked_no_progress: moontap stopped") as caught:
            await asyncio.to_thread(ask, p.url, stream)
    body: Any = caught.value
    details = body.body.get("error", body.body)
    assert details["blocked_no_progress"]["requires_review"] is True
    assert (len(upstream.requests), len(saved_flows(p.captures))) == (0, 1)
