"""The API end: answers every POST on loopback with a streamed Messages reply of one tool call.

Enters: HTTP/1.1 requests of one well-behaved client (mitmproxy); the query says what to stream.
Leaves: chunked event streams, one chunk an event. It prints its port as its first line and ends
when its stdin closes, so it cannot outlive the benchmark. Run as a file: imports nothing beside it.

Query: `events` text deltas and as many argument fragments, `pace_us` microseconds between events
(0: all at once), `mint=reused` for the call id `Bash_0` in each reply instead of unique ones.
With a pace, each text delta carries the time it was written, on the clock all processes of a
machine share.
"""

import asyncio
import sys
import time
from collections.abc import Iterator
from itertools import count
from urllib.parse import parse_qs, urlsplit

_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    b"msh-request-id: bench\r\ntransfer-encoding: chunked\r\n\r\n"
)
_END = b"0\r\n\r\n"
_numbers = count(1)


def _event(name: str, data: str) -> bytes:
    raw = f'event: {name}\ndata: {{"type":"{name}",{data}}}\n\n'.encode()
    return b"%x\r\n%s\r\n" % (len(raw), raw)


def _delta(index: int, kind: str, field: str, text: str) -> bytes:
    delta = f'"delta":{{"type":"{kind}","{field}":"{text}"}}'
    return _event("content_block_delta", f'"index":{index},{delta}')


def reply(events: int, reused: bool, stamped: bool) -> Iterator[bytes]:
    """The chunks of one reply, each made when it is asked for."""
    number = next(_numbers)
    call_id = "Bash_0" if reused else f"toolu_01Bench{number:018}"
    message = (
        f'"id":"msg_{number:012}","role":"assistant","model":"kimi-k3","content":[],'
        '"usage":{"input_tokens":9,"output_tokens":0}'
    )
    yield _event("message_start", f'"message":{{{message}}}')
    yield _event("content_block_start", '"index":0,"content_block":{"type":"text","text":""}')
    plain = _delta(0, "text_delta", "text", "some words of the model ")
    for _ in range(events):
        yield (
            _delta(0, "text_delta", "text", f"t={time.monotonic_ns():020} of the model ")
            if stamped
            else plain
        )
    yield _event("content_block_stop", '"index":0')
    block = f'{{"type":"tool_use","id":"{call_id}","name":"Bash","input":{{}}}}'
    yield _event("content_block_start", f'"index":1,"content_block":{block}')
    yield _delta(1, "input_json_delta", "partial_json", '{\\"command\\":\\"echo')
    fragment = _delta(1, "input_json_delta", "partial_json", " argument text")
    for _ in range(events):
        yield fragment
    yield _delta(1, "input_json_delta", "partial_json", '\\"}')
    yield _event("content_block_stop", '"index":1')
    usage = '"usage":{"output_tokens":5}'
    yield _event("message_delta", f'"delta":{{"stop_reason":"tool_use"}},{usage}')
    yield _event("message_stop", '"x":0')


class Upstream(asyncio.Protocol):
    """One connection. Bodies are counted, not kept: this end must cost next to nothing."""

    def __init__(self) -> None:
        self._head = b""
        self._left = 0
        self._target = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if not self._target:
            self._head += data
            head, found, data = self._head.partition(b"\r\n\r\n")
            if not found:
                return
            self._head = b""
            first, *fields = head.decode("latin-1").split("\r\n")
            lengths = [f.split(":")[1] for f in fields if f.lower().startswith("content-length:")]
            self._target, self._left = first.split(" ")[1], int(lengths[0])
        self._left -= len(data)
        if self._left == 0:
            query = parse_qs(urlsplit(self._target).query)
            self._target = ""
            self._answer({name: values[0] for name, values in query.items()})

    def _answer(self, query: dict[str, str]) -> None:
        pace = int(query.get("pace_us", "0")) / 1e6
        chunks = reply(int(query["events"]), query.get("mint") == "reused", stamped=pace > 0)
        if pace:
            self._transport.write(_HEAD)
            self._pace(chunks, pace, asyncio.get_running_loop().time())
        else:
            self._transport.write(_HEAD + b"".join(chunks) + _END)

    def _pace(self, chunks: Iterator[bytes], pace: float, due: float) -> None:
        chunk = next(chunks, _END)
        self._transport.write(chunk)
        if chunk is not _END:
            due += pace
            asyncio.get_running_loop().call_at(due, self._pace, chunks, pace, due)


async def main() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Upstream, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    closed = asyncio.Event()
    loop.add_reader(sys.stdin, closed.set)
    await closed.wait()


if __name__ == "__main__":
    asyncio.run(main())
