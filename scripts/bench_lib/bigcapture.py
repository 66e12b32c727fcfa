"""A large capture as a run of the tap leaves it: agents that work side by side, each with a
history that grows by a pair a turn, and streamed replies with rewritten ids. Made up, repeatable.
"""

from collections.abc import Iterator
from pathlib import Path

from mitmproxy import connection, http
from mitmproxy.io import tnetstring

from moontap.capture import metadata

from .payload import Conversation
from .upstream import reply

_AT_ONCE = 4
_TURNS = 20
_REQUEST = 90_000
_EVENTS = 40
_START = 1_800_000_000.0


def write(path: Path, size: int) -> int:
    """Write at least that many bytes of flows; how many exchanges they are."""
    written = 0
    with path.open("wb") as file:
        for count, flow in enumerate(exchanges(_REQUEST), 1):
            written += file.write(tnetstring.dumps(flow.get_state()))
            if written >= size:
                return count
    raise AssertionError("there is no end of them")


def exchanges(request: int) -> Iterator[http.HTTPFlow]:
    """Without end. request: bytes of the first turn's; the last has a few pairs more."""
    agents: list[Conversation] = []
    seed, number = 0, 0
    while True:
        while len(agents) < _AT_ONCE:
            seed += 1
            agents.append(Conversation(request, seed))
        agent = agents.pop(0)
        number += 1
        flow, call = exchange(agent, number)
        yield flow
        agent.answer(call)
        if agent.turns < _TURNS:
            agents.append(agent)


def exchange(agent: Conversation, number: int, events: int = _EVENTS) -> tuple[http.HTTPFlow, str]:
    """A flow, and the id of its call as the client has it."""
    at = _START + number
    flow = http.HTTPFlow(
        connection.Client(peername=("127.0.0.1", 50_000), sockname=("127.0.0.1", 8080)),
        connection.Server(address=("api.moonshot.cn", 443)),
    )
    flow.id = f"{number:08}-beca-4bec-8bec-000000000000"  # mitmweb takes no others
    headers = http.Headers(
        content_type="application/json",
        authorization="Bearer ***",
        x_claude_code_session_id=agent.session,
    )
    url = "https://api.moonshot.cn/anthropic/v1/messages?beta=true"
    flow.request = http.Request.make("POST", url, agent.body(), headers)
    flow.request.timestamp_start, flow.request.timestamp_end = at, at + 0.01
    chunks = [chunk[chunk.index(b"\r\n") + 2 : -2] for chunk in reply(events, True, False)]
    upstream, call = b"".join(chunks), f"Bash_0_t{number:010}"
    body = upstream.replace(b'"id":"Bash_0"', b'"id":"%s"' % call.encode())
    flow.response = http.Response.make(200, body, {"content-type": "text/event-stream"})
    flow.response.timestamp_start, flow.response.timestamp_end = at + 0.2, at + 0.9
    flow.metadata = {
        metadata.UPSTREAM_BODY: upstream,
        metadata.CHUNKS: [[len(chunk), 5.0 * n] for n, chunk in enumerate(chunks)],
        metadata.CALLS: 1,
        metadata.REWRITTEN: 1,
        metadata.SESSION: agent.session,
    }
    return flow, call
