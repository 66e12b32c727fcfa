"""Saved flows for tests: made of the samples, no proxy involved."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mitmproxy import http
from mitmproxy.io import tnetstring
from mitmproxy.test import tflow

from tests.samples import MESSAGES, dump, messages_events

START = 1_800_000_000.0
SESSION = "x-claude-code-session-id"
AGENT = "x-claude-code-agent-id"


def exchange(
    request: bytes,
    reply: bytes,
    *,
    number: int = 0,
    path: str = MESSAGES,
    kind: str = "text/event-stream",
    session: str | None = "s-1",
    agent: str | None = None,
    **headers: str,
) -> http.HTTPFlow:
    """An exchange that took half a second, the number-th of its file, one a second."""
    flow = tflow.tflow(resp=True)
    flow.id = f"{number:04}-{session or 'none'}"
    at = START + number
    named = {SESSION: session, AGENT: agent, **headers}
    fields = [(k.replace("_", "-").encode(), v.encode()) for k, v in named.items() if v]
    fields.append((b"content-type", b"application/json"))
    flow.request = http.Request.make("POST", f"https://api.moonshot.cn{path}", request, fields)
    flow.request.timestamp_start, flow.request.timestamp_end = at, at + 0.1
    flow.response = http.Response.make(200, reply, {"content-type": kind})
    flow.response.timestamp_start, flow.response.timestamp_end = at + 0.2, at + 0.5
    return flow


def conversation(
    commands: Iterable[str],
    *,
    first: int = 0,
    id_: str = "Bash_0",
    lost: frozenset[int] = frozenset(),
    results: dict[int, str] | None = None,
    opening: str = "go",
    **more: Any,
) -> list[http.HTTPFlow]:
    """An agent that runs these commands, an exchange each and one to end it.

    id_: of every call; with `{}` in it numbered. lost: the calls that the client drops, with their
    results, as Claude Code does.
    """
    said: list[Any] = [{"role": "user", "content": opening}]
    flows = []
    for number, command in enumerate([*commands, None]):
        name = id_.format(number)
        events = messages_events(*([name] if command else []), command=command or "")
        request = dump({"model": "kimi-k3", "stream": True, "messages": said})
        flows.append(exchange(request, b"".join(events), number=first + number, **more))
        if number in lost:
            said += [
                {"role": "assistant", "content": [{"type": "text", "text": "Next."}]},
                {"role": "user", "content": "(no content)"},
            ]
        elif command:
            use = {"type": "tool_use", "id": name, "name": "Bash", "input": {"command": command}}
            result = (results or {}).get(number, f"did {command}")
            answer = {"type": "tool_result", "tool_use_id": name, "content": result}
            said += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [answer]}]
    return flows


def record(flow: Any) -> bytes:
    """A flow as mitmproxy saves it."""
    return tnetstring.dumps(flow.get_state())


def write(path: Path, flows: Iterable[Any]) -> Path:
    """A flow file."""
    path.write_bytes(b"".join(map(record, flows)))
    return path
