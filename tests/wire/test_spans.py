from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moontap.wire import spans
from tests.wire.jsons import STRINGS, Pairs, texts


def shown(doc: bytes, start: int = 0) -> list[tuple[str, bytes]]:
    return [(key, doc[s:e]) for key, s, e in spans.members(doc, start)]


@pytest.mark.parametrize(
    ("doc", "members"),
    [
        (b"{}", []),
        (b" { } ", []),
        (b'{"a":1}', [("a", b"1")]),
        (b'\n{ "a" :\t-1.5e+3 , "b":"x" }', [("a", b"-1.5e+3"), ("b", b'"x"')]),
        (b'{"a":{"b":[1,{"c":"}"}]},"d":null}', [("a", b'{"b":[1,{"c":"}"}]}'), ("d", b"null")]),
        (b'{"a":1,"a":2}', [("a", b"1"), ("a", b"2")]),
        (rb'{"\u0061\"":"\\"}', [('a"', rb'"\\"')]),
        (b'{"":true}', [("", b"true")]),
        (b'{"a":NaN}', [("a", b"NaN")]),
        (b'{"a":"\xff"}', [("a", b'"\xff"')]),
        (b'{"a":"\x00\n"}', [("a", b'"\x00\n"')]),
        (rb'{"a":"\ud83d"}', [("a", rb'"\ud83d"')]),
        (b"[1]", []),
        (b'"{"', []),
        (b"", []),
        (b'{"a":1}garbage', [("a", b"1")]),
    ],
)
def test_members(doc: bytes, members: list[tuple[str, bytes]]) -> None:
    assert shown(doc) == members


@pytest.mark.parametrize(
    "doc",
    [
        *(
            b"{",
            b'{"a"',
            b'{"a":',
            b'{"a":1',
            b'{"a":1,',
            b'{"a":1,}',
            b'{"a" 1}',
            b'{"a":}',
            b"{a:1}",
        ),
        *(
            b"{1:2}",
            b'{"a":1 "b":2}',
            b'{"a":1]',
            b'{"a":"x}',
            b'{"a":[1}',
            b'{"a":{"b":1}',
            b"{,}",
        ),
        *(
            rb'{"\q":1}',
            rb'{"\ud83d":1}',
            b'{"\xff":1}',
            b'{"a\n":1}',
            b'{"a\\":1}',
            b"{[]:1}",
            b'{"a":}}',
        ),
    ],
)
def test_what_is_no_object_raises(doc: bytes) -> None:
    with pytest.raises(ValueError, match="byte"):
        shown(doc)


def test_members_are_read_one_at_a_time() -> None:
    read = spans.members(b'{"a":1,"b"!')
    assert next(read) == ("a", 5, 6)
    with pytest.raises(ValueError, match="':' expected"):
        next(read)


@pytest.mark.parametrize(
    ("doc", "elements"),
    [
        (b"[]", []),
        (b" [ ] ", []),
        (b'[1, "a,]" ,[2,[3]],{"b":[]}]', [b"1", b'"a,]"', b"[2,[3]]", b'{"b":[]}']),
        (b'{"a":1}', []),
        (b"null", []),
    ],
)
def test_elements(doc: bytes, elements: list[bytes]) -> None:
    assert [doc[start:end] for start, end in spans.elements(doc)] == elements


@pytest.mark.parametrize("doc", [b"[", b"[1", b"[1,", b"[1,]", b"[1 2]", b"[1}", b'["]', b"[,]"])
def test_what_is_no_array_raises(doc: bytes) -> None:
    with pytest.raises(ValueError, match="byte"):
        list(spans.elements(doc))


@pytest.mark.parametrize("text", [b"7", b"-7", b"0", b"9" * 19])
def test_int_at(text: bytes) -> None:
    assert spans.int_at(text, 0, len(text)) == int(text)


@pytest.mark.parametrize("text", [b"7.0", b"7e1", b'"7"', b"null", b"true", b"-", b"", b"9" * 20])
def test_int_at_something_else(text: bytes) -> None:
    assert spans.int_at(text, 0, len(text)) is None


def test_nesting_has_no_limit() -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    assert spans.value_end(deep, 0) == len(deep)
    assert shown(b'{"a":' + deep + b"}") == [("a", deep)]


def walk(doc: bytes, start: int, end: int) -> object:
    """The value at a span, taken apart by spans alone, its leaves read by the standard library."""
    assert spans.value_end(doc, start) == end
    mark = doc[start : start + 1]
    if mark == b"{":
        return Pairs((key, walk(doc, s, e)) for key, s, e in spans.members(doc, start))
    if mark == b"[":
        return [walk(doc, s, e) for s, e in spans.elements(doc, start)]
    value = json.loads(doc[start:end])
    if mark == b'"':
        assert spans.string_at(doc, start, end) == value
    else:
        assert spans.string_at(doc, start, end) is None
    return value


@given(doc=texts())
@settings(max_examples=300, deadline=None)
def test_spans_agree_with_the_standard_library(doc: bytes) -> None:
    start = spans.skip_space(doc, 0)
    end = spans.value_end(doc, start)
    assert doc[end:].strip() == b""
    assert walk(doc, start, end) == json.loads(doc, object_pairs_hook=Pairs)


@given(doc=st.one_of(st.binary(max_size=40), texts().map(lambda text: text[: len(text) // 2])))
@settings(max_examples=300, deadline=None)
def test_any_bytes_raise_nothing_but_value_error(doc: bytes) -> None:
    for read in (spans.members, spans.elements):
        with suppress(ValueError):
            list(read(doc))
    with suppress(ValueError):
        assert spans.value_end(doc, 0) <= len(doc)


@given(messages=st.lists(texts(st.lists(STRINGS, max_size=3)), max_size=6), data=st.data())
@settings(max_examples=100, deadline=None)
def test_known_elements_stand_where_they_stand(messages: list[bytes], data: st.DataObject) -> None:
    wanted = data.draw(st.sets(st.integers(0, max(0, len(messages) - 1))))
    doc = b' {"x":{"messages":[0]}, "messages" : [' + b",".join(messages) + b'], "z":1}'
    known = [message.strip() for message in messages]
    found = list(spans.known_elements(doc, "messages", known, wanted))
    assert [number for number, _, _ in found] == sorted(wanted & set(range(len(messages))))
    for number, start, end in found:
        assert doc[start:end] == known[number]


@pytest.mark.parametrize(
    "doc",
    [
        b'{"messages":[1,2],"messages":[3,4]}',
        b'{"other":[3,4]}',
        b"[3,4]",
        b'{"messages":[3 4]}',
        b'{"messages":[3,4,5]}',
        b'{"messages":[3,4],"a":["]"],"messages":[3,4]}',
        b'{"messages":[3,4],"\\u006d\\u0065ssages":[]}',
        b'{"messages":',
    ],
)
def test_known_elements_that_do_not_stand_there_raise(doc: bytes) -> None:
    with pytest.raises(ValueError, match=r"byte|no 'messages'"):
        list(spans.known_elements(doc, "messages", [b"3", b"4"], {0, 1}))


def test_a_key_that_only_looks_like_it() -> None:
    doc = b'{"messages":[3,4],"a":{"messages":1},"b":"\\u0065","c":["messages"]}'
    assert len(list(spans.known_elements(doc, "messages", [b"3", b"4"], {0, 1}))) == 2


class _CountingTokens:
    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self._pattern = pattern
        self.count = 0

    def finditer(self, text: bytes, start: int) -> Iterator[re.Match[bytes]]:
        for found in self._pattern.finditer(text, start):
            self.count += 1
            yield found


@pytest.mark.parametrize("depth", [1, 3])
def test_a_string_that_does_not_end_is_looked_at_once(
    depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Arguments are full of escaped quotes. Each was tried as the beginning of a string, up to the
    # end of the text: a broken-off reply of 1 MB took minutes.
    counting = _CountingTokens(spans._STRUCTURE)
    monkeypatch.setattr(spans, "_STRUCTURE", counting)
    doc = b'{"a":' + b'{"b":' * depth + b'"' + b'\\"' * 200_000
    with pytest.raises(ValueError, match="unterminated string"):
        shown(doc)
    assert counting.count <= 2 * depth + 1
