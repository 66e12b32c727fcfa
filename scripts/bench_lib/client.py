"""The agent's end: sends one request over a kept connection and times what comes back.

Blocking sockets on purpose: nothing else runs in this process while it waits, and a plain `recv`
adds less to the time of a byte's arrival than an event loop does.
"""

import re
import socket
import time
from bisect import bisect_left
from dataclasses import dataclass
from typing import Self

from .errors import BenchError

_CALL_ID = re.compile(rb'"type":"tool_use","id":"([^"]+)"')
_STAMP = re.compile(rb"t=(\d{20})[^\n]*\n\n")
_END = b"\r\n0\r\n\r\n"
_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Reply:
    """One exchange, times in ns on the machine's monotonic clock.

    raw: the chunked body as received. arrivals: end offset in raw and time of each read.
    """

    started: int
    raw: bytes
    arrivals: list[tuple[int, int]]

    @property
    def first_byte(self) -> int:
        """From the start of the request to the first byte of the body."""
        return self.arrivals[0][1] - self.started

    @property
    def wall(self) -> int:
        return self.arrivals[-1][1] - self.started

    @property
    def streaming(self) -> int:
        """From the first byte of the body to the last event, not to the end of the body: a proxy
        may send that much later, and a client that has read `message_stop` is done."""
        last = bisect_left(self.arrivals, (len(self.raw) - len(_END) + 2, 0))
        return self.arrivals[last][1] - self.arrivals[0][1]

    @property
    def call_id(self) -> str:
        """The tool call's id as the client sees it."""
        if not (found := _CALL_ID.search(self.raw)):
            raise BenchError("a reply came without its tool call")
        return found[1].decode()

    def delays(self) -> list[int]:
        """For each stamped event: from its writing upstream until its last byte was here."""
        return [
            self.arrivals[bisect_left(self.arrivals, (found.end(), 0))][1] - int(found[1])
            for found in _STAMP.finditer(self.raw)
        ]


class Connection:
    """A kept connection to one proxy; its name is for error messages."""

    def __init__(self, name: str, port: int) -> None:
        self._name = name
        self._socket = socket.create_connection(("127.0.0.1", port), _TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def exchange(self, query: str, session: str, body: bytes) -> Reply:
        """Raises BenchError: no complete reply with status 200 within a minute."""
        head = (
            f"POST /v1/messages?{query} HTTP/1.1\r\nhost: 127.0.0.1\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
            "x-api-key: sk-made-up-for-the-benchmark\r\nanthropic-version: 2023-06-01\r\n"
            f"x-claude-code-session-id: {session}\r\n\r\n"
        )
        request = head.encode() + body
        try:
            started = time.monotonic_ns()
            self._socket.sendall(request)
            return self._receive(started)
        except OSError as error:
            raise BenchError(f"{self._name}: an exchange failed: {error!r}") from error

    def _receive(self, started: int) -> Reply:
        head = bytearray()
        while b"\r\n\r\n" not in head:
            head += self._read()
        now = time.monotonic_ns()
        status, _, body = bytes(head).partition(b"\r\n\r\n")
        if not status.startswith(b"HTTP/1.1 200 "):
            raise BenchError(f"{self._name}: answered {status[:60]!r}")
        raw = bytearray(body)
        arrivals = [(len(raw), now)] if raw else []
        while not raw.endswith(_END):
            raw += self._read()
            arrivals.append((len(raw), time.monotonic_ns()))
        return Reply(started, bytes(raw), arrivals)

    def _read(self) -> bytes:
        if data := self._socket.recv(1 << 18):
            return data
        raise BenchError(f"{self._name}: closed the connection before the end of a reply")
