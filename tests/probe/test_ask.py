"""One request: bounded in time, and nothing follows where a server points."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from moontap.probe.ask import Answer, post

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@contextmanager
def server(play: Callable[[socket.socket], None]) -> Iterator[tuple[str, int]]:
    """Plays one connection, then hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                asked = b""
                while not asked.endswith(b"{}"):  # unread, it would make a reset of the close
                    asked += connection.recv(1 << 16)
                play(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()
        thread.join(5)


def sends(*pieces: bytes) -> Callable[[socket.socket], None]:
    def play(connection: socket.socket) -> None:
        for piece in pieces:
            connection.sendall(piece)

    return play


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (HEAD + b"abcdef", Answer(200, b"abcdef")),
        (HEAD + b"abc", Answer(200, b"abc", cut=True)),
        (CHUNKED + b"3\r\nabc\r\n0\r\n\r\n", Answer(200, b"abc")),
        (CHUNKED + b"3\r\nabc\r\n", Answer(200, b"abc", cut=True)),
        (b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nabc", Answer(200, b"abc")),
        (
            b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n",
            Answer(302, b""),
        ),
    ],
    ids=["length", "length cut", "chunked", "chunked cut", "until close", "redirect"],
)
def test_answers(sent: bytes, answer: Answer) -> None:
    with server(sends(sent)) as address:
        assert post(address, "/", {}, b"{}", 5) == answer


@pytest.mark.parametrize("sent", [b"", b"no HTTP\r\n\r\n"], ids=["nothing", "nonsense"])
def test_no_answer(sent: bytes) -> None:
    with server(sends(sent)) as address, pytest.raises(ConnectionError):
        post(address, "/", {}, b"{}", 5)


def test_a_server_that_drips_is_left_in_time() -> None:
    def drip(connection: socket.socket) -> None:
        connection.sendall(CHUNKED)
        try:
            for _ in range(100):
                connection.sendall(b"1\r\n.\r\n")
                time.sleep(0.05)
        except OSError:
            pass  # it was left

    started = time.monotonic()
    with server(drip) as address, pytest.raises(TimeoutError):
        post(address, "/", {}, b"{}", 0.5)
    assert time.monotonic() - started < 3


def test_a_silent_one_too() -> None:
    with server(lambda connection: time.sleep(1)) as address, pytest.raises(TimeoutError):
        post(address, "/", {}, b"{}", 0.3)
