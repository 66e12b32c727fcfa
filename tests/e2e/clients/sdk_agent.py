"""A small agent with a vendor's own synchronous SDK; a program of its own, run by the tests.

`sdk_agent.py anthropic|openai`: base URL, key, proxy and trusted certificates come from the
environment, as the SDK reads them. It does its task twice, streaming and not, and prints the
closing texts. Like several agents, it keeps calls and results by id, so a call whose id it knows
already is lost; after TURNS it gives up.
"""

import sys
from typing import Any

# mitmproxy opens at most five connections to one address for one client, and a connection that a
# script redirected is not used again: a sixth turn would hang.
TURNS = 5
TOOL = "Bash"
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"command": {"type": "string"}}}


def anthropic_agent(stream: bool) -> str:
    import anthropic

    client = anthropic.Anthropic(max_retries=0)
    messages: list[Any] = [{"role": "user", "content": f"do it, {stream=}"}]
    results: dict[str, str] = {}
    request: dict[str, Any] = {
        "model": "kimi-k3",
        "max_tokens": 100,
        "messages": messages,
        "tools": [{"name": TOOL, "input_schema": SCHEMA}],
    }
    for turn in range(TURNS):
        if stream:
            with client.messages.stream(**request) as events:
                reply = events.get_final_message()
        else:
            reply = client.messages.create(**request)
        calls = [block for block in reply.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in reply.content if block.type == "text")
        new = [call for call in calls if call.id not in results]
        for call in new:
            results[call.id] = f"result {turn} of {call.input['command']}"
        if new:
            blocks = [block.model_dump(exclude_none=True) for block in new]
            messages.append({"role": "assistant", "content": blocks})
            answers = [
                {"type": "tool_result", "tool_use_id": call.id, "content": results[call.id]}
                for call in new
            ]
            messages.append({"role": "user", "content": answers})
    return f"given up after {TURNS} turns"


def openai_agent(stream: bool) -> str:
    import json

    import openai

    client = openai.OpenAI(max_retries=0)
    messages: list[Any] = [{"role": "user", "content": f"do it, {stream=}"}]
    results: dict[str, str] = {}
    function: dict[str, Any] = {"name": TOOL, "parameters": SCHEMA}
    request: dict[str, Any] = {
        "model": "kimi-k3",
        "messages": messages,
        "tools": [{"type": "function", "function": function}],
    }
    for turn in range(TURNS):
        if stream:
            with client.chat.completions.stream(**request) as events:
                message: Any = events.get_final_completion().choices[0].message
        else:
            message = client.chat.completions.create(**request).choices[0].message
        if not message.tool_calls:
            return str(message.content)
        new = [call for call in message.tool_calls if call.id not in results]
        for call in new:
            command = json.loads(call.function.arguments)["command"]
            results[call.id] = f"result {turn} of {command}"
        if new:
            calls = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {
                        "name": call.function.name,
                        "arguments": call.function.arguments,
                    },
                }
                for call in new
            ]
            messages.append({"role": "assistant", "content": "", "tool_calls": calls})
            messages.extend(
                {"role": "tool", "tool_call_id": call.id, "content": results[call.id]}
                for call in new
            )
    return f"given up after {TURNS} turns"


if __name__ == "__main__":
    agent = {"anthropic": anthropic_agent, "openai": openai_agent}[sys.argv[1]]
    for stream in (True, False):
        print(f"{stream=}: {agent(stream)}")
