"""How the tests of this folder start `moontap`, and the small agents that they start it with."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli.forks import Forks

COMMAND = (sys.executable, "-m", "moontap.cli")
KEY = "sk-made-up-7f3kq9z2m4x8c1v6b5n0"

# The agents: what is run behind the tap. Each is a real client, or a child that tells what it got.

ANTHROPIC = """
import anthropic, os, sys
client, seen = anthropic.Anthropic(), []
messages = [{"role": "user", "content": "go"}]
tools = [{"name": "Bash", "input_schema": {"type": "object"}}]
for turn in range(9):
    with client.messages.stream(
        model="kimi-k3", max_tokens=99, messages=messages, tools=tools
    ) as stream:
        reply = stream.get_final_message()
    calls = [block for block in reply.content if block.type == "tool_use"]
    if not calls:
        break
    messages.append({"role": "assistant", "content": reply.content})
    results = [
        {"type": "tool_result", "tool_use_id": call.id, "content": f"did {call.input['command']}"}
        for call in calls
    ]
    messages.append({"role": "user", "content": results})
    seen += [call.id for call in calls]
print(len(seen), len(set(seen)), reply.content[0].text)
sys.exit(3)
"""

OPENAI = """
import json, openai, sys
client, seen = openai.OpenAI(), []
messages = [{"role": "user", "content": "go"}]
function = {"name": "Bash", "parameters": {"type": "object"}}
for turn in range(9):
    reply = client.chat.completions.create(
        model="kimi-k3", messages=messages, tools=[{"type": "function", "function": function}]
    ).choices[0].message
    if not reply.tool_calls:
        break
    messages.append(reply.model_dump(exclude_none=True))
    for call in reply.tool_calls:
        command = json.loads(call.function.arguments)["command"]
        messages.append({"role": "tool", "tool_call_id": call.id, "content": f"did {command}"})
        seen.append(call.id)
print(len(seen), len(set(seen)), reply.content)
"""

# One bare request; prints the status.
REQUEST = """
import json, os, urllib.error, urllib.request
body = {"model": "kimi-k3", "messages": [{"role": "user", "content": "go"}],
        "tools": [{"name": "Bash", "input_schema": {"type": "object"}}]}
url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
headers = {"content-type": "application/json", "x-api-key": os.environ["ANTHROPIC_API_KEY"]}
request = urllib.request.Request(url, json.dumps(body).encode(), headers)
try:
    reply = urllib.request.urlopen(request)
    reply.read()  # who leaves before the end is a client that broke off
    print(reply.status, flush=True)
except urllib.error.HTTPError as error:
    print(error.code, flush=True)
"""

# What it got, and at which of two addresses of this machine the tap is to be had.
ENVIRONMENT = """
import json, os, socket, sys, urllib.parse
port = urllib.parse.urlsplit(os.environ["OPENAI_BASE_URL"]).port
def reached(host):
    with socket.socket() as client:
        return client.connect_ex((host, port)) == 0
names = ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "KIMI_BASE_URL", "NO_PROXY", "no_proxy")
print(json.dumps({name: os.environ.get(name) for name in names}))
print([host for host in ("127.0.0.1", "127.0.0.2") if reached(host)])
print(sys.stdin.read().upper(), end="")
"""


@dataclass(frozen=True)
class Moontap:
    """folder: where it runs. environment: what it gets; its HOME is folder/home. before: arguments
    before its own, where `forks` are of Python."""

    folder: Path
    environment: dict[str, str]
    forks: Forks
    before: tuple[str, ...] = ()

    def start(
        self, *arguments: str, env: dict[str, str] | None = None, **more: Any
    ) -> subprocess.Popen[str]:
        """A process started from nothing, as a person's shell does."""
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        return subprocess.Popen(
            [*COMMAND, *arguments],
            text=True,
            cwd=self.folder,
            env=self.environment | (env or {}),
            **(streams | more),
        )

    def run(
        self, *arguments: str, stdin: str = "", env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """A process that is a fork of one that has loaded `moontap`, to its end."""
        return self.forks.run(
            [*self.before, *arguments], self.folder, self.environment | (env or {}), stdin
        )

    def captures(self) -> list[Path]:
        """The capture folders, oldest first."""
        return sorted((self.folder / "moontap-captures").glob("*Z-*"))


def python(code: str, program: str = sys.executable) -> list[str]:
    """A command that runs some Python. program: for what loads an SDK, `Forks.python`."""
    return ["--", program, "-c", code]


def pairs(capture: Path) -> list[dict[str, Any]]:
    """What `pairs.jsonl` of a capture holds."""
    return [json.loads(line) for line in (capture / "pairs.jsonl").read_text().splitlines()]


def holds(folder: Path, text: str) -> list[Path]:
    """The files below a folder that hold a text."""
    return [path for path in files(folder) if text.encode() in path.read_bytes()]


def files(folder: Path) -> Iterable[Path]:
    return (path for path in folder.rglob("*") if path.is_file())
