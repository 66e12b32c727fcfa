"""Content codings, both ways.

In: request bodies as they came, reply chunks as they would go. Out: the same, decoded or
compressed; each compressed chunk is flushed, so that it can be read on arrival.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterable

import brotli  # type: ignore[import-untyped]

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def decode(body: bytes, coding: str) -> bytes:
    """The body without its codings (comma-separated, applied in order). `ValueError` if broken."""
    for name in reversed([n.strip().lower() for n in coding.split(",")]):
        try:
            match name:
                case "" | "identity":
                    pass
                case "gzip" | "x-gzip":
                    body = zlib.decompress(body, wbits=31)
                case "deflate":
                    body = zlib.decompress(body)
                case "br":
                    body = brotli.decompress(body)
                case "zstd":
                    body = zstd.decompress(body)
                case _:
                    raise ValueError(f"content-encoding {name} is not known")
        except (zlib.error, brotli.error, zstd.ZstdError) as e:
            raise ValueError(f"the body is not {name}") from e
    return body


def encode(chunks: Iterable[bytes], coding: str) -> list[bytes]:
    """Each chunk compressed and flushed; the last one carries the end as well."""
    press, finish = _compressor(coding)
    out = [press(chunk) for chunk in chunks]
    return [*out[:-1], (out[-1] if out else b"") + finish()]


def _compressor(coding: str) -> tuple[Callable[[bytes], bytes], Callable[[], bytes]]:
    if coding == "gzip":
        gz = zlib.compressobj(wbits=31)
        return lambda data: gz.compress(data) + gz.flush(zlib.Z_SYNC_FLUSH), gz.flush
    if coding == "br":
        br = brotli.Compressor(quality=4)
        return lambda data: bytes(br.process(data) + br.flush()), br.finish
    if coding == "zstd":
        zs = zstd.ZstdCompressor()
        return lambda data: zs.compress(data, zs.FLUSH_BLOCK), zs.flush
    raise ValueError(f"unknown coding {coding!r}: use gzip, br or zstd")
