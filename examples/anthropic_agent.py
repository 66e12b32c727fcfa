"""A small agent with the Anthropic SDK: two tools, a loop, streamed replies."""

from pathlib import Path

from anthropic import Anthropic


def list_files(folder):
    return "\n".join(sorted(path.name for path in folder.iterdir()))


def read_file(folder, path):
    return (folder / Path(path).name).read_text()


RUN = {"list_files": list_files, "read_file": read_file}
TOOLS = [
    {"name": "list_files", "input_schema": {"type": "object", "properties": {}}},
    {
        "name": "read_file",
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
    },
]


def ask(question, folder, base_url=None, api_key=None, turns=10):
    """The model's answer. Without base_url and api_key the SDK takes those of the environment."""
    client = Anthropic(base_url=base_url, api_key=api_key, max_retries=0)
    messages = [{"role": "user", "content": question}]
    results = {}  # by the call's id, as many agents keep them
    for _ in range(turns):
        with client.messages.stream(
            model="kimi-k3", max_tokens=4000, messages=messages, tools=TOOLS
        ) as stream:
            reply = stream.get_final_message()
        calls = [block for block in reply.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in reply.content if block.type == "text")
        # What was done already is not done again: this is where a reused id hurts.
        calls = [call for call in calls if call.id not in results]
        for call in calls:
            results[call.id] = RUN[call.name](folder, **call.input)
        if calls:
            blocks = [
                {"type": "tool_result", "tool_use_id": call.id, "content": results[call.id]}
                for call in calls
            ]
            messages += [
                {"role": "assistant", "content": calls},
                {"role": "user", "content": blocks},
            ]
    raise RuntimeError(f"no answer after {turns} turns")


if __name__ == "__main__":
    import sys

    print(ask(sys.argv[1], Path.cwd()))
