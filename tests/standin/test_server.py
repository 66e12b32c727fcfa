"""Real clients against the stand-in: both SDKs, HTTP/1.1 and HTTP/2, TLS, broken connections."""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
import time
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest

from moontap.standin import (
    Call,
    Conversation,
    Fault,
    FaultKind,
    Pacing,
    Script,
    Standin,
    Step,
    TLSFiles,
)
from tests.fixed import gzip_fixed
from tests.standin.bodies import chat_request, messages_request

TOOL: Any = {"name": "Bash", "input_schema": {"type": "object"}}
FUNCTION: Any = {"type": "function", "function": {"name": "Bash", "parameters": {"type": "object"}}}
SCRIPT = Script(
    default=Conversation(
        steps=(
            Step(text="One.", thinking="Hm.", calls=(Call("Bash", {"command": "pwd é"}),)),
            Step(calls=(Call("Bash", {"command": "ls"}), Call("Bash", {"command": "date"}))),
        )
    )
)
EXPECTED = [{"command": "pwd é"}, {"command": "ls"}, {"command": "date"}]


def http(tls: TLSFiles | None, *, http2: bool = False) -> httpx.AsyncClient:
    verify: Any = ssl.create_default_context(cafile=str(tls.ca)) if tls else True
    # Without TLS, httpx speaks HTTP/2 only when HTTP/1.1 is ruled out (h2c, prior knowledge).
    return httpx.AsyncClient(
        verify=verify, http2=http2, http1=not http2, trust_env=False, timeout=10
    )


async def messages_loop(client: anthropic.AsyncAnthropic, stream: bool) -> tuple[list[Any], str]:
    """Runs tool calls until the model is done: the inputs seen, and the closing text."""
    history: Any = [{"role": "user", "content": "go"}]
    inputs: list[Any] = []
    for _ in range(6):
        asked: Any = {"model": "kimi-k3", "max_tokens": 99, "tools": [TOOL], "messages": history}
        if stream:
            async with client.messages.stream(**asked) as events:
                message: Any = await events.get_final_message()
        else:
            message = await client.messages.create(**asked)
        calls = [b for b in message.content if b.type == "tool_use"]
        if message.stop_reason == "end_turn":
            return inputs, message.content[-1].text
        inputs += [c.input for c in calls]
        history += [
            {"role": "assistant", "content": [b.to_dict() for b in message.content]},
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": c.id, "content": "ok"} for c in calls
                ],
            },
        ]
    raise AssertionError("the loop does not end")


async def chat_loop(client: openai.AsyncOpenAI, stream: bool) -> tuple[list[Any], str]:
    history: Any = [{"role": "user", "content": "go"}]
    inputs: list[Any] = []
    for _ in range(6):
        asked: Any = {"model": "kimi-k3", "tools": [FUNCTION], "messages": history}
        if stream:
            async with client.chat.completions.stream(**asked) as events:
                reply: Any = await events.get_final_completion()
        else:
            reply = await client.chat.completions.create(**asked)
        message = reply.choices[0].message
        if reply.choices[0].finish_reason == "stop":
            return inputs, message.content
        inputs += [json.loads(c.function.arguments) for c in message.tool_calls]
        history.append(
            {
                "role": "assistant",
                "content": message.content,
                "tool_calls": [
                    {
                        "id": c.id,
                        "type": "function",
                        "function": {"name": c.function.name, "arguments": c.function.arguments},
                    }
                    for c in message.tool_calls
                ],
            }
        )
        history += [{"role": "tool", "tool_call_id": c.id, "content": "ok"}
                    for c in message.tool_calls]  # fmt: skip
    raise AssertionError("the loop does not end")


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("secure", [False, True], ids=["http", "tls"])
@pytest.mark.parametrize("mint", ["response", "history", "unique"])
@pytest.mark.parametrize("sdk", ["anthropic", "openai"])
async def test_tool_loops(sdk: str, mint: str, secure: bool, stream: bool, tls: TLSFiles) -> None:
    files = tls if secure else None
    async with Standin(SCRIPT, mint=mint, tls=files) as standin:
        own: Any = {"api_key": "made-up", "max_retries": 0, "http_client": sdk_http(sdk, tls)}
        if sdk == "anthropic":
            base = standin.base_url + "/anthropic"
            async with anthropic.AsyncAnthropic(base_url=base, **own) as client:
                inputs, text = await messages_loop(client, stream)
        else:
            base = standin.base_url + "/v1"
            async with openai.AsyncOpenAI(base_url=base, **own) as chat_client:
                inputs, text = await chat_loop(chat_client, stream)
    assert (inputs, text) == (EXPECTED, "All done.")
    ids = [i for r in standin.requests for i in r.answer["ids"]]
    repeats = {"response": 1, "history": 0, "unique": 0}[mint]
    assert len(ids) - len(set(ids)) == repeats
    assert [r.answer["kind"] for r in standin.requests] == ["step", "step", "final"]


def sdk_http(sdk: str, tls: TLSFiles) -> Any:
    verify = ssl.create_default_context(cafile=str(tls.ca))
    module: Any = anthropic if sdk == "anthropic" else openai
    return module.DefaultAsyncHttpxClient(verify=verify, trust_env=False)


@pytest.mark.parametrize("secure", [False, True], ids=["h2c", "tls"])
async def test_http2(secure: bool, tls: TLSFiles) -> None:
    files = tls if secure else None
    async with Standin(SCRIPT, tls=files) as standin, http(files, http2=True) as client:
        url = f"{standin.base_url}/any/prefix/v1/messages?beta=true"
        reply = await client.post(url, json=messages_request(stream=True))
        others = await asyncio.gather(
            *(client.post(url, json=messages_request(stream=True)) for _ in range(20))
        )
    assert reply.http_version == "HTTP/2"
    assert reply.headers["content-type"] == "text/event-stream"
    assert reply.text.endswith('data: {"type":"message_stop"}\n\n')
    assert {r.status_code for r in others} == {200}
    assert {r.http_version for r in standin.requests} == {"2"}


async def test_alpn_leaves_the_choice_to_the_client(tls: TLSFiles) -> None:
    async with Standin(tls=tls) as standin, http(tls) as client:
        reply = await client.post(f"{standin.base_url}/v1/chat/completions", json=chat_request())
    assert reply.http_version == "HTTP/1.1"


async def test_the_certificate_is_for_the_service(tls: TLSFiles) -> None:
    async with Standin(tls=tls) as standin, http(tls) as client:
        host = {"sni_hostname": "api.moonshot.cn"}
        assert (await client.head(standin.base_url, extensions=host)).status_code == 200
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            async with httpx.AsyncClient(trust_env=False) as stranger:
                await stranger.get(standin.base_url)


def standing(kind: FaultKind, **more: Any) -> Script:
    return Script(default=SCRIPT.default, faults=(Fault(kind, **more),))


@pytest.mark.parametrize("version", ["h1", "h1-tls", "h2c", "h2-tls"])
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
async def test_cut_breaks_the_connection_at_once(version: str, stream: bool, tls: TLSFiles) -> None:
    files = tls if version.endswith("tls") else None
    script = standing(FaultKind.CUT, at_request=1, after_events=3)
    got = bytearray()

    async def receive(client: httpx.AsyncClient, url: str) -> None:
        async with client.stream("POST", url, json=chat_request(stream=stream)) as reply:
            async for chunk in reply.aiter_raw():
                got.extend(chunk)

    async with (
        Standin(script, tls=files) as standin,
        http(files, http2=version.startswith("h2")) as client,
    ):
        url = f"{standin.base_url}/v1/chat/completions"
        began = time.monotonic()
        with pytest.raises(httpx.RemoteProtocolError):
            await receive(client, url)
        assert time.monotonic() - began < 2
        assert (await client.post(url, json=chat_request())).status_code == 200
    assert got.count(b"data: ") == (3 if stream else 0)
    assert got
    assert standin.requests[0].answer["cut"]


async def test_pacing_and_stall_are_silences() -> None:
    script = Script(
        pacing=Pacing(first_byte_ms=80),
        faults=(Fault(FaultKind.STALL, ms=120, after_events=1),),
    )
    async with Standin(script) as standin, http(None) as client:
        began = time.monotonic()
        arrived = []
        url = f"{standin.base_url}/v1/messages"
        async with client.stream("POST", url, json=messages_request(stream=True)) as reply:
            headers = time.monotonic() - began
            async for _ in reply.aiter_raw():
                arrived.append(time.monotonic() - began)
    assert headers >= 0.08
    assert arrived[1] - arrived[0] >= 0.1


async def test_a_stalled_exchange_does_not_hold_up_the_end() -> None:
    async with http(None) as client:
        async with Standin(standing(FaultKind.STALL, ms=60_000, after_events=1)) as standin:
            url, begun = f"{standin.base_url}/v1/messages", asyncio.Event()

            async def ask() -> None:
                request = messages_request(stream=True)
                async with client.stream("POST", url, json=request) as reply:
                    async for _ in reply.aiter_raw():
                        begun.set()

            asking = asyncio.create_task(ask())
            await begun.wait()  # ended before its first event, it is a whole reply with status 500
            began = time.monotonic()
        assert time.monotonic() - began < 3
        with pytest.raises(httpx.HTTPError):
            await asking


async def test_a_client_that_leaves_ends_its_exchange() -> None:
    async with Standin(Script(pacing=Pacing(event_ms=5_000))) as standin:
        async with http(None) as client:
            url = f"{standin.base_url}/v1/messages"
            async with client.stream("POST", url, json=messages_request(stream=True)) as reply:
                await anext(reply.aiter_raw())
        for _ in range(100):
            if not standin._app._tasks:
                break
            await asyncio.sleep(0.02)
        assert not standin._app._tasks


@pytest.mark.parametrize("header", [True, False])
async def test_encoding_on_the_wire(header: bool) -> None:
    script = standing(FaultKind.ENCODING, encoding="gzip", header=header)
    async with Standin(script) as standin, http(None) as client:
        url = f"{standin.base_url}/v1/messages"
        reply = await client.post(url, json=messages_request(stream=True))
    assert reply.headers.get("content-encoding") == ("gzip" if header else None)
    text = reply.content if header else gzip.decompress(reply.content)
    assert text.endswith(b'data: {"type":"message_stop"}\n\n')


ROUTES = [
    ("HEAD", "/", {}, 200, None),
    ("HEAD", "/nowhere", {}, 404, None),
    ("GET", "/v1/models", {}, 200, lambda j: j["data"][0]["id"] == "kimi-k3"),
    ("GET", "/anthropic/v1/models", {}, 200, lambda j: j["has_more"] is False),
    ("POST", "/anthropic/v1/messages/count_tokens", {"json": messages_request()}, 200,
     lambda j: j["input_tokens"] > 10),
    ("GET", "/nowhere", {}, 404, lambda j: j["error"]["type"] == "not_found_error"),
    ("GET", "/anthropic/x", {}, 404, lambda j: j["type"] == "error"),
    ("GET", "/x", {"headers": {"anthropic-version": "1"}}, 404, lambda j: j["type"] == "error"),
    ("GET", "/v1/messages", {}, 404, lambda j: j["type"] == "error"),
    ("POST", "/v1/messages", {"content": b"{"}, 400, lambda j: j["type"] == "error"),
    ("POST", "/v1/messages", {}, 400, lambda j: "messages" in j["error"]["message"]),
    ("POST", "/v1/chat/completions", {"json": {}}, 400, lambda j: "type" not in j),
    ("POST", "/v1/messages",
     {"content": gzip_fixed(json.dumps(messages_request()).encode()),
      "headers": {"content-encoding": "gzip"}}, 200, lambda j: j["stop_reason"] == "tool_use"),
    ("POST", "/v1/messages", {"content": b"x", "headers": {"content-encoding": "gzip"}}, 400,
     lambda j: "gzip" in j["error"]["message"]),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "more", "status", "check"), ROUTES)
async def test_routes(method: str, path: str, more: Any, status: int, check: Any) -> None:
    async with Standin() as standin, http(None) as client:
        reply = await client.request(method, standin.base_url + path, **more)
    assert reply.status_code == status
    assert reply.headers["msh-request-id"]
    if check:
        assert check(reply.json())


async def test_a_long_history_is_taken() -> None:
    filler = {"role": "user", "content": "x" * 5_000_000}
    async with Standin() as standin, http(None) as client:
        url = f"{standin.base_url}/v1/messages"
        reply = await client.post(url, json=messages_request(filler, stream=True))
    assert reply.text.endswith('data: {"type":"message_stop"}\n\n')


async def test_received_and_log(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    async with Standin(SCRIPT, log=log, keep_requests=1) as standin, http(None) as client:
        url = f"{standin.base_url}/anthropic/v1/messages?beta=true"
        secret = {"authorization": "Bearer made-up-key", "X-Api-Key": "made-up-key", "x-a": "1"}
        for _ in range(2):
            await client.post(url, json=messages_request(), headers=secret)
        lines = log.read_text().splitlines()  # written before the end: each line is flushed
    (last,) = standin.requests
    assert (last.index, last.method, last.http_version) == (1, "POST", "1.1")
    assert last.path == "/anthropic/v1/messages?beta=true"
    assert last.headers["authorization"] == "Bearer made-up-key"
    assert last.body == messages_request() == json.loads(last.raw)
    records = [json.loads(line) for line in lines]
    assert [r["index"] for r in records] == [0, 1]
    assert records[0]["headers"]["x-a"] == "1"
    assert records[0]["answer"]["ids"] == ["Bash_0"]
    assert "made-up-key" not in log.read_text()


async def test_a_taken_port_and_bad_files_fail_on_entry(tmp_path: Path) -> None:
    async with Standin() as standin:
        with pytest.raises(OSError, match="in use"):
            await Standin(port=standin.port).__aenter__()
    missing = TLSFiles(ca=tmp_path / "a", leaf=tmp_path / "b", name="x")
    with pytest.raises(OSError, match="No such file"):
        await Standin(tls=missing).__aenter__()
    with pytest.raises(OSError, match="No such file"):
        await Standin(log=tmp_path / "no" / "log").__aenter__()
