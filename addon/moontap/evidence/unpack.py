"""What a compressed file unpacks to, as far as it goes.

Bytes in, plain bytes out, and what was wrong with them. Pure. It holds at most `MOST` bytes and
one step: a megabyte of gzip may be a gigabyte of text, one of zstd much more.
"""

import sys
import zlib
from collections.abc import Callable
from typing import Protocol

from moontap.evidence.damage import Damage

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MOST = 256 << 20
"""Bytes that are unpacked at most."""

_STEP = 1024  # packed bytes at a time: in zstd they may be 32 MB


class TooLarge(Exception):
    """It unpacks to more than `MOST` bytes."""


class _Member(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


def _gzip() -> _Member:
    return zlib.decompressobj(zlib.MAX_WBITS | 16)


_MAKE: dict[str, tuple[Callable[[], _Member], tuple[bytes, ...]]] = {
    "gzip": (_gzip, (b"\x1f\x8b",)),
    "zstd": (zstd.ZstdDecompressor, (b"\x28\xb5\x2f\xfd",)),
}
_ERRORS = (zlib.error, zstd.ZstdError, EOFError, ValueError)


def unpacked(data: bytes, kind: str, most: int = MOST) -> tuple[bytes, list[Damage]]:
    """The plain bytes, and where the packed ones are damaged. kind: `gzip` or `zstd`.

    Several members one after the other count as one. Raises TooLarge.
    """
    make, magics = _MAKE[kind]
    out, begin, at = bytearray(), 0, 0
    while True:
        plain, end, whole = _member(data, begin, make, most - len(out))
        out += plain
        if not whole:
            what = "breaks off" if end == len(data) else "is damaged"
            return bytes(out), [Damage(f"the {kind} {what}; what unpacks before is used", byte=end)]
        at = len(data) - len(data[end:].lstrip(b"\0"))  # tapes and disks fill up with zeros
        if at == len(data):
            return bytes(out), []
        if not data.startswith(magics, at):
            what = f"{len(data) - at:,} bytes behind the {kind} are left out"
            return bytes(out), [Damage(what, byte=at)]
        begin = at


def _member(
    data: bytes, begin: int, make: Callable[[], _Member], most: int
) -> tuple[bytes, int, bool]:
    """One member: what it unpacks to, the offset of its end or of its damage, whether it is
    whole."""
    state, out, at = make(), bytearray(), begin
    while at < len(data):
        step = data[at : at + _STEP]
        try:
            out += state.decompress(step)
        except _ERRORS:
            rest, at = _last(data, begin, at, make)
            return bytes(out + rest), at, False
        if len(out) > most:
            raise TooLarge
        at += len(step)
        if state.eof:
            return bytes(out), at - len(state.unused_data), True
    return bytes(out), at, False


def _last(data: bytes, begin: int, at: int, make: Callable[[], _Member]) -> tuple[bytes, int]:
    """What of the step that begins there still unpacks, and the byte where that ends: gone through
    once more, the step byte by byte."""
    state, out = make(), bytearray()
    for start in range(begin, at, _STEP):
        state.decompress(data[start : start + _STEP])
    try:
        while True:
            out += state.decompress(data[at : at + 1])
            at += 1
    except _ERRORS:
        return bytes(out), at
