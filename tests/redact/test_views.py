"""Texts put into a body as the ones before them were spelled."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moontap.redact.views import Joined, Part, Raw, Unescaped, View
from tests.redact.test_body import cut, escaped

LETTERS = "abé張\U0001f600"
OTHERS = "yzñ伟\U0001f680"
SWAP = str.maketrans(LETTERS, OTHERS)


def respelled(body: bytes, view: View, start: int, end: int, text: str) -> bytes:
    out = bytearray(body)
    for offset, new in view.respelled(start, end, text):
        out[offset : offset + len(new)] = new
    return bytes(out)


@pytest.mark.parametrize(
    ("body", "new"),
    [
        (b"ab", b"yz"),
        (rb"\u0061\u00e9\n\/b", rb"\u0079\u00f1\n\/z"),
        (rb"\u00E9\ud83d\ude00", rb"\u00F1\ud83d\ude80"),
        (rb"\\u00e9", rb"\\u00e9"),
        ("é\\u5f35a".encode(), "ñ\\u4f1fy".encode()),
    ],
)
def test_escapes_stay_escapes(body: bytes, new: bytes) -> None:
    view = Unescaped(Raw(body), 0, len(body.decode()))
    text = view.text.translate(SWAP) if rb"\\u" not in body else view.text
    assert respelled(body, view, 0, len(view.text), text) == new


@given(st.data(), st.text(st.sampled_from(LETTERS + '"\\\n/ .'), max_size=12))
def test_any_spelling_nested_and_cut(data: st.DataObject, text: str) -> None:
    nested = f'{{"k":"{data.draw(escaped(text))}"}}'
    pieces = [data.draw(escaped(piece)) for piece in data.draw(cut(nested))]
    body = "\n".join(f'["{piece}"]' for piece in pieces).encode()
    whole, parts, at = Raw(body), [], 2
    for piece in pieces:
        parts.append(Unescaped(whole, at, at + len(piece)))
        at += len(piece) + len('"]\n["')
    joined = Joined(parts)
    assert joined.text == nested
    inside = Unescaped(Part(joined, 6, len(nested) - 2), 0, len(nested) - 8)
    assert inside.text == text
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    changed = text[:start] + text[start:end].translate(SWAP) + text[end:]
    new = respelled(body, inside, start, end, changed[start:end])
    assert len(new) == len(body)
    read = "".join(json.loads(line)[0] for line in new.decode().split("\n"))
    assert json.loads(read)["k"] == changed
