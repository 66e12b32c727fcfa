from __future__ import annotations

import pytest

from moontap.evidence.partial import whole


@pytest.mark.parametrize(
    ("text", "value", "byte"),
    [
        (b'{"a": [1, 2', {"a": [1]}, 11),
        (b'{"a": [1, 2]', {"a": [1, 2]}, 12),
        (b'{"a": [{"b": 1}, {"b": ', {"a": [{"b": 1}]}, 23),
        (b'{"a": [{"b": 1}, {"b": 2}], "c"', {"a": [{"b": 1}, {"b": 2}]}, 31),
        (b'[{"b": [1, 2]}, {"b": [1', [{"b": [1, 2]}], 24),
        (b'[{"b": "x}]"}, {"b": "half', [{"b": "x}]"}], 21),
        (b'{"a": "\\"', {}, 6),
        (b'{"a": 1,, "b": 2}', {"a": 1}, 8),
        (b'{"a": 1} trailing', {"a": 1}, 9),
        (b"[1, 2]\n[3]", [1, 2], 7),
        (b"[", [], 1),
        ('{"ä": "ö", "b": tru'.encode(), {"ä": "ö"}, 18),
        (b'{"a": NaN, "b": "NaN"}', {"a": None, "b": "NaN"}, 6),
        (b'{"a": [-Infinity, 1]}', {"a": [None, 1]}, 7),
    ],
)
def test_whole_parts_before_the_damage_are_kept(text: bytes, value: object, byte: int) -> None:
    mended, found, [damage] = whole(text)
    assert found == value
    assert damage.byte == byte
    assert damage.line == 1 + text.count(b"\n", 0, byte)
    assert whole(mended) == (mended, value, [])


@pytest.mark.parametrize("text", [b'{"a": 1}', b' [1, "\\ud83d"] ', b"{}", '["ö"]'.encode()])
def test_a_whole_text_is_left_alone(text: bytes) -> None:
    assert whole(text)[0] is text
    assert whole(text)[2] == []


@pytest.mark.parametrize("text", [b"", b"nope", b"]", b"[" * 100_000])
def test_where_nothing_can_be_used(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"no JSON|too deeply"):
        whole(text)
