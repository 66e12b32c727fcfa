"""Recorded exchanges served to live requests."""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from backports import zstd

from moontap.capture import metadata
from moontap.redact.flow import Redactor
from moontap.replay import pace
from moontap.replay.library import load
from moontap.replay.results import any_result
from moontap.replay.server import Replay
from moontap.rules import Rules
from moontap.serving.tls import make_tls
from tests.replay.recording import flow, library, save
from tests.samples import CHAT, MESSAGES, chat_request, dump, messages_events, messages_request
from tests.serving.raw import http1, http2

EVENTS = messages_events("Bash_0")
KEY = "sk-made-up-7f3kq9z2m4x8c1v6b5n0"


def post(base: str, path: str, body: bytes, **headers: str) -> httpx.Response:
    with httpx.Client(trust_env=False) as client:
        return client.post(base + path, content=body, headers=headers)


async def asked(
    replay: Replay, body: bytes, path: str = MESSAGES, **headers: str
) -> httpx.Response:
    return await asyncio.to_thread(post, replay.base_url, path, body, **headers)


async def served(replay: Replay, bodies: Sequence[bytes]) -> list[str]:
    """The texts of the replies, one after the other."""
    return [(await asked(replay, body)).text for body in bodies]


def numbered(body: bytes, count: int, **more: Any) -> list[Any]:
    """As many exchanges with one request, whose replies say which they are."""
    return [flow(body, [str(n).encode()], **more) for n in range(1, count + 1)]


@pytest.mark.parametrize("client", [http1, http2])
async def test_what_upstream_sent_comes_again_chunk_by_chunk(client: Any, tmp_path: Path) -> None:
    body = messages_request()
    headers = {"Msh-Request-Id": "r-1", "Date": "Sun, 29 Nov 2026 16:41:30 GMT", "Server": "nginx"}
    recorded = flow(body, EVENTS, status=201, headers=headers | {"Transfer-Encoding": "chunked"})
    async with Replay(library(tmp_path, recorded)) as replay:
        seen = await client(replay.port, MESSAGES, body)
    assert seen.pieces == EVENTS
    assert (seen.status, seen.ended) == (201, True)
    got = {name.lower(): value for name, value in seen.headers}
    got.pop(b"transfer-encoding", None)
    assert got == {
        b"content-type": b"text/event-stream",
        b"msh-request-id": b"r-1",
        b"date": b"Sun, 29 Nov 2026 16:41:30 GMT",
        b"server": b"nginx",
    }


async def test_it_is_upstreams_body_that_is_served_not_the_clients(tmp_path: Path) -> None:
    """A rewritten reply, and one that came compressed: the tap may stand in front again."""
    packed = gzip.compress(b"".join(EVENTS))
    recorded = flow(messages_request(), [packed[:20], packed[20:]])
    assert recorded.response
    recorded.response.raw_content = b"what the client got"
    recorded.metadata[metadata.UPSTREAM_BODY] = packed
    recorded.metadata[metadata.UPSTREAM_ENCODING] = "gzip"
    async with Replay(library(tmp_path, recorded)) as replay:
        seen = await http1(replay.port, MESSAGES, messages_request())
        reply = await asked(replay, messages_request())
    assert seen.pieces == [packed[:20], packed[20:]]
    assert reply.headers["content-encoding"] == "gzip"
    assert reply.content == b"".join(EVENTS)


@pytest.mark.parametrize("client", [http1, http2])
async def test_it_breaks_off_where_upstream_did(client: Any, tmp_path: Path) -> None:
    body, other = messages_request(), messages_request(opening="other")
    made = library(tmp_path, flow(body, EVENTS[:3], cut=True), flow(other, None))
    async with Replay(made) as replay:
        cut = await client(replay.port, MESSAGES, body)
        none = await client(replay.port, MESSAGES, other)
        assert (cut.pieces, cut.status, cut.ended) == (EVENTS[:3], 200, False)
        assert (none.pieces, none.status, none.ended) == ([], 0, False)
        assert [one.status for one in replay.asked] == [200, 0]
        assert replay.unmatched == replay.unserved == []


@pytest.mark.parametrize(
    ("speed", "least", "most"), [("none", 0, 0.25), ("original", 0.5, 2), ("4", 0.12, 0.45)]
)
async def test_the_pace(speed: str, least: float, most: float, tmp_path: Path) -> None:
    recorded = flow(messages_request(), [b"a", b"b", b"c"], arrivals=[0, 150, 300], wait=200)
    async with Replay(library(tmp_path, recorded), pace=pace.parse(speed)) as replay:
        seen = await http1(replay.port, MESSAGES, messages_request())
    assert least <= seen.times[-1] <= most


@pytest.mark.parametrize("text", ["", "0", "-1", "nan", "inf", "fast"])
def test_what_is_no_pace(text: str) -> None:
    with pytest.raises(ValueError, match="is no pace: original, none, or a factor"):
        pace.parse(text)


async def test_tls(tmp_path: Path) -> None:
    tls = make_tls(tmp_path / "tls", server="replay")
    async with Replay(library(tmp_path, flow(messages_request(), EVENTS)), tls=tls) as replay:
        assert replay.base_url.startswith("https://127.0.0.1:")
        context = ssl.create_default_context(cafile=tls.ca)
        async with httpx.AsyncClient(verify=context, trust_env=False) as client:
            url = replay.base_url.replace("127.0.0.1", "localhost") + MESSAGES
            reply = await client.post(url, content=messages_request())
    assert reply.content == b"".join(EVENTS)


# Which one


async def test_one_request_again_and_again(tmp_path: Path) -> None:
    body = messages_request()
    async with Replay(library(tmp_path, *numbered(body, 3))) as replay:
        assert await served(replay, [body] * 7) == ["1", "2", "3", "1", "2", "3", "1"]


async def test_once(tmp_path: Path) -> None:
    body = messages_request()
    async with Replay(library(tmp_path, *numbered(body, 2)), once=True) as replay:
        first, second, third = [await asked(replay, body) for _ in range(3)]
        assert (first.text, second.text, third.status_code) == ("1", "2", 400)
        (said,) = replay.unmatched
        assert said == third.json()["error"]["message"]
        assert "every recorded answer to this request was served once" in said
        assert "session.flow 2 of 2 (turn 1)" in said


async def test_the_one_with_the_same_prompt_and_limits_goes_first(tmp_path: Path) -> None:
    one, two = (messages_request(system=word, max_tokens=9) for word in ("one", "two"))
    three = messages_request(system="two", max_tokens=99)
    recorded = [*numbered(one, 2), flow(two, [b"3"]), flow(three, [b"4"])]
    async with Replay(library(tmp_path, *recorded)) as replay:
        assert await served(replay, [three, two, two, one, one]) == ["4", "3", "3", "1", "2"]


async def test_what_was_asked_to_the_letter_goes_first(tmp_path: Path) -> None:
    days = [messages_request(opening=f"It is 2026-11-2{n}.") for n in range(1, 4)]
    recorded = [flow(day, [str(n).encode()]) for n, day in enumerate(days, 1)]
    async with Replay(library(tmp_path, *recorded)) as replay:
        other = messages_request(opening="It is 2026-12-01.")
        asked_for = [days[1], other, days[1], other, other]
        # One that was never recorded gets what was served least.
        assert await served(replay, asked_for) == ["2", "1", "2", "3", "1"]


NAMES = ("2026-01-01", "927d3e36-6ca2-4fcb-93c8-ebedc68d5c53", "1812345678")
OTHERS = ("2026-06-01", "00000000-6ca2-4fcb-93c8-ebedc68d5c53", "1912345678")


@pytest.mark.parametrize("name", range(3))
@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("path", [MESSAGES, CHAT])
async def test_requests_that_differ_by_what_a_placeholder_stands_for_do_not_swap(
    path: str, once: bool, name: int, tmp_path: Path
) -> None:
    """Two sub-agents at once, in another order than then, with what changes from run to run: the
    session's id, the system prompt, the spelling, and the date that a tool gave."""
    make = messages_request if path == MESSAGES else chat_request

    def turns(name: str, run: str, spaces: int | None) -> list[bytes]:
        more: dict[str, Any] = {"metadata": {"user_id": run}, "system": f"run {run}"}
        history = [("a", "date", f"it is {run}")]
        made = [make(said, opening=f"weather {name}?", **more) for said in ((), history)]
        return [json.dumps(json.loads(one), indent=spaces).encode() for one in made]

    then = [turns(one[name], "2026-11-29", None) for one in (NAMES, OTHERS)]
    recorded = [
        flow(then[agent][turn], [f"{agent}-{turn}".encode()], path=path)
        for turn, agent in ((0, 0), (0, 1), (1, 0), (1, 1))
    ]
    now = [turns(one[name], "2026-12-01", 1) for one in (NAMES, OTHERS)]
    async with Replay(library(tmp_path, *recorded), once=once) as replay:
        for turn, agent in ((0, 1), (0, 0), (1, 1), (1, 0)):
            assert (await asked(replay, now[agent][turn], path)).text == f"{agent}-{turn}"


async def test_a_refusal_and_then_an_answer_come_in_recorded_order(tmp_path: Path) -> None:
    days = [messages_request(opening=f"It is 2026-11-2{n}.", system="x" * n) for n in (1, 2)]
    recorded = [
        flow(day, [b"%d%d" % (number, status)], status=status)
        for number, day in enumerate(days)
        for status in (529, 200)
    ]
    async with Replay(library(tmp_path, *recorded)) as replay:
        got = [await asked(replay, days[n]) for n in (1, 0, 1, 0)]
        assert [reply.text for reply in got] == ["1529", "0529", "1200", "0200"]


async def test_two_sessions_at_once_get_their_own(tmp_path: Path) -> None:
    def turn(session: int, count: int) -> bytes:
        history = [(f"Bash_{n}", "pwd", f"{session}-{n}") for n in range(count)]
        return messages_request(history, opening="go")

    turns = [(s, n) for n in range(5) for s in range(4)]
    recorded = [flow(turn(s, n), [f"{s}-{n}".encode()] * 3) for s, n in turns if n or not s]
    async with Replay(library(tmp_path, *recorded)) as replay:
        got = await asyncio.gather(*(asked(replay, turn(s, n)) for s, n in turns))
    assert [reply.text for reply in got] == [f"{s if n else 0}-{n}" * 3 for s, n in turns]


@pytest.mark.parametrize("asking", ["GET /v1/models", "HEAD /anthropic", "POST /v1/files"])
async def test_other_requests_are_served_too(asking: str, tmp_path: Path) -> None:
    method, path = asking.split()
    recorded = flow(b'{"a": "2026-11-29"}' if method == "POST" else None, method=method, path=path)
    async with (
        Replay(library(tmp_path, recorded)) as replay,
        httpx.AsyncClient(trust_env=False) as client,
    ):
        body = b'{"a":"2026-12-01"}' if method == "POST" else None
        reply = await client.request(method, replay.base_url + path, content=body)
        assert reply.status_code == 200
        assert reply.content == (b"" if method == "HEAD" else b"{}")


# Secrets and encodings


@pytest.mark.parametrize("redacted", [True, False])
async def test_a_secret_is_masked_in_a_capture_and_not_in_a_request(
    redacted: bool, tmp_path: Path
) -> None:
    """Another key than the one that was masked; and the capture of a bare mitmproxy."""
    recorded = flow(
        messages_request([("a", f"echo {KEY}", f"{KEY}\n")]),
        asked={"Authorization": f"Bearer {KEY}"},
    )
    if redacted:
        assert Redactor(Rules()).redact(recorded)
    other = KEY if not redacted else "not-shaped-like-a-key-and-longer-than-that"
    body = messages_request([("a", f"echo {other}", f"{other}\n")])
    async with Replay(library(tmp_path, recorded)) as replay:
        reply = await asked(replay, body, authorization=f"Bearer {other}")
        assert reply.status_code == 200, reply.text


async def test_no_secret_is_in_what_is_said(tmp_path: Path) -> None:
    recorded = flow(messages_request([("a", "pwd", f"key {KEY} one")]))
    async with Replay(library(tmp_path, recorded)) as replay:
        body = messages_request([("a", "pwd", f"key {KEY} two")])
        reply = await asked(replay, body, f"{MESSAGES}?key={KEY}")
        assert reply.status_code == 400
        assert KEY not in f"{reply.text}{replay.asked}"
        assert "messages[2] (user), tool result" in reply.text


@pytest.mark.parametrize(("name", "pack"), [("gzip", gzip.compress), ("zstd", zstd.compress)])
async def test_request_bodies_may_be_compressed(
    name: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    body = messages_request()
    recorded = [flow(body), flow(pack(body), asked={"Content-Encoding": name})]
    async with Replay(library(tmp_path, *recorded), once=True) as replay:
        headers = {"content-encoding": name}
        replies = [await asked(replay, pack(body), **headers), await asked(replay, body)]
        assert [reply.status_code for reply in replies] == [200, 200]


# What nothing matches


async def test_an_error_in_the_protocols_own_form(tmp_path: Path) -> None:
    recorded = [flow(messages_request([("a", "pwd", "/w")])), flow(chat_request(), path=CHAT)]
    async with Replay(library(tmp_path, *recorded)) as replay:
        reply = await asked(replay, messages_request([("a", "pwd", "/elsewhere")]))
        assert reply.status_code == 400
        assert reply.json() == {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "moontap replay: no recorded request matches. Nearest: session.flow "
                "1 of 2 (turn 2). It differs: messages[2] (user), tool result: recorded '/w', now "
                "'/elsewhere'. If that does not matter, say so under `replay` in a rules file "
                "(docs/rules.md). Or any tool result may do: --any-result.",
            },
        }
        reply = await asked(replay, chat_request(opening="x"), CHAT)
        assert reply.status_code == 400
        assert reply.json()["error"]["message"].endswith("(docs/rules.md).")
        assert "messages[0] (user), text: recorded 'go', now 'x'" in reply.text
        reply = await asked(replay, b"{}", "/v1/files")
        assert "None is of this kind: POST /v1/files." in reply.json()["error"]["message"]
        assert len(replay.unmatched) == 3
        assert [one.matched for one in replay.asked] == [None] * 3
        assert replay.unserved == ["session.flow 1 of 2 (turn 2)", "session.flow 2 of 2 (turn 1)"]


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"messages":1}', b"\xff"])
async def test_a_body_that_is_no_request_is_said(body: bytes, path: str, tmp_path: Path) -> None:
    async with Replay(library(tmp_path, flow(messages_request()))) as replay:
        reply = await asked(replay, body, path)
        assert "The body of this one is no JSON object with a list of `messages`." in reply.text


ESCAPE = "\x1b[2J\x1b]0;x\x07\x9b1m\u202e[lone]"


def escaped(*history: Any, **more: Any) -> bytes:
    """A request; half of a pair of surrogates in the place of `[lone]`."""
    return messages_request(*history, **more).replace(b"[lone]", b"\\ud83d")


@pytest.mark.parametrize(
    "body",
    [
        escaped(opening=f"go {ESCAPE}"),
        escaped([("a", ESCAPE, "/w")]),
        escaped([("a", "pwd", ESCAPE)]),
        escaped(tools=[{"name": ESCAPE}]),
        json.dumps({**json.loads(messages_request()), "model": ESCAPE}).encode(),
        messages_request().replace(b'"user"', json.dumps(ESCAPE).encode()),
        dump({"model": "kimi-k3", "stream": True, "messages": [{"content": [{"type": "\x9b"}]}]}),
    ],
    ids=["text", "argument", "result", "tool", "model", "role", "kind"],
)
async def test_nothing_that_a_request_holds_moves_a_cursor(body: bytes, tmp_path: Path) -> None:
    recorded = flow(messages_request([("a", "pwd", "/w")]))
    async with Replay(library(tmp_path, recorded)) as replay:
        reply = await asked(replay, body)
        assert reply.json()["error"]["message"].isprintable()
        assert replay.unmatched == [reply.json()["error"]["message"]]


async def test_who_asks_again_with_other_tools_is_told_the_first_reason(tmp_path: Path) -> None:
    """Claude Code leaves tools out after a refusal, and shows the last reason that it got."""
    tools = [{"name": "Bash"}]
    recorded = flow(messages_request([("a", "pwd", "/w")], tools=tools))
    async with Replay(library(tmp_path, recorded)) as replay:
        for given in (tools, [], [{"name": "Read"}]):
            reply = await asked(replay, messages_request([("a", "pwd", "/x")], tools=given))
            assert "tool result: recorded '/w', now '/x'" in reply.text
        reply = await asked(replay, messages_request([("a", "pwd", "/w")], tools=[]))
        assert "It differs: `tools`" in reply.text


@pytest.mark.parametrize(
    ("path", "request_of"), [(MESSAGES, messages_request), (CHAT, chat_request)]
)
async def test_any_result_will_do(tmp_path: Path, path: str, request_of: Any) -> None:
    file = tmp_path / "session.flow"
    save(file, [flow(request_of([("a", "pwd", "/w")]), path=path)])
    async with Replay(load([file], any_result(Rules()))) as replay:
        assert (await asked(replay, request_of([("b", "pwd", "/x")]), path)).status_code == 200
        assert (await asked(replay, request_of([("b", "ls", "/w")]), path)).status_code == 400


async def test_requests_that_are_not_json_are_refused_too(tmp_path: Path) -> None:
    async with Replay(library(tmp_path, flow(messages_request()))) as replay:
        for body in (b"", b"{", b"[" * 5000, b'{"messages": 1}', b"\xff\xfe", dump({})):
            assert (await asked(replay, body)).status_code == 400
        assert len(replay.unmatched) == 6


async def test_a_file_that_has_changed_meanwhile_is_said(tmp_path: Path) -> None:
    body = messages_request()
    made = library(tmp_path, flow(body))
    (tmp_path / "session.flow").write_bytes(b"")
    async with Replay(made) as replay:
        reply = await asked(replay, body)
    assert reply.status_code == 400
    assert "session.flow: has changed since it was read" in reply.text


async def test_by_rule_it_matches(tmp_path: Path) -> None:
    rules = r"replay: {replace: [{pattern: 'run-\d+', with: run}], ignore: ['$.messages[0]']}"
    recorded = flow(messages_request([("a", "pwd", "/run-1")]))
    body = json.loads(messages_request([("a", "pwd", "/run-2")], opening="other"))
    async with Replay(library(tmp_path, recorded, rules=rules)) as replay:
        assert (await asked(replay, dump(body))).status_code == 200


async def test_a_damaged_file_is_served_as_far_as_it_goes(tmp_path: Path) -> None:
    bodies = [messages_request(opening=str(n)) for n in range(3)]
    path = save(tmp_path / "x.flow", map(flow, bodies))
    data = path.read_bytes()
    middle = len(data) // 2
    path.write_bytes(data[:middle] + b"\0" * 40 + data[middle + 40 :])
    made = load([path], Rules())
    assert made.losses[path].records == 1
    async with Replay(made) as replay:
        codes = [(await asked(replay, body)).status_code for body in bodies]
    assert codes == [200, 400, 200]
