"""Ids and indexes that are empty, null or missing, markup in texts, arguments that are no JSON."""

from typing import Any

from moontap.standin import Call, FaultKind, Step
from scripts.flows_lib import shapes
from scripts.flows_lib.agent import CHAT, MESSAGES, Agent, dump
from scripts.flows_lib.recipes.plays import (
    bash,
    faulty,
    runs,
    script,
    standin,
    streamed,
    whole,
)
from scripts.flows_lib.scene import Recipe, Stage

K2 = "kimi-k2.6"
K2_MARKUP = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.Bash:0<|tool_call_argument_begin|>",
    '{"command":"pwd"}<|tool_call_end|><|tool_calls_section_end|>',
)
K3_MARKUP = (
    '<|open|>call tool="Bash" index="1"<|sep|>',
    "<|close|>call<|sep|><|close|>message<|sep|>",
)


def _no_index_events() -> list[bytes]:
    """One call whose every part comes without an index."""
    function = {"name": "Bash", "arguments": ""}
    more = {"arguments": '{"command":"pwd"}'}
    return shapes.chat(
        1,
        shapes.tool_delta(1, id="Bash:0", type="function", function=function),
        shapes.tool_delta(1, function=more),
    )


def _null_everything_events() -> list[bytes]:
    """A call whose id and index are null from its first part on."""
    function = {"name": "Bash", "arguments": '{"command":"pwd"}'}
    return shapes.chat(
        1, shapes.tool_delta(1, index=None, id=None, type="function", function=function)
    )


def _chat_whole(number: int, *calls: dict[str, Any]) -> bytes:
    message = {"role": "assistant", "content": None, "tool_calls": list(calls)}
    return dump(shapes.completion(number, message))


def _function(command: str) -> dict[str, Any]:
    return {"name": "Bash", "arguments": dump({"command": command}).decode()}


def _chat_done(number: int) -> bytes:
    return dump(shapes.completion(number, {"role": "assistant", "content": "All done."}))


def _k2_turn(number: int, *ids: str) -> list[bytes]:
    """K2 counts right for two turns, starts over at the third, and reads its ids as text."""
    parts: list[bytes] = []
    for index, id_ in enumerate(ids):
        parts += shapes.chat_call(number, index, id_, f"step {number}.{index}")
    return shapes.chat(number, *parts)


async def _leaks(stage: Stage, path: str, model: str) -> None:
    """The first reply has its call in its text; asked again, the model calls. The result holds
    markup by right."""
    agent = Agent(stage, path, model=model)
    await agent.ask()
    agent.said.append({"role": "user", "content": "Use the tool."})
    (call,) = await agent.ask()
    result = agent.result(call, "the template says " + K3_MARKUP[0])
    if path == MESSAGES:
        agent.said.append({"role": "user", "content": [result]})
    else:
        agent.said.append(result)
    await agent.ask()


BROKEN = '{"command": "echo \\"half'
CONTROL = '{"command": "git commit -m first\nsecond"}'

RECIPES = {
    "chat-empty-ids": Recipe(standin(faulty(FaultKind.EMPTY_ID)), runs(CHAT)),
    "messages-empty-ids-whole": Recipe(
        standin(faulty(FaultKind.EMPTY_ID)), runs(MESSAGES, stream=False)
    ),
    "messages-null-and-missing-ids": Recipe(
        (
            streamed(
                shapes.message(
                    1,
                    shapes.tool_block(0, None, "pwd"),
                    [
                        shapes.block_start(1, {"type": "tool_use", "name": "Bash", "input": {}}),
                        shapes.tool_json(1, '{"command":"ls"}'),
                        shapes.block_stop(1),
                    ],
                    shapes.tool_block(2, "undefined", "date"),
                )
            ),
            streamed(shapes.said(2), 2),
        ),
        runs(MESSAGES),
    ),
    "messages-missing-indexes": Recipe(
        (
            streamed(shapes.message(1, shapes.tool_block(None, "Bash_0", "pwd"))),
            streamed(shapes.message(2, shapes.tool_block(None, "Bash_0", "ls")), 2),
            streamed(shapes.said(3), 3),
        ),
        runs(MESSAGES),
    ),
    "messages-whole-input-in-start": Recipe(
        (
            streamed(
                shapes.message(
                    1,
                    [
                        shapes.tool_start(0, "Bash_0", input={"command": "pwd"}),
                        shapes.block_stop(0),
                        shapes.tool_start(1, "mcp__srv__tool_5_0", "mcp__srv__tool_5"),
                        shapes.block_stop(1),
                    ],
                )
            ),
            streamed(shapes.said(2), 2),
        ),
        runs(MESSAGES, tools=("Bash", "mcp__srv__tool_5")),
    ),
    "chat-missing-index": Recipe(
        (streamed(_no_index_events()), streamed(shapes.chat_said(2), 2)), runs(CHAT)
    ),
    "chat-null-id-and-index": Recipe(
        (streamed(_null_everything_events()), streamed(shapes.chat_said(2), 2)), runs(CHAT)
    ),
    "chat-missing-ids-whole": Recipe(
        (
            whole(
                _chat_whole(
                    1,
                    {"type": "function", "function": _function("pwd")},
                    {"id": "", "type": "function", "function": _function("ls")},
                    {"id": "Bash:0", "type": "function", "function": _function("date")},
                )
            ),
            whole(_chat_done(2), 2),
        ),
        runs(CHAT, stream=False),
    ),
    "chat-k2-native-ids": Recipe(
        (
            streamed(_k2_turn(1, "functions.Bash:0", "functions.Bash:1")),
            streamed(_k2_turn(2, "functions.Bash:2"), 2),
            streamed(_k2_turn(3, "functions.Bash:0", "functions.Bash:1"), 3),
            streamed(_k2_turn(4, "functionsBash5"), 4),
            streamed(shapes.chat_said(5), 5),
        ),
        runs(CHAT, model=K2),
    ),
    "messages-k2-native-ids-whole": Recipe(
        standin(script(Step((bash("pwd"), bash("ls"))), Step((bash("date"),)), model=K2)),
        runs(MESSAGES, model=K2, stream=False),
    ),
    "chat-broken-arguments": Recipe(
        standin(
            script(
                Step((Call("Bash", BROKEN), Call("Bash", CONTROL), Call("Bash", ""))),
            )
        ),
        runs(CHAT),
    ),
    "messages-broken-arguments": Recipe(
        (
            streamed(
                shapes.message(
                    1,
                    [
                        shapes.tool_start(0, "Bash_0"),
                        shapes.tool_json(0, '{"command": "ec'),
                        shapes.tool_json(0, "ho"),
                        shapes.block_stop(0),
                        # The text of the call comes as text, in the block of the call.
                        shapes.tool_start(1, "Bash_1"),
                        shapes.block_delta(1, {"type": "text_delta", "text": '{"command":"ls"}'}),
                        shapes.block_stop(1),
                    ],
                )
            ),
            streamed(shapes.said(2), 2),
        ),
        runs(MESSAGES),
    ),
    "chat-leaked-markup": Recipe(
        (
            streamed(
                shapes.chat(
                    1,
                    shapes.delta(1, reasoning_content="I call it." + K2_MARKUP[0][:28]),
                    *[shapes.delta(1, content=piece) for piece in K2_MARKUP],
                    finish="stop",
                )
            ),
            streamed(shapes.chat(2, *shapes.chat_call(2, 0, "functions.Bash:0", "pwd")), 2),
            streamed(shapes.chat_said(3), 3),
        ),
        lambda stage: _leaks(stage, CHAT, K2),
    ),
    "messages-leaked-markup": Recipe(
        (
            streamed(shapes.message(1, shapes.text_block(0, *K3_MARKUP), reason="end_turn")),
            streamed(shapes.message(2, shapes.tool_block(0, "Bash_0", "cat template")), 2),
            streamed(shapes.said(3), 3),
        ),
        lambda stage: _leaks(stage, MESSAGES, "kimi-k3"),
    ),
}
