"""Histories that a client broke, brought along, or let grow; what healing makes of them."""

import gzip
from typing import Any

from scripts.flows_lib import shapes
from scripts.flows_lib.agent import CHAT, MESSAGES, Agent, dump
from scripts.flows_lib.recipes.plays import NAMED, ROUNDS, standin, streamed, whole
from scripts.flows_lib.scene import Recipe, Stage

LARGE = 5_000_000
LINES = 20


def messages_pair(id_: str, command: str, result: str) -> list[dict[str, Any]]:
    use = {"type": "tool_use", "id": id_, "name": "Bash", "input": {"command": command}}
    answer = {"type": "tool_result", "tool_use_id": id_, "content": result}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [answer]}]


def chat_pair(id_: str, command: str, result: str) -> list[dict[str, Any]]:
    function = {"name": "Bash", "arguments": dump({"command": command}).decode()}
    call = {"id": id_, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id_, "content": result},
    ]


async def _heals_messages(stage: Stage) -> None:
    """A saved conversation, resumed: one id for three calls, one of them twice in one message."""
    agent = Agent(stage, MESSAGES)
    for number, command in enumerate(("pwd", "ls", "date")):
        agent.said += messages_pair("Bash_0", command, f"old result {number}")
    twins = [block for pair in ("a", "b") for block in messages_pair("Bash_1", pair, pair)]
    agent.said += [
        {"role": "assistant", "content": [twins[0]["content"][0], twins[2]["content"][0]]},
        {"role": "user", "content": [twins[1]["content"][0], twins[3]["content"][0]]},
    ]
    agent.said.append({"role": "user", "content": "Go on."})
    await agent.run()


async def _heals_chat(stage: Stage) -> None:
    agent = Agent(stage, CHAT, stream=False)
    for number, command in enumerate(("pwd", "ls", "date")):
        agent.said += chat_pair("Bash:0", command, f"old result {number}")
    agent.said.append({"role": "user", "content": "Go on."})
    await agent.run()


async def _heals_k2(stage: Stage) -> None:
    """The same for K2: there a healed id keeps K2's shape."""
    agent = Agent(stage, CHAT, model="kimi-k2.7-code")
    for number, command in enumerate(("pwd", "ls")):
        agent.said += chat_pair("functions.Bash:0", command, f"old result {number}")
    agent.said.append({"role": "user", "content": "Go on."})
    await agent.run()


async def _heals_gzip(stage: Stage) -> None:
    """A client that compresses its requests."""
    said = [{"role": "user", "content": "Look around."}]
    for number in range(2):
        said += messages_pair("Bash_0", "pwd", f"old result {number}")
    body = dump({"model": "kimi-k3", "stream": True, "messages": said, "tools": [{"name": "Bash"}]})
    packed = gzip.compress(body, mtime=0)
    await stage.post(MESSAGES, packed, {"content-encoding": "gzip"})


async def _loses_pairs(stage: Stage) -> None:
    """What a client that keeps calls by id does with an id it knows already."""
    agent, known = Agent(stage, MESSAGES, headers=NAMED), set[str]()
    for _ in range(4):
        calls = await agent.ask()
        if {call.id for call in calls} <= known:
            text = [block for block in agent.said[-1]["content"] if block["type"] == "text"]
            agent.said[-1] = {"role": "assistant", "content": text or "(no content)"}
            agent.said.append({"role": "user", "content": "(no content)"})
            continue
        known |= {call.id for call in calls}
        agent.answer(calls)


async def _orphan_messages(stage: Stage) -> None:
    """The compaction took the call and left its result."""
    agent = Agent(stage, MESSAGES, "Summary: it was looked at.")
    agent.said.append(messages_pair("Bash_7", "pwd", "an orphan")[1])
    agent.answer(await agent.ask())
    await agent.ask()


async def _orphan_chat(stage: Stage) -> None:
    agent = Agent(stage, CHAT, "Summary: it was looked at.", stream=False)
    agent.said.append(chat_pair("Bash:7", "pwd", "an orphan")[1])
    agent.answer(await agent.ask())
    await agent.ask()


async def _missing_messages(stage: Stage) -> None:
    """Two calls, of which the client answers the second, and goes on."""
    agent = Agent(stage, MESSAGES)
    _, second = await agent.ask()
    agent.said.append({"role": "user", "content": [agent.result(second)]})
    agent.answer(await agent.ask())
    await agent.ask()


async def _missing_chat(stage: Stage) -> None:
    agent = Agent(stage, CHAT)
    first, _ = await agent.ask()
    agent.said += [agent.result(first), {"role": "user", "content": "Never mind the other."}]
    agent.answer(await agent.ask())
    await agent.ask()


async def _doubled_messages(stage: Stage) -> None:
    """A tool that yields twice has two results for its one call."""
    agent = Agent(stage, MESSAGES)
    first, second = await agent.ask()
    results = [agent.result(first), agent.result(first), agent.result(second)]
    agent.said.append({"role": "user", "content": results})
    agent.answer(await agent.ask())
    await agent.ask()


async def _doubled_chat(stage: Stage) -> None:
    agent = Agent(stage, CHAT, stream=False)
    first, second = await agent.ask()
    agent.said += [agent.result(second), agent.result(first), agent.result(first)]
    agent.answer(await agent.ask())
    await agent.ask()


async def _split_messages(stage: Stage) -> None:
    """Results in messages of their own, texts between, the second one first."""
    agent = Agent(stage, MESSAGES)
    first, second = await agent.ask()
    late = {**agent.result(second), "is_error": True}
    agent.said += [
        {"role": "user", "content": [late, {"type": "text", "text": "<reminder>"}]},
        {"role": "user", "content": "Wait, there is more."},
        {"role": "user", "content": [agent.result(first)]},
    ]
    agent.answer(await agent.ask())
    await agent.ask()


async def _split_chat(stage: Stage) -> None:
    agent = Agent(stage, CHAT)
    first, second = await agent.ask()
    agent.said += [
        agent.result(second),
        {"role": "system", "content": "A reminder in the middle."},
        {**agent.result(first), "content": [{"type": "text", "text": "result in a list"}]},
    ]
    agent.answer(await agent.ask())
    await agent.ask()


async def _large(stage: Stage) -> None:
    """Twenty results of 250,000 characters, under two ids."""
    agent = Agent(stage, MESSAGES, headers=NAMED)
    line = "the same line of a long log, again and again, so that it packs well\n"
    log = (line * (LARGE // LINES // len(line) + 1))[: LARGE // LINES]
    for number in range(LINES):
        agent.said += messages_pair(f"Bash_{number % 2}", f"cat log-{number}", f"{number}\n{log}")
    agent.said.append({"role": "user", "content": "Go on."})
    await agent.ask()


def _messages(number: int, *ids: str) -> list[bytes]:
    blocks = [shapes.tool_block(at, id_, f"step {number}.{at}") for at, id_ in enumerate(ids)]
    return shapes.message(number, *blocks)


def _chat(number: int, *ids: str) -> list[bytes]:
    parts: list[bytes] = []
    for at, id_ in enumerate(ids):
        parts += shapes.chat_call(number, at, id_, f"step {number}.{at}")
    return shapes.chat(number, *parts)


def _chat_whole(number: int, *ids: str) -> bytes:
    calls = [
        shapes.function_call(id_, "Bash", dump({"command": f"step {number}.{at}"}).decode())
        for at, id_ in enumerate(ids)
    ]
    message = {"role": "assistant", "content": "" if ids else "All done.", "tool_calls": calls}
    return dump(shapes.completion(number, message))


TWO_MESSAGES = (
    streamed(_messages(1, "Bash_0", "Bash_1")),
    streamed(_messages(2, "Bash_0"), 2),
    streamed(shapes.said(3), 3),
)
ONE_MESSAGES = (streamed(_messages(1, "Bash_0")), streamed(shapes.said(2), 2))
TWO_CHAT = (
    streamed(_chat(1, "Bash:0", "Bash:1")),
    streamed(_chat(2, "Bash:0"), 2),
    streamed(shapes.chat_said(3), 3),
)
ONE_WHOLE = (whole(_chat_whole(1, "Bash:0")), whole(_chat_whole(2), 2))
TWO_WHOLE = (
    whole(_chat_whole(1, "Bash:0", "Bash:1")),
    whole(_chat_whole(2, "Bash:0"), 2),
    whole(_chat_whole(3), 3),
)

RECIPES = {
    "messages-healing-stream": Recipe(standin(ROUNDS), _heals_messages),
    "chat-healing-whole": Recipe(standin(ROUNDS), _heals_chat),
    "chat-healing-k2": Recipe(
        (
            streamed(_chat(1, "functions.Bash:0")),
            streamed(_chat(2, "functions.Bash:1"), 2),
            streamed(shapes.chat_said(3), 3),
        ),
        _heals_k2,
    ),
    "messages-healing-gzip-request": Recipe(ONE_MESSAGES, _heals_gzip),
    "messages-client-loses-pairs": Recipe(standin(ROUNDS), _loses_pairs),
    "messages-orphan-result": Recipe(ONE_MESSAGES, _orphan_messages),
    "messages-missing-result": Recipe(TWO_MESSAGES, _missing_messages),
    "messages-doubled-result": Recipe(TWO_MESSAGES, _doubled_messages),
    "messages-split-results": Recipe(TWO_MESSAGES, _split_messages),
    "chat-orphan-result-whole": Recipe(ONE_WHOLE, _orphan_chat),
    "chat-doubled-result-whole": Recipe(TWO_WHOLE, _doubled_chat),
    "chat-missing-result": Recipe(TWO_CHAT, _missing_chat),
    "chat-split-results": Recipe(TWO_CHAT, _split_chat),
    "messages-large-history": Recipe((streamed(_messages(1, "Bash_0")),), _large),
}
