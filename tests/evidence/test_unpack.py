from __future__ import annotations

import gzip
import random

import pytest
from backports import zstd

from moontap.evidence.unpack import TooLarge, unpacked

TEXT = bytes(random.Random(1).choices(b"abcdefgh \n", k=9000))
GZIP, ZSTD = gzip.compress(TEXT, mtime=0), zstd.compress(TEXT)
BAD = bytearray(GZIP)
BAD[2000:2030] = b"\xff" * 30


@pytest.mark.parametrize(
    ("kind", "data", "expected", "byte", "words"),
    [
        ("gzip", GZIP, TEXT, None, ""),
        ("zstd", ZSTD, TEXT, None, ""),
        ("gzip", GZIP + GZIP, TEXT * 2, None, ""),
        ("zstd", ZSTD + ZSTD, TEXT * 2, None, ""),
        ("gzip", GZIP + bytes(512), TEXT, None, ""),
        ("gzip", GZIP + b"more", TEXT, len(GZIP), "4 bytes behind the gzip are left out"),
        # The trailer alone tells whether all of it is there.
        ("gzip", GZIP[:-8], TEXT, len(GZIP) - 8, "breaks off"),
        ("gzip", GZIP[:-1], TEXT, len(GZIP) - 1, "breaks off"),
        ("gzip", GZIP[:-5] + bytes(5), TEXT, len(GZIP) - 5, "is damaged"),
        ("gzip", GZIP[:3000], None, 3000, "breaks off"),
        ("gzip", GZIP + GZIP[:3000], None, len(GZIP) + 3000, "breaks off"),
        ("gzip", bytes(BAD), None, None, "is damaged"),
        ("gzip", b"\x1f\x8bnot gzip", b"", 3, "is damaged"),
    ],
)
def test_what_unpacks_is_used_and_the_damage_named(
    kind: str, data: bytes, expected: bytes | None, byte: int | None, words: str
) -> None:
    plain, damage = unpacked(data, kind)
    if expected is None:
        assert plain[:2000] == TEXT[:2000]
    else:
        assert plain == expected
    assert bool(damage) is bool(words)
    for one in damage:
        assert words in one.what
        assert byte in (None, one.byte)
        assert one.byte is not None


@pytest.mark.parametrize("pack", [lambda text: gzip.compress(text, 9), zstd.compress])
def test_a_bomb_is_not_unpacked(pack: object) -> None:
    assert callable(pack)
    bomb = pack(bytes(20_000_000))
    kind = "gzip" if bomb[:1] == b"\x1f" else "zstd"
    assert len(unpacked(bomb, kind)[0]) == 20_000_000
    with pytest.raises(TooLarge):
        unpacked(bomb, kind, most=1_000_000)
