"""A small agent with the OpenAI SDK: two tools, a loop, streamed replies."""

import json
from pathlib import Path

from openai import OpenAI


def list_files(folder):
    return "\n".join(sorted(path.name for path in folder.iterdir()))


def read_file(folder, path):
    return (folder / Path(path).name).read_text()


RUN = {"list_files": list_files, "read_file": read_file}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": parameters}}
    for name, parameters in {
        "list_files": {"type": "object", "properties": {}},
        "read_file": {"type": "object", "properties": {"path": {"type": "string"}}},
    }.items()
]


def ask(question, folder, base_url=None, api_key=None, turns=10):
    """The model's answer. Without base_url and api_key the SDK takes those of the environment."""
    client = OpenAI(base_url=base_url, api_key=api_key, max_retries=0)
    messages = [{"role": "user", "content": question}]
    results = {}  # by the call's id, as many agents keep them
    for _ in range(turns):
        with client.chat.completions.stream(
            model="kimi-k3", messages=messages, tools=TOOLS
        ) as stream:
            reply = stream.get_final_completion().choices[0].message
        if not reply.tool_calls:
            return reply.content
        # What was done already is not done again: this is where a reused id hurts.
        calls = [call for call in reply.tool_calls if call.id not in results]
        if calls:
            messages.append({**reply.model_dump(include={"role", "content"}), "tool_calls": calls})
        for call in calls:
            arguments = json.loads(call.function.arguments or "{}")
            results[call.id] = RUN[call.function.name](folder, **arguments)
            result = {"role": "tool", "tool_call_id": call.id, "content": results[call.id]}
            messages.append(result)
    raise RuntimeError(f"no answer after {turns} turns")


if __name__ == "__main__":
    import sys

    print(ask(sys.argv[1], Path.cwd()))
