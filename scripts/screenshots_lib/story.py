"""What goes on in the pictures: an agent that loses calls, the same behind rewriting, and one that
is still being answered.

A base URL in, requests out. Everything but the times is the same at each run.
"""

import asyncio
import json
from typing import Any

import httpx

from moontap.standin import Script
from moontap.standin.script import Call, Conversation, Pacing, Step

_PATH = "/anthropic/v1/messages"
_RESULTS = {
    "pwd": "/home/you/shop",
    "ls": "README.md\nnorth.csv\nsouth.csv",
    "wc -l north.csv south.csv": "  120 north.csv\n   80 south.csv\n  200 total",
}
_READ = {"north.csv": "lamps,120\n", "south.csv": "lamps,80\n"}

_LOSES, _KEEPS, _SLOW = (
    "How many lamps did we sell?",
    "How many lamps did we sell? Look again.",
    "Write the report.",
)
PACE_MS = 15.0
"""Between two events, so that a reply can be seen while it comes."""


def script() -> Script:
    """What the model does."""

    def bash(command: str) -> Call:
        return Call("Bash", {"command": command})

    look = Step((bash("pwd"),), text="I look where I am.", thinking="Which folder is this?")
    listed = Step((bash("ls"),), text="Now the files.")
    read = Step(
        (Call("Read", {"path": "north.csv"}), Call("Read", {"path": "south.csv"})),
        thinking="Two regions, two files. I need both.",
    )
    count = Step((bash("wc -l north.csv south.csv"),))
    report = Step(
        (Call("Write", {"path": "report.md", "content": "# Lamps\n\n" + "120 and 80. " * 200}),),
        text="I write it down. " * 6,
    )
    steps = (look, listed, read, count)
    return Script(
        seed=7,
        conversations=(
            Conversation(steps=(report,), match=_SLOW),
            Conversation(
                steps=steps, final="We sold 200 lamps: 120 in the north, 80 in the south."
            ),
        ),
        pacing=Pacing(first_byte_ms=60, event_ms=PACE_MS),
    )


async def lose(url: str) -> None:
    """An agent that knows calls by their ids, and loses what comes under one that it knows."""
    await _run(url, _LOSES, "3f0a61d2-lost", loses=True, turns=4)


async def keep(url: str) -> None:
    """The same task, with nothing lost."""
    await _run(url, _KEEPS, "b81c77e9-kept", loses=False, turns=9)


async def report(url: str) -> None:
    """One request whose reply takes some seconds."""
    await _run(url, _SLOW, "c2d94f10-slow", loses=False, turns=1)


async def _run(url: str, opening: str, session: str, *, loses: bool, turns: int) -> None:
    said: list[dict[str, Any]] = [{"role": "user", "content": opening}]
    known: set[str] = set()
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as client:
        for _ in range(turns):
            blocks = await _ask(client, said, session)
            calls = [block for block in blocks if block["type"] == "tool_use"]
            if not calls:
                return
            await asyncio.sleep(0.12)  # what a tool takes
            kept = [call for call in calls if not (loses and call["id"] in known)]
            lost = [block for block in calls if block not in kept]
            known |= {call["id"] for call in calls}
            content = [block for block in blocks if block not in lost]
            results = [_result(call) for call in kept]
            empty = [{"type": "text", "text": "(no content)"}]
            said.append({"role": "assistant", "content": content or empty})
            said.append({"role": "user", "content": results or empty})


async def _ask(
    client: httpx.AsyncClient, said: list[dict[str, Any]], session: str
) -> list[dict[str, Any]]:
    body = {
        "model": "kimi-k3",
        "max_tokens": 1024,
        "stream": True,
        "system": "You work in a shop's folder. Answer in one sentence.",
        "messages": said,
        "tools": [_tool("Bash", "command"), _tool("Read", "path"), _tool("Write", "path")],
    }
    headers = {"x-claude-code-session-id": session, "anthropic-version": "2023-06-01"}
    blocks: dict[int, dict[str, Any]] = {}
    arguments: dict[int, str] = {}
    async with client.stream("POST", _PATH, json=body, headers=headers) as reply:
        async for line in reply.aiter_lines():
            if line.startswith("data:"):
                _take(json.loads(line[5:]), blocks, arguments)
    for index, text in arguments.items():
        blocks[index]["input"] = json.loads(text or "{}")
    return list(blocks.values())


def _take(
    event: dict[str, Any], blocks: dict[int, dict[str, Any]], arguments: dict[int, str]
) -> None:
    index, delta = event.get("index", 0), event.get("delta", {})
    if event["type"] == "content_block_start":
        blocks[index] = dict(event["content_block"])
        if blocks[index]["type"] == "tool_use":
            arguments[index] = ""
    elif "partial_json" in delta:
        arguments[index] += delta["partial_json"]
    for name in ("text", "thinking", "signature"):
        if name in delta:
            blocks[index][name] = blocks[index].get(name, "") + delta[name]


def _result(call: dict[str, Any]) -> dict[str, Any]:
    known = _READ if call["name"] == "Read" else _RESULTS
    asked = call["input"].get("path") or call["input"].get("command")
    text = known.get(asked, "")
    return {"type": "tool_result", "tool_use_id": call["id"], "content": text}


def _tool(name: str, argument: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {argument: {"type": "string"}}}
    return {"name": name, "description": name, "input_schema": schema}
