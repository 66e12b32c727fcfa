"""reproduce.py as a process of its own, against the stand-in: it needs nothing of moontap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moontap.bundle.reproduce import Captured, program
from moontap.standin import Mint, Standin
from moontap.wire.types import Protocol
from tests.bundle.reproducing import run
from tests.cli.commands import KEY

SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}
TOOLS: dict[Protocol, Any] = {
    Protocol.ANTHROPIC: {"name": "Bash", "input_schema": SCHEMA},
    Protocol.OPENAI: {"type": "function", "function": {"name": "Bash", "parameters": SCHEMA}},
}


def text(protocol: Protocol, *, stream: bool = True, **more: Any) -> str:
    url = "https://api.moonshot.cn"
    made = Captured(protocol, url, "kimi-k3", stream, [TOOLS[protocol]], ["Bash"])
    return program(protocol, made.values | more)


@pytest.mark.parametrize(
    ("protocol", "stream", "mint", "base", "code", "rounds", "said"),
    [
        (Protocol.ANTHROPIC, True, Mint.RESPONSE, "/anthropic", 1, 2, "reused: "),
        (Protocol.ANTHROPIC, False, Mint.HISTORY, "/v1", 1, 3, "counted: "),
        (Protocol.ANTHROPIC, True, Mint.UNIQUE, "/anthropic/", 0, 3, "unique: "),
        (Protocol.OPENAI, True, Mint.RESPONSE, "/v1", 1, 2, "reused: "),
        (Protocol.OPENAI, False, Mint.UNIQUE, "", 0, 3, "unique: "),
    ],
)
async def test_it_tells_whether_ids_come_back(
    tmp_path: Path,
    protocol: Protocol,
    stream: bool,
    mint: Mint,
    base: str,
    code: int,
    rounds: int,
    said: str,
) -> None:
    async with Standin(mint=mint) as standin:
        url = standin.base_url + base
        done = await run(
            tmp_path, text(protocol, stream=stream), "--base-url", url, MOONSHOT_API_KEY=KEY
        )
        received = list(standin.requests)
    assert done[0] == code, done
    lines = done[1].splitlines()
    assert [line.split()[:2] for line in lines[:-1]] == [
        ["ROUND", str(number)] for number in range(1, rounds + 1)
    ]
    assert lines[-1].strip().startswith(said)
    assert done[2] == ""
    if mint is Mint.RESPONSE:
        mark = "_" if protocol is Protocol.ANTHROPIC else ":"
        assert all(line.endswith(f"tool call Bash{mark}0") for line in lines[:2])
    # The model went on, so the call of round 1 came back with its result.
    assert received[1].answer["step"] == 1
    assert KEY not in str([one.headers for one in received])  # loopback gets a made-up key


async def test_where_it_cannot_ask(tmp_path: Path) -> None:
    code, out, err = await run(tmp_path, text(Protocol.ANTHROPIC))
    assert (code, out) == (2, "")
    assert err == "reproduce.py: api.moonshot.cn takes a key: put it into MOONSHOT_API_KEY\n"
    async with Standin() as standin:
        named = text(Protocol.OPENAI, TOOLS=[])
        code, out, err = await run(tmp_path, named, MOONSHOT_BASE_URL=standin.base_url)
    assert (code, out) == (2, "")
    assert err == "reproduce.py: RuntimeError: no tool was called; try again\n"


@pytest.mark.parametrize("protocol", list(Protocol))
def test_what_was_captured_cannot_become_code(protocol: Protocol) -> None:
    odd = '\'"""\\\n# End of what was captured.\nimport os \ud800 {x}'
    code = text(protocol, MODEL=odd, TOOLS=[{odd: [odd, None, True, 1.5, {}, []]}])
    names: dict[str, Any] = {"__name__": "reproduce"}
    exec(compile(code, "reproduce.py", "exec"), names)
    assert names["MODEL"] == odd
    assert names["TOOLS"] == [{odd: [odd, None, True, 1.5, {}, []]}]
    assert "os" in names  # its own import
    assert "moontap" not in code.replace("Made by moontap", "")


def test_several_calls_in_one_reply_are_asked_for() -> None:
    made = Captured(Protocol.OPENAI, "", "m", True, [], ["a", "b"], at_once=3)
    assert made.values["ASKED"] == "3 times, all in one reply, a tool out of these: a, b"
