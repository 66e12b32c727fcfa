from __future__ import annotations

import json
import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moontap.wire import jsontext

DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'{"a":[1,-2.5,true,null,"x"]}', {"a": [1, -2.5, True, None, "x"]}),
        (b" 1 ", 1),
        (b"9" * 30, int("9" * 30)),
        (b"1e999", math.inf),
        (b"-Infinity", -math.inf),
        (rb'"\ud83d x"', "\ud83d x"),
        (rb'"\ud83d\ude00"', "😀"),
        (b'"\xff"', "\ufffd"),
        (b'{"a":1,"a":2}', {"a": 2}),
    ],
)
def test_loads(text: bytes, value: object) -> None:
    assert jsontext.loads(text) == value


BROKEN = [
    b"",
    b"{",
    b"{'a':1}",
    b"[1,]",
    b"01",
    b'"\n"',
    b"x",
    b"1 2",
    b"\xef\xbb\xbf1",
]


@pytest.mark.parametrize("text", [*BROKEN, DEEP], ids=lambda text: repr(text[:9]))
def test_what_is_no_json_raises_value_error(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        jsontext.loads(text)


@pytest.mark.parametrize(
    "number", ["1e400", "-1E+400", "9" * 5000, "-" + "9" * 5000, "9" * 400, "1.5"]
)
def test_numbers_of_any_size_keep_their_spelling(number: str) -> None:
    assert jsontext.encode(jsontext.loads(f'{{"a": [{number}]}}'.encode())) == f'{{"a":[{number}]}}'


class Named(msgspec.Struct):
    name: str = ""
    rest: msgspec.Raw = msgspec.Raw()


NAMED = msgspec.json.Decoder(Named)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (b'{"name":"a","rest":[1, 2]}', "a"),
        (b"{}", ""),
        (b'{"name":null}', None),
        (b"[]", None),
        (b'{"name":"\xff"}', None),
        (b'{"name":"a","rest":"\xff"}', "a"),
        (b'{"name":"a","rest":' + DEEP + b"}", None),
        (rb'{"name":"\ud83d","rest":"\udc00\ud83d"}', "\ufffd"),
        (rb'{"name":"\\ud83d","rest":"\ude00"}', r"\ud83d"),
        (rb'{"name":"\ud83d\ude00","rest":"\uDE00\u0041"}', "😀"),
        (b"", None),
    ],
    ids=lambda value: repr(value[:40]) if value else "-",
)
def test_decode(text: bytes, name: str | None) -> None:
    value = jsontext.decode(NAMED, text)
    assert (value.name if value else None) == name


def test_a_raw_value_keeps_its_spelling() -> None:
    value = jsontext.decode(NAMED, b'{"rest" : {"a" :1.0 } }')
    assert value
    assert bytes(value.rest) == b'{"a" :1.0 }'


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        (b"abc", b"abc"),
        (rb'"\ud83d"', rb'"\ufffd"'),
        (rb'"\ud83d\ud83d"', rb'"\ufffd\ufffd"'),
        (rb'"\uDC00x"', rb'"\ufffdx"'),
        (rb'"\ud83d\ude00"', rb'"\ud83d\ude00"'),
        (rb'"\ud83d\ude00\ude00"', rb'"\ud83d\ude00\ufffd"'),
        (rb'"\\ud83d"', rb'"\\ud83d"'),
        (rb'"\\\ud83d"', rb'"\\\ufffd"'),
        (rb'"\ud7ff\ue000"', rb'"\ud7ff\ue000"'),
        (rb'"\ud83d\n"', rb'"\ufffd\n"'),
        (b"\\" * 100_001 + b"ud83d", b"\\" * 100_001 + b"ufffd"),
    ],
    ids=lambda text: text[:30].decode(),
)
def test_mended(text: bytes, mended: bytes) -> None:
    assert jsontext.mended(text) == mended


@given(text=st.text(st.characters(), max_size=20))
@settings(max_examples=200, deadline=None)
def test_mending_changes_lone_surrogates_alone(text: str) -> None:
    spelled = json.dumps(text).encode()
    fixed = jsontext.mended(spelled)
    assert len(fixed) == len(spelled)
    whole = json.loads(spelled)  # in which surrogates side by side are one character
    expected = "".join("\ufffd" if 0xD800 <= ord(c) <= 0xDFFF else c for c in whole)
    assert msgspec.json.decode(fixed) == expected


@pytest.mark.parametrize(
    "value",
    [{}, {"a": [1, 2.5, None, "é"]}, 10**30, [-(10**30)], "\ud83d", {"\udc00": 1}, math.inf, "x"],
)
def test_what_loads_gave_can_be_encoded(value: object) -> None:
    text = jsontext.encode(value)
    assert text.isascii() or "é" in text
    assert jsontext.loads(text.encode()) in (value, None)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b'"{\\"a\\":1}"', b'{"a":1}'),
        (rb'"\u00e9"', "é".encode()),
        (rb'"\ud83d"', b"\xed\xa0\xbd"),
        (b'{"a": 1}', b'{"a": 1}'),
        (b"null", b"null"),
        (b"", b""),
        (b'""', b""),
    ],
)
def test_text_of(raw: bytes, text: bytes) -> None:
    assert jsontext.text_of(raw) == text
