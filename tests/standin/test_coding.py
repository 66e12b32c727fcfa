from __future__ import annotations

import zlib

import brotli  # type: ignore[import-untyped]
import pytest

from moontap.standin.coding import decode, encode

CHUNKS = [b"data: one\n\n", b"data: two\n\n", b"data: [DONE]\n\n"]


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
def test_round_trip(coding: str) -> None:
    assert decode(b"".join(encode(CHUNKS, coding)), coding) == b"".join(CHUNKS)


@pytest.mark.parametrize("coding", ["gzip", "br"])
def test_each_chunk_can_be_read_on_arrival(coding: str) -> None:
    reader = zlib.decompressobj(wbits=31) if coding == "gzip" else None
    br = brotli.Decompressor()
    read = [reader.decompress(c) if reader else br.process(c) for c in encode(CHUNKS, coding)]
    assert read == CHUNKS


@pytest.mark.parametrize(
    ("body", "coding", "words"),
    [
        (b"plain", "gzip", "not gzip"),
        (b"plain", "zstd", "not zstd"),
        (b"plain", "br", "not br"),
        (b"plain", "deflate", "not deflate"),
        (b"plain", "lzw", "not known"),
    ],
)
def test_broken_bodies(body: bytes, coding: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        decode(body, coding)


def test_codings_are_undone_from_the_last() -> None:
    twice = encode(encode([b"x"], "gzip"), "br")
    assert decode(b"".join(twice), "gzip, br") == b"x"
