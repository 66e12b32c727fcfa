"""What a person is told of whole conversations: loops, repeats, refusals, silence; and sessions of
which there is nothing to tell."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from moontap.standin import Mint
from scripts.flows_lib import shapes
from scripts.flows_lib.agent import CHAT, MESSAGES, Agent, Call
from scripts.flows_lib.recipes.histories import chat_pair, messages_pair
from scripts.flows_lib.recipes.plays import asks_once, runs, script, standin, step, streamed, whole
from scripts.flows_lib.scene import Play, Recipe, Stage
from tests.upstreams import Reply

type Said = tuple[Sequence[dict[str, Any]], dict[str, Any]]
"""What a request says after its opening, and further members of it."""


def _whole(number: int, *calls: Call, text: str = "", thinking: str = "") -> Reply:
    """A whole reply of Chat Completions."""
    made = [shapes.function_call(one.id, one.name, one.arguments) for one in calls]
    message: dict[str, Any] = {"role": "assistant", "content": text or (None if made else "Done.")}
    message |= {"reasoning_content": thinking} if thinking else {}
    message |= {"tool_calls": made} if made else {}
    return whole(shapes.compact(shapes.completion(number, message)), number)


def _bash(id_: str, command: str) -> Call:
    return Call(id_, "Bash", shapes.compact({"command": command}).decode())


def _refused(status: str, number: int, error: dict[str, Any]) -> Reply:
    return whole(shapes.compact(error), number, status=status)


def _chat_error(text: str, kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"error": {"message": text, "type": kind}}


# --- loops -----------------------------------------------------------------------------------


async def _loops(stage: Stage) -> None:
    """A test that fails the same way each time, and a model that starts it anew each time."""
    agent = Agent(stage, CHAT, "Make the test pass.", stream=False)
    while calls := await agent.ask():
        agent.said += [agent.result(call, "1 failed") for call in calls]


async def _is_stopped(stage: Stage) -> None:
    """The same until moontap answers in the API's place."""
    agent = Agent(stage, CHAT, "Make it.", stream=False, tools=())
    for _ in range(12):
        agent.said += [agent.result(call, "no") for call in await agent.ask()]
    await agent.send()


async def _is_reminded(stage: Stage) -> None:
    """The same three times; the model takes moontap's reminder to heart."""
    agent = Agent(stage, MESSAGES, "Make the test pass.", stream=False)
    while calls := await agent.ask():
        results = [agent.result(call, "1 failed") for call in calls]
        agent.said.append({"role": "user", "content": results})


async def _cycles(stage: Stage) -> None:
    """Two calls that take turns, each with the result that it had."""
    agent = Agent(stage, CHAT, "Commit it.", stream=False)
    while calls := await agent.ask():
        for call in calls:
            status = "status" in call.arguments
            agent.said.append(agent.result(call, "nothing to commit" if status else "no changes"))


_CYCLE = ("git status", "git diff")


async def _polls(stage: Stage) -> None:
    """Calls that are made again for a reason, and a history that is put to another use."""
    agent = Agent(stage, CHAT, "Wait for the job.", stream=False, tools=("Bash", "$web_search"))
    for state in ("queued", "running, 12 s", "done"):
        poll, search = await agent.ask()
        # The server does the search itself, and wants its arguments back in place of a result.
        agent.said += [agent.result(poll, state), agent.result(search, search.arguments)]
    for _ in range(2):
        (call,) = await agent.ask()
        agent.said.append(agent.result(call, "1 failed"))
    agent.said.append({"role": "user", "content": "I mended it. Once more."})
    (call,) = await agent.ask()
    agent.said.append(agent.result(call, "1 failed"))
    await agent.ask()
    del agent.said[-1]
    title = Agent(stage, CHAT, stream=False, tools=(), model="kimi-k2.6")
    title.said = agent.said
    await title.ask()


_POLLS = (
    *(
        _whole(
            number,
            _bash(f"call_{number}a", "job state"),
            Call(f"call_{number}b", "$web_search", '{"query":"job"}'),
        )
        for number in (1, 2, 3)
    ),
    *(_whole(number, _bash(f"call_{number}a", "make test")) for number in (4, 5, 6)),
    _whole(7),
    _whole(8, text="Wait for a job"),
)


# --- the same request again ------------------------------------------------------------------


async def _repeats(stage: Stage) -> None:
    """An SDK that tries again, then an agent that loses a reply, then a second agent."""
    agent = Agent(stage, CHAT, stream=False)
    agent.headers["x-stainless-retry-count"] = "0"
    await agent.send()
    agent.headers["x-stainless-retry-count"] = "1"
    agent.answer(await agent.ask())
    agent.headers.clear()
    await agent.send()
    agent.answer(await agent.ask())
    await agent.send()
    agent.headers["user-agent"] = "another-agent"
    await agent.send()


# --- refusals --------------------------------------------------------------------------------


def _asks(path: str, *requests: Said) -> Play:
    """Conversations of one request each."""

    async def play(stage: Stage) -> None:
        for number, (said, more) in enumerate(requests, 1):
            agent = Agent(stage, path, f"Task {number}.", stream=False, **more)
            agent.said += said
            await agent.send()

    return play


_PAIR = chat_pair("call_1", "pwd", "here")
_EMPTY = chat_pair("", "pwd", "here")
_CHAT_REFUSALS: tuple[tuple[Said, str], ...] = (
    ((_PAIR[1:], {}), "tool_call_id call_1 not found"),
    (
        (_PAIR[1:], {}),
        "messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
    ),
    ((_EMPTY[1:], {}), "tool_call_id  not found"),
    (
        ([_PAIR[0], {"role": "user", "content": "Never mind."}], {}),
        "tool_call_ids did not have response messages: call_1",
    ),
    (
        ([{"role": "assistant", "content": ""}, {"role": "user", "content": "Go on."}], {}),
        "the message at position 1 with role 'assistant' must not be empty",
    ),
    (
        (_PAIR, {"model": "kimi-k2.6"}),
        "reasoning_content is missing in assistant tool call message at index 1",
    ),
)

_USE, _RESULT = messages_pair("toolu_1", "pwd", "here")
_BLANK = {"role": "user", "content": [*_RESULT["content"], {"type": "text", "text": ""}]}
_MESSAGES_REFUSALS: tuple[tuple[Said, str], ...] = (
    (
        ([_RESULT], {}),
        "messages.1.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1",
    ),
    (
        ([_USE, {"role": "user", "content": "Never mind."}], {}),
        "messages.1: `tool_use` ids were found without `tool_result` blocks: toolu_1",
    ),
    (([_USE, _BLANK], {}), "messages: text content blocks must be non-empty"),
    (
        (messages_pair("Bash:0", "pwd", "here"), {}),
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
)

_TURNED_AWAY = (
    (
        "403 Forbidden",
        "permission_denied_error",
        "Kimi For Coding is currently only available for Coding Agents",
    ),
    ("429 Too Many Requests", "exceeded_current_quota_error", "Your account has no balance"),
    ("413 Request Entity Too Large", "invalid_request_error", "The body is too large"),
    ("503 Service Unavailable", "engine_overloaded_error", "The engine is overloaded"),
)


def _messages_error(text: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": text}}


async def _drops_thinking(stage: Stage) -> None:
    """A client made for models that do not think, before one that needs its thoughts back."""
    agent = Agent(stage, CHAT, stream=False, model="kimi-k2.6")
    agent.answer(await agent.ask())
    await agent.send()


async def _is_cut_off(stage: Stage) -> None:
    """A client that does as it should with a call that is not whole: it leaves it out."""
    agent = Agent(stage, MESSAGES)
    await agent.ask()
    content = agent.said[-1]["content"]
    agent.said[-1]["content"] = [block for block in content if block["type"] == "text"]
    agent.said.append({"role": "user", "content": "That was cut off; in smaller steps, please."})
    agent.answer(await agent.ask())
    await agent.ask()


async def _says_nothing(stage: Stage) -> None:
    """Results without content and with an empty one, then a user who says nothing."""
    agent = Agent(stage, MESSAGES)
    (call,) = await agent.ask()
    result = agent.result(call)
    del result["content"]
    agent.said.append({"role": "user", "content": [result]})
    (call,) = await agent.ask()
    agent.said.append({"role": "user", "content": [agent.result(call, "")]})
    await agent.ask()
    agent.said.append({"role": "user", "content": ""})
    await agent.ask()


def _cut_block(index: int, id_: str) -> list[bytes]:
    start, end = shapes.tool_start(index, id_), shapes.block_stop(index)
    return [start, shapes.tool_json(index, '{"command":"cat > notes.txt <<E'), end]


# --- silence ---------------------------------------------------------------------------------

_PING = shapes.event("ping", {"type": "ping"})
_START, _DONE = shapes.message_start(), shapes.text_block(0, "All done.")


# --- nothing to tell -------------------------------------------------------------------------

_CLEAN = script(
    step("pwd", text="I look where I am.", thinking="Where am I?"),
    step("ls", "date", thinking="What is here, and since when?"),
    step("make test", text="Now the test."),
    step("pwd", thinking="Am I still there?"),
)


async def _fails_and_mends(stage: Stage) -> None:
    """An agent that does as the documentation asks; a tool of it fails once."""
    agent = Agent(stage, MESSAGES, keeps=True)
    while calls := await agent.ask():
        results = [agent.result(call) for call in calls]
        for call, result in zip(calls, results, strict=True):
            result["is_error"] = "make" in call.arguments
        agent.said.append({"role": "user", "content": results})


_K2_ROUNDS = (
    _whole(1, _bash("functions.Bash:0", "pwd"), thinking="Where am I?"),
    _whole(
        2,
        _bash("functions.Bash:1", "ls"),
        _bash("functions.Bash:2", "date"),
        thinking="What is here?",
    ),
    _whole(3, _bash("functions.Bash:3", "pwd"), text="Still here?", thinking="Am I?"),
    _whole(4),
)

RECIPES = {
    # Short names and no request ids: twelve rounds shall stay small.
    "chat-no-progress": Recipe(
        tuple(
            replace(_whole(n, *([_bash(f"c{n}", "make")] if n < 13 else ())), headers=())
            for n in range(1, 14)
        ),
        _loops,
    ),
    "chat-guard-stopped": Recipe(
        tuple(replace(_whole(n, _bash(f"c{n}", "make")), headers=()) for n in range(1, 13)),
        _is_stopped,
        guard="block",
    ),
    "messages-guard-reminded": Recipe(
        standin(script(*[step("make test")] * 3), Mint.UNIQUE), _is_reminded, guard="remind"
    ),
    "chat-cycle": Recipe(
        (*(_whole(n, _bash(f"call_{n}", _CYCLE[n % 2])) for n in range(1, 7)), _whole(7)), _cycles
    ),
    "chat-polling": Recipe(_POLLS, _polls),
    "chat-repeats": Recipe(
        (
            _refused(
                "429 Too Many Requests",
                1,
                _chat_error("max RPM: 3", "rate_limit_reached_error"),
            ),
            *(_whole(n, _bash(f"call_{n}", "pwd" if n == 2 else "ls")) for n in (2, 3, 4)),
            _whole(5),
            _whole(6),
        ),
        _repeats,
    ),
    "chat-refusals": Recipe(
        tuple(
            _refused("400 Bad Request", number, _chat_error(text))
            for number, (_, text) in enumerate(_CHAT_REFUSALS, 1)
        ),
        _asks(CHAT, *(said for said, _ in _CHAT_REFUSALS)),
    ),
    "messages-refusals": Recipe(
        tuple(
            _refused("400 Bad Request", number, _messages_error(text))
            for number, (_, text) in enumerate(_MESSAGES_REFUSALS, 1)
        ),
        _asks(MESSAGES, *(said for said, _ in _MESSAGES_REFUSALS)),
    ),
    "chat-turned-away": Recipe(
        tuple(
            _refused(status, number, _chat_error(text, kind))
            for number, (status, kind, text) in enumerate(_TURNED_AWAY, 1)
        ),
        _asks(CHAT, *[((), {}) for _ in _TURNED_AWAY]),
    ),
    "chat-thinking-dropped": Recipe(
        (
            _whole(1, _bash("functions.Bash:0", "pwd"), thinking="Where am I?"),
            _refused("400 Bad Request", 2, _chat_error(_CHAT_REFUSALS[-1][1])),
        ),
        _drops_thinking,
    ),
    "messages-call-cut-off": Recipe(
        (
            streamed(
                shapes.message(
                    1,
                    shapes.text_block(0, "I write it down."),
                    _cut_block(1, "toolu_01Aa"),
                    reason="max_tokens",
                )
            ),
            streamed(shapes.message(2, shapes.tool_block(0, "toolu_02Bb", "touch notes.txt")), 2),
            streamed(shapes.said(3), 3),
        ),
        _is_cut_off,
    ),
    "messages-says-nothing": Recipe(
        (
            streamed(shapes.message(1, shapes.tool_block(0, "toolu_01Aa", "pwd"))),
            streamed(shapes.message(2, shapes.tool_block(0, "toolu_02Bb", "true")), 2),
            streamed(shapes.message(3, shapes.text_block(0, "I am"), reason="max_tokens"), 3),
            streamed(shapes.message(4, shapes.text_block(0, "Done."), reason="tool_use"), 4),
        ),
        _says_nothing,
    ),
    "messages-silent": Recipe(
        (streamed([_START, *_DONE, *shapes.message_end("end_turn")]),),
        asks_once(MESSAGES),
        pauses=(0.1, 0.1, 310, 0.1, 0.1, 0.1, 0.1),
    ),
    "messages-pings": Recipe(
        (
            streamed(
                [_START, *[_PING] * 7, *_DONE, *shapes.message_end("end_turn")],
            ),
        ),
        asks_once(MESSAGES),
        pauses=(0.1, *[50] * 7, *[0.1] * 6),
    ),
    "messages-clean": Recipe(standin(_CLEAN, Mint.UNIQUE), _fails_and_mends),
    "chat-clean": Recipe(standin(_CLEAN, Mint.UNIQUE), runs(CHAT, keeps=True)),
    "chat-clean-k2": Recipe(_K2_ROUNDS, runs(CHAT, stream=False, keeps=True, model="kimi-k2.6")),
}
