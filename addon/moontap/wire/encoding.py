"""Content encodings undone while the bytes flow.

Encoded bytes in, plain bytes out as soon as they can be had. Never raises on bad data: from the
chunk on that cannot be decoded, bytes come out as they came in.

Uses zlib and the brotli and zstd packages that mitmproxy itself depends on.
"""

import sys
import zlib
from collections.abc import Callable
from typing import Protocol

import brotli  # type: ignore[import-untyped]

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_GZIP_MAGIC = b"\x1f\x8b"
_BOUNDED_PIECE = 1024
_MAGIC = {_GZIP_MAGIC: "gzip", b"\x28\xb5\x2f\xfd": "zstd"}  # RFC 1952, 2.3.1; RFC 8878, 3.1.1


class _State(Protocol):
    """One compressed member, as zlib and zstd offer it."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


class _BrotliState:
    """Brotli in the same shape, save that it does not tell where a stream ends within a chunk."""

    unused_data = b""

    def __init__(self) -> None:
        self._state = brotli.Decompressor()

    @property
    def eof(self) -> bool:
        return bool(self._state.is_finished())

    def decompress(self, data: bytes) -> bytes:
        return bytes(self._state.process(data))


class _Deflate:
    """`deflate` means zlib, yet some servers send it raw: the first byte tells."""

    def __init__(self) -> None:
        self._inner: _State | None = None

    @property
    def eof(self) -> bool:
        return self._inner is not None and self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data if self._inner else b""

    def decompress(self, data: bytes) -> bytes:
        if self._inner is None:
            zlib_header = data[0] & 0x0F == 8
            self._inner = zlib.decompressobj(zlib.MAX_WBITS if zlib_header else -zlib.MAX_WBITS)
        return self._inner.decompress(data)


class _Codec:
    """A body of one compressed member after the other, which count as one stream.

    Sources: RFC 1952, 2.2 (gzip); RFC 8878, 3.1 (zstd).
    """

    def __init__(self, member: Callable[[], _State]) -> None:
        self._member = member
        self._state = member()
        self._proved = False
        self._taken = bytearray()

    @property
    def unproved(self) -> bytes:
        """What the present member took without giving anything yet: perhaps it is none."""
        return bytes(self._taken)

    def decode(self, data: bytes) -> tuple[bytes, bytes]:
        """What the data decodes to, and from where on it does not (`b""`: all of it does)."""
        plain: list[bytes] = []
        while data:
            if self._state.eof:
                self._state, self._proved = self._member(), False
            try:
                out = self._state.decompress(data)
            except (zlib.error, brotli.error, zstd.ZstdError, ValueError, EOFError):
                return b"".join(plain), self.unproved + data
            self._proved = self._proved or bool(out) or self._state.eof
            if self._proved:
                self._taken.clear()
            else:
                self._taken += data
            plain.append(out)
            data = self._state.unused_data
        return b"".join(plain), b""


_MEMBERS: dict[str, Callable[[], _State]] = {
    "gzip": lambda: zlib.decompressobj(zlib.MAX_WBITS | 16),
    "x-gzip": lambda: zlib.decompressobj(zlib.MAX_WBITS | 16),
    "deflate": _Deflate,
    "br": _BrotliState,
    "zstd": zstd.ZstdDecompressor,
}


class Decoder:
    """Undoes the encoding of one body, chunk by chunk.

    encoding: the `content-encoding` header's value, or None. Where it names none, gzip is
    recognised by its first two bytes: upstreams have been seen to leave the header out.
    """

    def __init__(self, encoding: str | None) -> None:
        self._codec = self._make(encoding)
        self._sniff: bytes | None = None if _names(encoding) else b""
        self.failed = False

    @staticmethod
    def can_decode(encoding: str | None) -> bool:
        """Whether a body with this header can be read."""
        names = _names(encoding)
        return all(name in _MEMBERS for name in names) and len(names) <= 1

    @staticmethod
    def _make(encoding: str | None) -> _Codec | None:
        names = _names(encoding)
        known = len(names) == 1 and names[0] in _MEMBERS
        return _Codec(_MEMBERS[names[0]]) if known else None

    def feed(self, data: bytes) -> bytes:
        """Take encoded bytes; give what they decode to so far."""
        if self._sniff is not None:
            data = self._sniff + data
            if len(data) < 2 and data == _GZIP_MAGIC[: len(data)]:
                self._sniff = data
                return b""
            self._sniff = None
            if data.startswith(_GZIP_MAGIC):
                self._codec = _Codec(_MEMBERS["gzip"])
        if self._codec is None:
            return data
        plain, rest = self._codec.decode(data)
        if rest:
            self._codec = None
            self.failed = True
        return plain + rest

    def flush(self) -> bytes:
        """At the end: what was held back to learn whether it is compressed at all, if anything."""
        held, self._sniff = self._sniff or b"", None
        if self._codec:
            held, self._codec = self._codec.unproved, None
        return held


def sniffed(body: bytes) -> str | None:
    """The encoding that a body's first bytes tell of; None where they tell of none."""
    return next((name for magic, name in _MAGIC.items() if body.startswith(magic)), None)


def decode_prefix(body: bytes, encoding: str | None) -> bytes:
    """A body decoded as far as it goes: a reply that broke off ends early, and is read so far.

    One that does not decode at all comes back as it is.
    """
    decoder = Decoder(encoding)
    return decoder.feed(body) + decoder.flush()


def decode_up_to(body: bytes, encoding: str | None, most: int) -> bytes:
    """The same, but no more than its first `most + 1` bytes: a few kilobytes can hold gigabytes."""
    if _names(encoding) == ["br"] and len(start := _brotli_start(body, most + 1)) > most:
        return start
    decoder = Decoder(encoding)
    out: list[bytes] = []
    size = 0
    # In pieces: zstd makes 128 KB of four bytes.
    for at in range(0, len(body), _BOUNDED_PIECE):
        out.append(decoder.feed(body[at : at + _BOUNDED_PIECE]))
        size += len(out[-1])
        if size > most:
            break
    else:
        out.append(decoder.flush())
    return b"".join(out)[: most + 1]


def _brotli_start(body: bytes, most: int) -> bytes:
    """What a body of Brotli begins with; of all codings here a byte of it can hold the most."""
    state = brotli.Decompressor()
    out: list[bytes] = []
    size = 0
    try:
        piece = bytes(state.process(body, output_buffer_limit=most))
        while piece:
            out.append(piece)
            size += len(piece)
            if size >= most or state.can_accept_more_data():
                break
            piece = bytes(state.process(b"", output_buffer_limit=most))
    except (brotli.error, TypeError):  # damaged; or a version before 1.2, which knows no limit
        pass
    return b"".join(out)[:most]


def _names(encoding: str | None) -> list[str]:
    names = [name.strip().lower() for name in (encoding or "").split(",")]
    return [name for name in names if name and name != "identity"]
