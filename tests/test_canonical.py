from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given, settings

from moontap import canonical
from tests.wire.jsons import texts


@pytest.mark.parametrize(
    ("text", "canonical_text"),
    [
        (b"{}", b"{}"),
        (b' { "b" : 1 ,\n"a" : [ 1 , 2.50, true , null ] } ', b'{"a":[1,2.5,true,null],"b":1}'),
        (rb'"\u00e9\/\ud83d\ude00"', '"é/😀"'.encode()),
        (rb'"\"\\\n\u0000"', rb'"\"\\\n\u0000"'),
        (b'{"a":1,"a":2}', b'{"a":2}'),
        (b"1", b"1"),
        (b"1.0", b"1.0"),
        (b"1" * 30, b"1" * 30),
        (b'{"z":{"b":1,"a":2}}', b'{"z":{"a":2,"b":1}}'),
        # What does not parse is a string, as it stands.
        (b"", b'""'),
        (b'{"a":', rb'"{\"a\":"'),
        (b"{'a': 1}", b"\"{'a': 1}\""),
        (b"\xff", '"\ufffd"'.encode()),
        (b"[" * 100_000, b'"' + b"[" * 100_000 + b'"'),
        (b"1" * 5000, b'"' + b"1" * 5000 + b'"'),
    ],
    ids=lambda text: text[:12].decode("latin-1"),
)
def test_of_text(text: bytes, canonical_text: bytes) -> None:
    assert canonical.of_text(text) == canonical_text


@pytest.mark.parametrize("text", [b"1e99", rb'"\ud83d"', b'"\xff"', b"[" * 900 + b"]" * 900])
def test_odd_json_has_a_canonical_text_too(text: bytes) -> None:
    assert canonical.of_text(text) == canonical.of_text(b" " + text + b"\n")
    assert len(canonical.sha256(canonical.parse(text))) == 64


def test_sha256_is_over_the_canonical_text() -> None:
    expected = hashlib.sha256(b'{"a":2,"b":1}').hexdigest()
    assert canonical.sha256({"b": 1, "a": 2}) == expected


@given(text=texts())
@settings(max_examples=200, deadline=None)
def test_equal_values_have_one_spelling(text: bytes) -> None:
    once = canonical.of_text(text)
    assert json.loads(once) == json.loads(text)
    assert canonical.of_text(once) == once
    assert canonical.of_text(json.dumps(json.loads(text), indent=1).encode()) == once


@pytest.mark.parametrize(
    "text", [b"NaN", b'{"a":[1,-Infinity]}', b'{"a":1e999}', b'{"a":-1E+9999}', b"9" * 5000]
)
def test_numbers_that_json_cannot_say_again_stay_text(text: bytes) -> None:
    assert canonical.parse(text) == text.decode()


@pytest.mark.parametrize("text", [b'{"a":1e100}', b'{"a":"NaN"}', b'["Infinity",1e-999]'])
def test_what_looks_like_one_is_a_value(text: bytes) -> None:
    assert canonical.parse(text) == json.loads(text)
