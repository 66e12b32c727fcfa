"""Flows that take a real client: the vendors' SDKs, and Claude Code as a process of its own."""

import asyncio
import json
import os
import signal
from collections.abc import Mapping
from typing import Any

from moontap.standin import Call, Conversation, Fault, FaultKind, Pacing, Script, Step
from scripts.flows_lib.recipes.plays import PARALLEL, ROUNDS, SEED, faulty, standin
from scripts.flows_lib.scene import URL, Play, Recipe, Stage
from tests.e2e.rig import CLAUDE_ENV

KEY = "made-up-key"
CLAUDE, SDKS = "Claude Code", "the SDK"
SECONDS = 60

# Anthropic's SDK wants the answer to be typed, and so does OpenAI's; a flow needs but its ids.
TOOL_SCHEMA: dict[str, Any] = {"type": "object", "properties": {"command": {"type": "string"}}}


async def _anthropic(stage: Stage) -> None:
    import anthropic

    through = anthropic.DefaultAsyncHttpxClient(**_http(stage))
    client = anthropic.AsyncAnthropic(
        base_url=f"{URL}/anthropic", api_key=KEY, http_client=through, max_retries=2
    )
    for stream in (True, False):
        said: list[Any] = [{"role": "user", "content": f"Look around, {stream=}."}]
        request: dict[str, Any] = {
            "model": "kimi-k3",
            "max_tokens": 1024,
            "messages": said,
            "tools": [{"name": "Bash", "input_schema": TOOL_SCHEMA}],
        }
        while True:
            if stream:
                async with client.messages.stream(**request) as events:
                    reply = await events.get_final_message()
            else:
                reply = await client.messages.create(**request)
            calls = [block for block in reply.content if block.type == "tool_use"]
            if not calls:
                break
            blocks = [block.model_dump(exclude_none=True) for block in reply.content]
            said.append({"role": "assistant", "content": blocks})
            results = [
                {
                    "type": "tool_result",
                    "tool_use_id": call.id,
                    "content": f"result of {call.input}",
                }
                for call in calls
            ]
            said.append({"role": "user", "content": results})
    await client.close()


async def _openai(stage: Stage) -> None:
    import openai

    through = openai.DefaultAsyncHttpxClient(**_http(stage))
    client = openai.AsyncOpenAI(
        base_url=f"{URL}/v1", api_key=KEY, http_client=through, max_retries=2
    )
    function = {"name": "Bash", "parameters": TOOL_SCHEMA}
    for stream in (True, False):
        said: list[Any] = [{"role": "user", "content": f"Look around, {stream=}."}]
        request: dict[str, Any] = {
            "model": "kimi-k3",
            "messages": said,
            "tools": [{"type": "function", "function": function}],
        }
        while True:
            message: Any
            if stream:
                async with client.chat.completions.stream(**request) as events:
                    message = (await events.get_final_completion()).choices[0].message
            else:
                message = (await client.chat.completions.create(**request)).choices[0].message
            if not message.tool_calls:
                break
            calls = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {
                        "name": call.function.name,
                        "arguments": call.function.arguments,
                    },
                }
                for call in message.tool_calls
            ]
            said.append({"role": "assistant", "content": message.content, "tool_calls": calls})
            said += [
                {
                    "role": "tool",
                    "tool_call_id": call["id"],
                    "content": f"result of {json.loads(call['function']['arguments'])['command']}",
                }
                for call in calls
            ]
    await client.close()


def _http(stage: Stage) -> dict[str, Any]:
    return {"proxy": stage.tap.url, "verify": stage.tap.trust, "trust_env": False}


def _claude(*, tools: str = "Bash", stop_after: int | None = None) -> Play:
    """Claude Code with few tools and a short prompt, till its end. stop_after: so many requests
    are enough: a client that loses pairs does not end."""

    async def play(stage: Stage) -> None:
        process = await asyncio.create_subprocess_exec(
            os.environ["MOONTAP_CLAUDE"],
            *("-p", "Look around.", "--dangerously-skip-permissions"),
            *("--tools", tools, "--system-prompt", "You run commands."),
            cwd=_folder(stage, "work"),
            env=_environment(stage),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        ended = asyncio.create_task(process.wait())
        enough = asyncio.create_task(_requests(stage, stop_after))
        await asyncio.wait({ended, enough}, timeout=SECONDS, return_when=asyncio.FIRST_COMPLETED)
        enough.cancel()
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await ended

    return play


async def _requests(stage: Stage, count: int | None) -> None:
    while count is None or stage.tap.addon.recorder.counts.exchanges < count:
        await asyncio.sleep(0.02)


def _folder(stage: Stage, name: str) -> str:
    folder = stage.folder / name
    folder.mkdir(exist_ok=True)
    return str(folder)


def _environment(stage: Stage) -> Mapping[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": _folder(stage, "home"),
        "LANG": "C.UTF-8",
        **CLAUDE_ENV,
        "ANTHROPIC_BASE_URL": f"{URL}/anthropic",
        "HTTPS_PROXY": stage.tap.url,
        "NODE_EXTRA_CA_CERTS": str(stage.tap.ca),
    }


def _echo(word: str) -> Call:
    return Call("Bash", {"command": f"echo {word}", "description": "say it"})


def _helper(word: str) -> Call:
    arguments = {
        "description": "look around",
        "prompt": f"HELPER-{word} look around",
        "run_in_background": False,
    }
    return Call("Agent", arguments)


# A call that says something else each time: a result at the wrong call shows.
RANDOM = Call("Bash", {"command": "echo $RANDOM-$RANDOM", "description": "a number"})
TASK = (
    Step((RANDOM,), text="I look.", thinking="Where am I?"),
    Step((_echo("one"), _echo("two"))),
    Step((RANDOM,), text="Once more."),
)


def _task(*steps: Step, faults: tuple[Fault, ...] = ()) -> Script:
    return Script(
        default=Conversation(steps=steps), seed=SEED, faults=faults, pacing=Pacing(delta_chars=40)
    )


HELPERS = Script(
    default=Conversation(
        steps=(Step((_helper("ALPHA"), _helper("BETA")), text="I ask two."), Step((_echo("main"),)))
    ),
    conversations=(
        Conversation(
            (Step((_echo("alpha"),)), Step((_echo("alpha-2"),))), "Alpha is done.", "HELPER-ALPHA"
        ),
        Conversation((Step((_echo("beta"),)),), "Beta is done.", "HELPER-BETA"),
    ),
    seed=SEED,
    pacing=Pacing(delta_chars=40),
)

RECIPES = {
    "sdk-anthropic": Recipe(
        standin(faulty(Fault(FaultKind.STATUS, at_request=1, status=500), rounds=ROUNDS)),
        _anthropic,
        real=SDKS,
    ),
    "sdk-openai": Recipe(standin(PARALLEL), _openai, real=SDKS),
    "claude-code-loses-pairs": Recipe(standin(_task(*TASK)), _claude(stop_after=8), real=CLAUDE),
    "claude-code-rewritten": Recipe(standin(_task(*TASK)), _claude(), real=CLAUDE),
    "claude-code-sub-agents": Recipe(standin(HELPERS), _claude(tools="Bash,Agent"), real=CLAUDE),
    "claude-code-broken-stream": Recipe(
        standin(_task(*TASK, faults=(Fault(FaultKind.CUT, at_request=3, after_events=5),))),
        _claude(),
        real=CLAUDE,
    ),
    "claude-code-fallback": Recipe(
        standin(
            _task(
                *TASK,
                faults=(
                    Fault(FaultKind.STATUS, at_request=2, status=529),
                    Fault(FaultKind.EMPTY, at_request=4),
                ),
            )
        ),
        _claude(),
        real=CLAUDE,
    ),
}
