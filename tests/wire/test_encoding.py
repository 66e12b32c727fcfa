from __future__ import annotations

import zlib
from collections.abc import Callable
from itertools import product

import brotli  # type: ignore[import-untyped]
import pytest
from backports import zstd
from hypothesis import given, settings
from hypothesis import strategies as st

from moontap.wire.encoding import Decoder, decode_prefix
from tests.fixed import gzip_fixed
from tests.wire.streams import MESSAGES, cuts, few_cuts, named


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def compress_brotli(data: bytes) -> bytes:
    return bytes(brotli.compress(data))


ENCODERS: dict[str, tuple[str | None, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip_fixed),
    "x-gzip": (" X-Gzip ", gzip_fixed),
    "gzip without its header": (None, gzip_fixed),
    "gzip called identity": ("identity", gzip_fixed),
    "gzip under an empty header": ("", gzip_fixed),
    "deflate": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "br": ("br", compress_brotli),
    "zstd": ("zstd", zstd.compress),
    "none": (None, bytes),
    "identity": ("identity", bytes),
    "an unknown one": ("compress", bytes),
    "two": ("gzip, br", bytes),
}
EVERY = pytest.mark.parametrize(("header", "encode"), ENCODERS.values(), ids=ENCODERS.keys())
BODY = named(MESSAGES, "plain").body


def decoded(header: str | None, pieces: list[bytes]) -> tuple[bytes, bool]:
    decoder = Decoder(header)
    plain = b"".join([*map(decoder.feed, pieces), decoder.flush()])
    return plain, decoder.failed


@EVERY
@pytest.mark.parametrize("body", [b"", b"x", BODY], ids=["empty", "a byte", "a stream"])
def test_any_cut_gives_the_body(
    header: str | None, encode: Callable[[bytes], bytes], body: bytes
) -> None:
    for pieces in cuts(encode(body)):
        assert decoded(header, pieces) == (body, False)


@EVERY
@given(body=st.binary(max_size=2000), data=st.data())
@settings(max_examples=25, deadline=None)
def test_any_body(
    header: str | None, encode: Callable[[bytes], bytes], body: bytes, data: st.DataObject
) -> None:
    if body.startswith(b"\x1f\x8b"):
        body = b"\x1f" + body
    sent = encode(body)
    ends = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=6)))
    pieces = [sent[a:b] for a, b in zip([0, *ends], [*ends, len(sent)], strict=True)]
    assert decoded(header, pieces) == (body, False)


@pytest.mark.parametrize(
    ("header", "flush"),
    [("gzip", zlib.Z_SYNC_FLUSH), (None, zlib.Z_SYNC_FLUSH), ("deflate", zlib.Z_SYNC_FLUSH)],
)
def test_an_event_comes_out_when_it_came_in(header: str | None, flush: int) -> None:
    packer = zlib.compressobj(wbits=zlib.MAX_WBITS | (0 if header == "deflate" else 16))
    decoder = Decoder(header)
    for text in (b"data: 1\n\n", b"data: 2\n\n"):
        assert decoder.feed(packer.compress(text) + packer.flush(flush)) == text
    assert decoder.feed(packer.flush()) == b""


def test_a_brotli_event_comes_out_when_it_came_in() -> None:
    packer = brotli.Compressor()
    decoder = Decoder("br")
    for text in (b"data: 1\n\n", b"data: 2\n\n"):
        assert decoder.feed(packer.process(text) + packer.flush()) == text


def test_a_zstd_event_comes_out_when_it_came_in() -> None:
    packer = zstd.ZstdCompressor()
    decoder = Decoder("zstd")
    for text in (b"data: 1\n\n", b"data: 2\n\n"):
        assert decoder.feed(packer.compress(text, packer.FLUSH_BLOCK)) == text


@pytest.mark.parametrize(
    ("header", "encode"),
    [
        ("gzip", gzip_fixed),
        (None, gzip_fixed),
        ("deflate", zlib.compress),
        ("zstd", zstd.compress),
    ],
)
def test_members_in_a_row_are_one_body(
    header: str | None, encode: Callable[[bytes], bytes]
) -> None:
    sent = encode(b"one ") + encode(b"") + encode(b"two ") + encode(b"three")
    for pieces in cuts(sent):
        assert decoded(header, pieces) == (b"one two three", False)


@pytest.mark.parametrize("behind", [b"\0\0\0", b"garbage", b"\x1f\x8bgarbage", b"\x28"])
@pytest.mark.parametrize(
    ("header", "encode"), [("gzip", gzip_fixed), (None, gzip_fixed), ("zstd", zstd.compress)]
)
def test_what_stands_behind_a_member_comes_as_it_is(
    header: str | None, encode: Callable[[bytes], bytes], behind: bytes
) -> None:
    # Some servers pad; the body came out compressed where it and the padding were one chunk.
    for pieces in cuts(encode(b"data: 1\n\n") + behind):
        assert decoded(header, pieces)[0] == b"data: 1\n\n" + behind


# Raw deflate has nothing to know it by: some texts begin as a valid one, `{}` among them.
@pytest.mark.parametrize(
    ("header", "body"),
    [
        *product(
            ["gzip", "x-gzip", "br", "zstd"], [BODY, b"{}", b"\x1f\x8b", b"<html>504</html>\n"]
        ),
        ("deflate", BODY),
    ],
)
def test_a_plain_body_under_a_wrong_header_loses_no_byte(header: str, body: bytes) -> None:
    for pieces in few_cuts(body):
        assert decoded(header, pieces)[0] == body


def test_a_lone_first_byte_of_gzip_is_given_back() -> None:
    decoder = Decoder(None)
    assert decoder.feed(b"\x1f") == b""
    assert decoder.flush() == b"\x1f"
    assert decoder.flush() == b""


def test_from_the_broken_chunk_on_bytes_come_as_they_are() -> None:
    packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    decoder = Decoder("gzip")
    assert decoder.feed(packer.compress(b"data: 1\n\n") + packer.flush(zlib.Z_SYNC_FLUSH))
    assert not decoder.failed
    assert decoder.feed(b"\xff\xff broken") == b"\xff\xff broken"
    assert decoder.failed
    assert decoder.feed(b"and on") == b"and on"


@EVERY
@given(where=st.floats(0, 1, exclude_max=True), bits=st.integers(1, 255), size=st.integers(1, 64))
@settings(max_examples=25, deadline=None)
def test_a_broken_byte_raises_nothing(
    header: str | None, encode: Callable[[bytes], bytes], where: float, bits: int, size: int
) -> None:
    sent = bytearray(encode(BODY))
    sent[int(where * len(sent))] ^= bits
    decoded(header, [bytes(sent[at : at + size]) for at in range(0, len(sent), size)])


@given(pieces=st.lists(st.binary(max_size=30), max_size=6))
@settings(max_examples=100, deadline=None)
@pytest.mark.parametrize("header", [None, "gzip", "deflate", "br", "zstd", "?"])
def test_any_bytes_raise_nothing(header: str | None, pieces: list[bytes]) -> None:
    plain, failed = decoded(header, pieces)
    if header == "?":
        assert (plain, failed) == (b"".join(pieces), False)


@pytest.mark.parametrize(
    ("header", "can"),
    [
        (None, True),
        ("", True),
        ("identity", True),
        ("gzip", True),
        ("GZIP", True),
        (" br ", True),
        ("identity, zstd", True),
        ("deflate,", True),
        ("gzip, br", False),
        ("compress", False),
        ("aws-chunked", False),
    ],
)
def test_can_decode(header: str | None, can: bool) -> None:
    assert Decoder.can_decode(header) is can


@pytest.mark.parametrize("header", ["gzip", "deflate", "br", "zstd"])
def test_a_prefix_decodes_as_far_as_it_goes(header: str) -> None:
    encode = ENCODERS[header][1]
    sent = encode(BODY)
    assert decode_prefix(sent, header) == BODY
    for length in range(len(sent)):
        plain = decode_prefix(sent[:length], header)
        assert BODY.startswith(plain) or plain == sent[:length]


def test_a_prefix_that_does_not_decode_comes_back() -> None:
    assert decode_prefix(b"plain", "gzip") == b"plain"
