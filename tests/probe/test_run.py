"""A whole probe against the real stand-in: the verdicts are told apart, and the traffic is kept."""

from __future__ import annotations

import asyncio
import re
import socket
import stat
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mitmproxy import http, io

from moontap.care.outfile import Refused
from moontap.care.scrub import findings
from moontap.probe.dialect import DIALECTS
from moontap.probe.run import Outcome, Plan, probe
from moontap.probe.verdict import Verdict
from moontap.standin import Call, Conversation, Fault, FaultKind, Script, Standin, Step
from moontap.tapping.upstream import parse
from tests import proxying

KEY = "made-up-key-of-the-probe-tests-4711"
PWD = Step((Call("pwd"),))
TWICE = Conversation(steps=(PWD, PWD))


@pytest.fixture(scope="module")
def confdir(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("conf"))


async def run(
    url: str, out: Path, confdir: str, protocol: str = "both", **more: Any
) -> tuple[Outcome, str]:
    lines: list[str] = []
    plan = Plan(parse(url), DIALECTS[protocol], "kimi-k3", KEY, confdir=confdir, **more)
    outcome = await probe(plan, out, lines.append)
    text = "\n".join(lines)
    assert max(len(line) for line in text.splitlines() if "could not ask" not in line) < 160
    assert all(line.isprintable() for line in text.splitlines())
    assert KEY not in text
    return outcome, text


def flows(out: Path) -> list[http.HTTPFlow]:
    with out.open("rb") as file:
        return [one for one in io.FlowReader(file).stream() if isinstance(one, http.HTTPFlow)]


UUID = "[0-9a-f-]{36}"
IDS = {
    # mint: form -> what rounds 1, 2 and 3 show; no third where two settle it
    ("response", "underscore"): ["pwd_0", "pwd_0"],
    ("response", "colon"): ["pwd:0", "pwd:0"],
    ("history", "underscore"): ["pwd_0", "pwd_1", "pwd_0"],
    ("history", "colon"): ["pwd:0", "pwd:1", "pwd:0"],
    ("unique", "underscore"): [rf"(toolu_\w{{24}}|chatcmpl-tool-{UUID})"] * 3,
    ("unique", "colon"): [rf"(toolu_\w{{24}}|chatcmpl-tool-{UUID})"] * 3,
}
VERDICTS = {
    "response": Verdict.REUSED,
    "history": Verdict.COUNTED,
    "unique": Verdict.UNIQUE,
}
STATUSES = {2: ["ok", "unanswered"], 3: ["ok", "unanswered", "unanswered"]}


@pytest.mark.parametrize(("mint", "form"), IDS)
async def test_the_ways_of_minting_are_told_apart(
    tmp_path: Path, confdir: str, mint: str, form: str
) -> None:
    """In both protocols, streamed and whole; and the file gives the pairs that were played."""
    out, ids = tmp_path / "probe.flow", IDS[mint, form]
    async with Standin(Script(default=TWICE), mint=mint, id_form=form) as standin:
        outcome, text = await run(standin.base_url, out, confdir)
        received = len(standin.requests)
    blocks = text.split("\n\n")
    assert [block.strip().splitlines()[0] for block in blocks[:4]] == [
        f"{protocol}, {how}"
        for protocol in ("Anthropic Messages", "OpenAI Chat Completions")
        for how in ("streamed", "whole")
    ]
    for block in blocks[:4]:
        rounds = re.findall(r"^  ROUND (\d)  message (\S+)  tool call (\S+)", block, re.M)
        assert [number for number, _, _ in rounds] == ["1", "2", "3"][: len(ids)]
        assert len({message for _, message, _ in rounds}) == len(ids)
        for wanted, (_, _, id_) in zip(ids, rounds, strict=True):
            assert re.fullmatch(wanted, id_)
        assert [word for word in VERDICTS.values() if f"\n  {word}: " in block] == [VERDICTS[mint]]
        assert "note:" not in block
    assert outcome.verdicts == [VERDICTS[mint]] * 4
    assert outcome.code == (0 if mint == "unique" else 1)
    assert outcome.asked == outcome.answered == received == 4 * len(ids)
    assert ("remedy:" in text) is (mint != "unique")
    # what was kept
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert KEY.encode() not in out.read_bytes()
    kept = flows(out)
    assert len(kept) == 4 * len(ids)
    assert [finding for flow in kept for finding in findings(flow)] == []
    await proxying.replay(out, tmp_path / "again")
    lines = proxying.pairs(tmp_path / "again")
    assert sorted(line["status"] for line in lines) == sorted(STATUSES[len(ids)] * 4)
    assert {line["tool"] for line in lines} == {"pwd"}
    assert [line["result"] for line in lines if line["status"] == "ok"] == ["/work/project"] * 4
    shown = re.findall(r"tool call (\S+)", text)
    assert sorted(line["id"] for line in lines) == sorted(shown)
    assert not any(line["rewritten"] for line in lines)


async def test_parallel_calls_and_thinking(tmp_path: Path, confdir: str) -> None:
    steps = (Step((Call("pwd"), Call("pwd", {"n": 2})), "I look.", "Where?"), PWD)
    script = Script(default=Conversation(steps=steps))
    async with Standin(script, mint="history") as standin:
        outcome, text = await run(standin.base_url, tmp_path / "p.flow", confdir)
    assert outcome.verdicts == [Verdict.COUNTED] * 4
    assert "tool call pwd_0, pwd_1\n" in text
    assert "tool call pwd_2\n" in text


async def test_a_reply_out_of_a_cache_is_noted(tmp_path: Path, confdir: str) -> None:
    """mitmproxy's own replay, a gateway's cache: the message id gives it away."""
    body = (
        b'{"id":"same","choices":[{"index":0,"finish_reason":"tool_calls","message":'
        b'{"content":"","tool_calls":[{"id":"pwd:0","function":{"name":"pwd"}}]}}]}'
    )
    async with _answering(body) as url:
        outcome, text = await run(url, tmp_path / "p.flow", confdir, "openai")
    assert outcome.verdicts == [Verdict.REUSED] * 2
    assert text.count("note: the message id came back, too") == 2


def status(code: int, **more: Any) -> Fault:
    return Fault(FaultKind.STATUS, status=code, **more)


SCREEN = f'{{"error":{{"message":"\\u001b[2J no {KEY}"}}}}'
HTML = "<html><body>504 Gateway Time-out</body></html>"


@pytest.mark.parametrize(
    ("faults", "said", "asked"),
    [
        ([status(401, body=SCREEN)], '401 "\\x1b[2J no ***": it does not take the key', 1),
        ([status(404)], "404 ", 4),
        ([status(429)], "429 ", 4),
        ([status(504, body=HTML, content_type="text/html")], "504: the server is in trouble", 4),
        ([status(307)], "307", 4),
        ([Fault(FaultKind.EMPTY)], "an empty reply", 4),
        ([Fault(FaultKind.CUT, after_bytes=250)], "the reply broke off before its end", 4),
        ([Fault(FaultKind.EMPTY_ID)], "a tool call without an id", 4),
        ([Fault(FaultKind.STALL, ms=60_000)], "no end of the reply within 0.7 s", 1),
    ],
    ids=lambda value: value[0].kind + str(value[0].status) if isinstance(value, list) else "",
)
async def test_where_it_cannot_ask(
    tmp_path: Path, confdir: str, faults: Sequence[Fault], said: str, asked: int
) -> None:
    async with Standin(Script(default=TWICE, faults=tuple(faults))) as standin:
        seconds = 0.7 if faults[0].kind is FaultKind.STALL else 20
        outcome, text = await run(standin.base_url, tmp_path / "p.flow", confdir, seconds=seconds)
    assert (outcome.code, outcome.verdicts, outcome.asked) == (2, [], asked)
    assert len(outcome.refusals) == asked
    assert text.count(f"  could not ask: {said}") == asked
    assert text.endswith("of 4: 4 could not be asked")
    if outcome.saved:
        assert KEY.encode() not in (tmp_path / "p.flow").read_bytes()


async def test_a_model_that_calls_nothing(tmp_path: Path, confdir: str) -> None:
    script = Script(default=Conversation(final="I'd rather not."))
    async with Standin(script) as standin:
        outcome, text = await run(standin.base_url, tmp_path / "p.flow", confdir)
    assert outcome.code == 2
    assert text.count('the model called no tool but said "I\'d rather not."') == 4


async def test_one_fault_leaves_the_other_cases_their_verdict(tmp_path: Path, confdir: str) -> None:
    """Round 2 of the first case fails: three reuses are seen all the same, and that is code 1."""
    faults = (Fault(FaultKind.STATUS, at_request=2, status=500),)
    async with Standin(Script(default=TWICE, faults=faults)) as standin:
        outcome, text = await run(standin.base_url, tmp_path / "p.flow", confdir)
    assert outcome.verdicts == [Verdict.REUSED] * 3
    assert len(outcome.refusals) == 1
    assert outcome.code == 1
    assert "of 4: 3 reused, 1 could not be asked" in text


async def test_a_file_that_came_meanwhile_is_left_alone(tmp_path: Path, confdir: str) -> None:
    (tmp_path / "p.flow").write_text("mine")
    async with Standin(Script(default=TWICE)) as standin:
        with pytest.raises(Refused, match=r"p\.flow exists"):
            await run(standin.base_url, tmp_path / "p.flow", confdir, "openai")
    assert (tmp_path / "p.flow").read_text() == "mine"


async def test_nobody_there(tmp_path: Path, confdir: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    outcome, text = await run(f"http://127.0.0.1:{port}", tmp_path / "p.flow", confdir)
    assert (outcome.code, outcome.asked, outcome.answered) == (2, 1, 0)
    assert f"could not ask: no answer from http://127.0.0.1:{port}, " in text
    assert "check --base-url" in text
    assert not outcome.saved
    assert list(tmp_path.iterdir()) == []


async def test_the_key_goes_to_the_server_as_a_bearer(tmp_path: Path, confdir: str) -> None:
    async with Standin(Script(default=TWICE)) as standin:
        await run(standin.base_url, tmp_path / "p.flow", confdir)
        sent = {request.headers["authorization"] for request in standin.requests}
    assert sent == {f"Bearer {KEY}"}


@asynccontextmanager
async def _answering(body: bytes) -> AsyncIterator[str]:
    """A server with one answer to everything."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        (length,) = re.findall(rb"content-length: (\d+)", head, re.I)
        await reader.readexactly(int(length))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
