"""Clients that see what is on the wire: HTTP/1.1's chunks, HTTP/2's frames, where it breaks."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass, field

import h2.config
import h2.connection
import h2.events

SECONDS = 5


@dataclass
class Seen:
    """A response. headers: as they came. pieces: chunks or frames. ended: by the protocol's own
    end; else the connection broke. times: of each piece, in seconds from the request on."""

    status: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    pieces: list[bytes] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    ended: bool = False

    def header(self, name: bytes) -> bytes | None:
        return next((value for known, value in self.headers if known.lower() == name), None)


async def http1(
    port: int, path: str = "/", body: bytes = b"", tls: ssl.SSLContext | None = None
) -> Seen:
    """A POST over HTTP/1.1, read byte by byte as far as it goes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    seen, begun = Seen(), asyncio.get_running_loop().time()
    writer.write(b"POST %b HTTP/1.1\r\nHost: x\r\n" % path.encode())
    writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    try:
        async with asyncio.timeout(SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
            first, *lines = head[:-4].split(b"\r\n")
            seen.status = int(first.split()[1])
            seen.headers = [(name, value) for name, _, value in (x.partition(b": ") for x in lines)]
            length = seen.header(b"content-length")
            while length is None:
                size = int((await reader.readuntil(b"\r\n"))[:-2], 16)
                piece = (await reader.readexactly(size + 2))[:-2]
                if not size:
                    seen.ended = True
                    break
                seen.pieces.append(piece)
                seen.times.append(asyncio.get_running_loop().time() - begun)
            if length is not None:
                while sum(map(len, seen.pieces)) < int(length):
                    piece = await reader.read(65536)
                    if not piece:
                        return seen
                    seen.pieces.append(piece)
                seen.ended = True
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()
    return seen


async def http2(
    port: int, path: str = "/", body: bytes = b"", tls: ssl.SSLContext | None = None
) -> Seen:
    """The same over HTTP/2, with prior knowledge or by TLS."""
    if tls:
        tls.set_alpn_protocols(["h2"])
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    connection = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding=None))
    connection.initiate_connection()
    names = {":method": "POST", ":scheme": "http", ":authority": "x", ":path": path}
    connection.send_headers(1, list(names.items()), end_stream=not body)
    if body:
        connection.send_data(1, body, end_stream=True)
    writer.write(connection.data_to_send())
    seen, begun = Seen(), asyncio.get_running_loop().time()
    try:
        async with asyncio.timeout(SECONDS):
            while data := await reader.read(65536):
                for event in connection.receive_data(data):
                    match event:
                        case h2.events.ResponseReceived():
                            seen.status = int(dict(event.headers)[b":status"])
                            seen.headers = [
                                (bytes(n), bytes(v)) for n, v in event.headers if n[:1] != b":"
                            ]
                        case h2.events.DataReceived():
                            if event.data:
                                seen.pieces.append(event.data)
                                seen.times.append(asyncio.get_running_loop().time() - begun)
                            connection.acknowledge_received_data(event.flow_controlled_length, 1)
                        case h2.events.StreamEnded():
                            seen.ended = True
                            return seen
                writer.write(connection.data_to_send())
    except ConnectionError:
        pass
    finally:
        writer.close()
    return seen
