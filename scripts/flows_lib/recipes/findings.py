"""What only a diagnosis sees: calls, messages and streams that are odd, each in a flow of its own,
and one conversation with near misses of them all."""

from collections.abc import Sequence
from typing import Any

from moontap.standin import Fault, FaultKind
from scripts.flows_lib import shapes
from scripts.flows_lib.agent import CHAT, MESSAGES, Agent, Call
from scripts.flows_lib.recipes.plays import asks_once, faulty, runs, standin, streamed, whole
from scripts.flows_lib.scene import Play, Recipe, Stage
from tests.upstreams import Reply

NAMED_CHOICE = {"type": "function", "function": {"name": "Bash"}}
INCOMPATIBLE = (
    '{"error":{"message":"tool_choice \'specified\' is incompatible with thinking enabled",'
    '"type":"invalid_request_error"}}'
)
MALFORMED = (
    '{"error":{"message":"Invalid request: messages[1].role","type":"invalid_request_error"}}'
)
FUNCTION = {"name": "Bash", "parameters": {"type": "object", "properties": {}}}


def _messages(*blocks: Sequence[bytes]) -> tuple[Reply, ...]:
    """A reply with these blocks, and one that ends the task."""
    return streamed(shapes.message(1, *blocks)), streamed(shapes.said(2), 2)


def _input(index: int, id_: str, text: str) -> list[bytes]:
    """A call of Bash with just these arguments."""
    start, end = shapes.tool_start(index, id_), shapes.block_stop(index)
    return [start, shapes.tool_json(index, text), end]


def _restarted() -> list[bytes]:
    begun = [shapes.message_start(1), *shapes.text_block(0, "I look around.")]
    return [*begun, *shapes.message(2, shapes.tool_block(0, "toolu_01Aa", "pwd"))]


async def _empties(stage: Stage) -> None:
    """A client that loses the arguments of what it was told to do."""
    agent = Agent(stage, MESSAGES)
    calls = await agent.ask()
    for block in agent.said[-1]["content"]:
        block["input"] = {}
    agent.answer(calls)
    await agent.ask()


def _answers(path: str, content: Any) -> Play:
    """A client whose tool gives just this."""

    async def play(stage: Stage) -> None:
        agent = Agent(stage, path)
        (call,) = await agent.ask()
        result = agent.result(call) | {"content": content}
        agent.said.append({"role": "user", "content": [result]} if path == MESSAGES else result)
        await agent.ask()

    return play


async def _legacy(stage: Stage) -> None:
    await Agent(stage, CHAT, tools=(), functions=[FUNCTION], function_call="auto").ask()


async def _misspells(stage: Stage) -> None:
    """A client of somebody's own: arguments as an object, a role and a member with a slip."""
    agent = Agent(stage, CHAT, stream=False)
    function = {"name": "Bash", "arguments": {"command": "ls"}}
    agent.said += [
        {"role": "assistnat", "content": "I look around."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_01Aa", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "call_01Aa", "content": "a.py"},
        {"role": "user", "contnet": "And now?"},
    ]
    await agent.ask()


async def _is_ahead(stage: Stage) -> None:
    """A client that uses blocks which no moontap knows yet, and members that may be left out."""
    agent = Agent(stage, MESSAGES, stream=False)
    searched = {"type": "server_tool_use", "id": "srv_01", "name": "web_search", "input": {}}
    hits = {"type": "web_search_tool_result_20270301", "tool_use_id": "srv_01", "content": []}
    call = {"type": "tool_use", "id": "toolu_01Aa", "name": "Bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_01Aa", "content": "a.py"}
    agent.said += [
        {"role": "assistant", "content": [searched, hits, call]},
        {"role": "user", "content": [result, {"type": "hologram", "data": "x"}]},
        {"role": "system", "content": "Be brief."},
    ]
    await agent.ask()


def _calls(number: int, text: str, *calls: Call) -> Reply:
    """A whole reply of Chat Completions."""
    made = [shapes.function_call(one.id, one.name, one.arguments) for one in calls]
    message: dict[str, Any] = {"role": "assistant", "content": text}
    message |= {"tool_calls": made} if made else {}
    return whole(shapes.compact(shapes.completion(number, message)), number)


async def _nearly(stage: Stage) -> None:
    """Nothing is wrong with what this client does: it spells arguments anew, and its tools answer
    with blanks and with text that looks like a call."""
    more: dict[str, Any] = {"tool_choice": "required", "functions": [], "function_call": None}
    agent = Agent(stage, CHAT, stream=False, tools=("Bash", "read_file"), **more)
    for said in ([{"type": "text", "text": " "}], "<|tool_calls_section_begin|> is how K2 calls"):
        calls = await agent.ask()
        for made in agent.said[-1]["tool_calls"]:
            made["function"]["arguments"] = made["function"]["arguments"].replace(":", ": ")
        agent.said += [agent.result(call) | {"content": said} for call in calls]
    await agent.ask()


_NEARLY = (
    _calls(
        1,
        "First I look with Bash, then I'll use read_file.",
        Call("call_01Aa", "Bash", '{"command":"ls","timeout":5}'),
    ),
    _calls(2, "", Call("call_02Bb", "$web_search", '{"query":"kimi"}')),
    _calls(3, "All done."),
)

_DONE: dict[str, Any] = {
    "id": shapes.MESSAGE_ID.format(1),
    "type": "message",
    "role": "assistant",
    "model": "kimi-k3",
    "content": [{"type": "text", "text": "All done."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 9, "output_tokens": 5},
}

RECIPES = {
    "messages-arguments-emptied": Recipe(
        _messages(shapes.tool_block(0, "toolu_01Aa", "ls")), _empties
    ),
    "messages-off-schema": Recipe(
        _messages(_input(0, "toolu_01Aa", '{"command":5}')), runs(MESSAGES)
    ),
    "messages-undeclared-tool": Recipe(
        _messages(shapes.tool_block(0, "toolu_01Aa", "ls", "run_shell")), runs(MESSAGES)
    ),
    "messages-other-tool": Recipe(
        _messages(
            shapes.text_block(0, "I'll use the read_file tool to look at it."),
            shapes.tool_block(1, "toolu_01Aa", "ls"),
        ),
        runs(MESSAGES, tools=("Bash", "read_file")),
    ),
    "messages-tool-reference": Recipe(
        _messages(shapes.tool_block(0, "toolu_01Aa", "ls")),
        _answers(MESSAGES, [{"type": "tool_reference", "tool_name": "Read"}]),
    ),
    "messages-restarted": Recipe(
        (streamed(_restarted()), streamed(shapes.said(3), 2)), runs(MESSAGES)
    ),
    "chat-wrong-stop": Recipe(
        (
            streamed(shapes.chat(1, *shapes.chat_call(1, 0, "call_01Aa", "ls"), finish="stop")),
            streamed(shapes.chat_said(2), 2),
        ),
        runs(CHAT),
    ),
    "chat-legacy-functions": Recipe((streamed(shapes.chat_said(1)),), _legacy),
    "chat-tool-choice": Recipe(
        standin(faulty(Fault(FaultKind.STATUS, status=400, body=INCOMPATIBLE))),
        asks_once(CHAT, stream=False, tool_choice=NAMED_CHOICE),
    ),
    "chat-malformed": Recipe(
        standin(faulty(Fault(FaultKind.STATUS, status=400, body=MALFORMED))), _misspells
    ),
    "messages-newer-blocks": Recipe(
        (whole(shapes.compact(_DONE)),),
        _is_ahead,
    ),
    "chat-slow": Recipe((streamed(shapes.chat_said(1)),), asks_once(CHAT), late=150),
    "chat-near-misses": Recipe(_NEARLY, _nearly),
}
