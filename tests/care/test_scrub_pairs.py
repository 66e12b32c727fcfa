"""Captures of real runs, cleaned: the same pairs, the same ids in the same places, fit for replay.

Each way of minting ids, in both protocols, streamed and whole, through the real tap.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mitmproxy import http, io

from moontap.capture.exchange import client_request
from moontap.capture.pairlog import Line, PairLog
from moontap.capture.upstream import answer, before_the_tap
from moontap.care.identities import Known
from moontap.care.outfile import write_flows
from moontap.care.scrub import Scrubber, findings
from moontap.standin import (
    Call,
    Conversation,
    Fault,
    FaultKind,
    IdForm,
    Mint,
    Pacing,
    Script,
    Standin,
    Step,
    TLSFiles,
)
from moontap.wire.protocol import of_request, read_shape
from moontap.wire.types import ReplyCall
from tests import proxying
from tests.care.planted import RULES, TEXT, UUID, VALUES, left
from tests.conftest import Start
from tests.proxying import HOST, Tap
from tests.samples import CHAT, MESSAGES

pytestmark = pytest.mark.usefixtures("_no_errors")

KEY = "made-up-key-0815"
ARGUMENTS = {
    "command": f'cat "{VALUES["path"]}" # for {VALUES["name with an accent"]}',
    "customer": {"name": VALUES["selected"], "number": 4711},
}
STEPS = (
    Step(text=f"Hello {VALUES['name']}.", thinking=TEXT, calls=(Call("Bash", ARGUMENTS),)),
    Step(calls=(Call("Bash", {"command": TEXT}), Call("Read", {"path": VALUES["path"]}))),
    Step(calls=(Call("Bash", ARGUMENTS), Call("Bash", ARGUMENTS))),
)
FAULTS = {
    "plain": (),
    "odd framing": (Fault(FaultKind.CRLF), Fault(FaultKind.COMMENTS)),
    "compressed": (Fault(FaultKind.ENCODING, encoding="zstd"),),
    "interleaved": (Fault(FaultKind.INTERLEAVED), Fault(FaultKind.SAME_ID, at_request=2)),
    "cut": (Fault(FaultKind.CUT, at_request=3, after_events=9),),
}


def script(faults: tuple[Fault, ...], delta: int) -> Script:
    talk = Conversation(steps=STEPS, final=f"Done, {VALUES['name in Chinese']}.")
    return Script(default=talk, pacing=Pacing(delta_chars=delta), faults=faults)


async def converse(tap: Tap, path: str, *, stream: bool, opening: str) -> None:
    """A client's loop. Its history begins with ids that are there twice already."""
    headers = {"authorization": f"Bearer {KEY}"}
    if path == MESSAGES:
        headers["x-claude-code-session-id"] = UUID
    said = [{"role": "user", "content": opening}, *_turn(path, _old(), "x"), *_turn(path, _old())]
    async with tap.client(base_url=f"https://{HOST}", headers=headers) as client:
        for _ in range(len(STEPS) + 1):
            calls = await _ask(client, path, said, stream)
            if not calls:
                return
            said += _turn(path, calls)


def _old() -> list[tuple[str, str, str]]:
    return [("Bash_0", "Bash", json.dumps(ARGUMENTS))]


async def _ask(
    client: httpx.AsyncClient, path: str, said: list[Any], stream: bool
) -> list[tuple[str, str, str]]:
    body = {"model": "kimi-k3", "max_tokens": 9, "stream": stream, "messages": said}
    tools: list[Any] = [{"name": name, "input_schema": {}} for name in ("Bash", "Read")]
    if path == CHAT:
        tools = [{"type": "function", "function": {"name": one["name"]}} for one in tools]
    try:
        response = await client.post(path, json={**body, "tools": tools})
    except httpx.HTTPError:
        return []  # cut off
    wire = of_request("POST", path)
    assert wire
    streamed = "event-stream" in response.headers["content-type"]
    if streamed:
        reply = read_shape(wire, response.content)
    else:
        reply = wire.reader().whole(response.content)
    return [_call(call) for call in reply.calls]


def _call(call: ReplyCall) -> tuple[str, str, str]:
    return call.id or "", call.name, call.arguments


def _turn(path: str, calls: list[tuple[str, str, str]], more: str = "") -> Iterator[Any]:
    # One result is a text, the other JSON: that is read by JSON paths, a mixture would not be.
    results = [
        arguments if name == "Bash" and not more else f"{more}{len(arguments)} bytes of {TEXT}"
        for _, name, arguments in calls
    ]
    if path == MESSAGES:
        blocks = [
            {"type": "tool_use", "id": id_, "name": name, "input": json.loads(arguments)}
            for id_, name, arguments in calls
        ]
        yield {"role": "assistant", "content": blocks}
        answers = [
            {"type": "tool_result", "tool_use_id": call[0], "content": result}
            for call, result in zip(calls, results, strict=True)
        ]
        yield {"role": "user", "content": answers}
        return
    functions = [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
        for id_, name, arguments in calls
    ]
    yield {"role": "assistant", "content": "", "tool_calls": functions}
    for call, result in zip(calls, results, strict=True):
        yield {"role": "tool", "tool_call_id": call[0], "content": result}


def lines_of(flows: list[http.HTTPFlow]) -> list[Line]:
    log = PairLog()
    lines: list[Line] = []
    for flow in flows:
        if logged := log.exchange(flow):
            lines += logged.lines
    return [*lines, *log.close()]


_OF_PEOPLE = ("session", "arguments_sha256", "result_sha256")


def structure(lines: list[Line]) -> list[Line]:
    """The lines with what may change as the number of the first line that has the same."""
    seen: dict[tuple[str, object], int] = {}
    out = []
    for number, line in enumerate(lines):
        kept = {name: value for name, value in line.items() if name not in ("arguments", "result")}
        for name in _OF_PEOPLE:
            if kept[name] is not None:
                kept[name] = seen.setdefault((name, kept[name]), number)
        out.append(kept)
    return out


def cleaned(file: Path, out: Path) -> tuple[list[http.HTTPFlow], list[http.HTTPFlow]]:
    """The flows of a file before and after; the clean ones are in `out`, too."""
    with file.open("rb") as stream:
        flows = [one for one in io.FlowReader(stream).stream() if isinstance(one, http.HTTPFlow)]
    known = Known()
    new = []
    for flow in flows:
        known.learn(flow)
    scrubber = Scrubber(RULES, known)
    for flow in flows:
        copy = http.HTTPFlow.from_state(flow.get_state())
        assert isinstance(copy, http.HTTPFlow)
        scrubber.scrub(copy)
        new.append(copy)
    write_flows(out, new, force=False)
    return flows, new


def check(before: list[http.HTTPFlow], after: list[http.HTTPFlow], file: Path) -> None:
    data = file.read_bytes()
    assert left(data) == set()
    assert UUID.encode() not in data
    for old, new in zip(before, after, strict=True):
        assert findings(new, RULES) == []
        was, now = answer(old), answer(new)
        assert was is not None
        assert now is not None
        if (b"content-encoding", b"zstd") not in was.headers:
            assert [len(chunk) for chunk in now.chunks] == [len(chunk) for chunk in was.chunks]
        assert now.arrivals == was.arrivals
        assert sum(map(len, now.chunks)) == len(now.body)
        assert left(now.body) == set()
        body = json.loads(client_request(new))
        assert len(client_request(new)) == len(client_request(old))
        assert left(json.dumps(body, ensure_ascii=False).encode()) == set()
    was_lines, now_lines = lines_of(before), lines_of(after)
    assert structure(now_lines) == structure(was_lines)
    assert len(was_lines) >= 2
    assert left(json.dumps(now_lines, ensure_ascii=False).encode()) == set()


MINTS = [
    (Mint.RESPONSE, IdForm.UNDERSCORE),
    (Mint.RESPONSE, IdForm.COLON),
    (Mint.HISTORY, IdForm.UNDERSCORE),
    (Mint.UNIQUE, None),
]


@pytest.mark.parametrize(
    ("mint", "mode"),
    [*zip(MINTS, ("off", "duplicates", "all", "off"), strict=True), (MINTS[0], "all")],
    ids=str,
)
@pytest.mark.parametrize("path", [MESSAGES, CHAT])
async def test_pairs_stay(
    path: str,
    mint: tuple[str, str | None],
    mode: str,
    upstream_tls: TLSFiles,
    start: Start,
    tmp_path: Path,
) -> None:
    minted, form = mint
    async with (
        Standin(script=script((), 3), mint=minted, id_form=form, tls=upstream_tls) as standin,
        start(ports={HOST: standin.port}, moontap_rewrite=mode) as tap,
    ):
        for stream in (True, False):
            await converse(tap, path, stream=stream, opening=f"{stream}: {TEXT}")
    file = proxying.capture(tap.captures) / "traffic.flow"
    before, after = cleaned(file, tmp_path / "clean.flow")
    check(before, after, tmp_path / "clean.flow")
    if mode != "off":
        assert any("moontap.healed" in flow.metadata for flow in after)
    # The rewriter makes of the clean file what it had made of the traffic.
    bare = tmp_path / "bare.flow"
    write_flows(bare, [before_the_tap(flow) for flow in after], force=False)
    await proxying.replay(bare, tmp_path / "again", moontap_rewrite=mode)
    again = proxying.saved_flows(tmp_path / "again")
    assert structure(lines_of(again)) == structure(lines_of(after))
    assert [flow.response and flow.response.raw_content for flow in again] == [
        flow.response and flow.response.raw_content for flow in after
    ]


@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize("path", [MESSAGES, CHAT])
async def test_odd_replies(
    path: str, faults: str, upstream_tls: TLSFiles, start: Start, tmp_path: Path
) -> None:
    odd = script(FAULTS[faults], 1)
    async with (
        Standin(script=odd, tls=upstream_tls) as standin,
        start(ports={HOST: standin.port}, moontap_rewrite="duplicates") as tap,
    ):
        await converse(tap, path, stream=True, opening=TEXT)
    file = proxying.capture(tap.captures) / "traffic.flow"
    check(*cleaned(file, tmp_path / "clean.flow"), tmp_path / "clean.flow")
