"""One request to the tap, its answer as bytes.

A body in, status and body out, within a time. It follows no redirect (the key would go along), asks
nothing twice and uses no proxy of the environment.
"""

import http.client
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_PIECE = 64 * 1024
_MOST = 8 * 1024 * 1024  # a reply to one short question is some kilobytes


@dataclass(frozen=True, slots=True)
class Answer:
    """cut: it broke off, or went on past any sensible size."""

    status: int
    body: bytes
    cut: bool = False


def post(
    address: tuple[str, int],
    path: str,
    headers: Mapping[str, str],
    body: bytes,
    seconds: float,
    opened: Callable[[socket.socket], None] = lambda _: None,
) -> Answer:
    """Post a body over plain HTTP.

    seconds: for all of it, however slowly it drips. opened: is given the connection, for another
    thread to shut down. Raises TimeoutError after that time, and OSError where no answer came.
    """
    end = time.monotonic() + seconds
    connection = http.client.HTTPConnection(*address, timeout=seconds)
    try:
        connection.request("POST", path, body, dict(headers))
        line: socket.socket = connection.sock  # `getresponse` lets go of it: where to set times
        opened(line)
        try:
            reply = connection.getresponse()
        except http.client.HTTPException as error:
            raise ConnectionError(f"no HTTP answer ({type(error).__name__})") from None
        got = bytearray()
        try:
            while len(got) < _MOST:
                left = end - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                line.settimeout(left)
                piece = reply.read1(_PIECE)
                if not piece:
                    # Where a length was announced, `read1` ends early without a word.
                    return Answer(reply.status, bytes(got), cut=bool(reply.length))
                got += piece
        except (http.client.IncompleteRead, ConnectionError):
            pass
        return Answer(reply.status, bytes(got), cut=True)
    finally:
        connection.close()
