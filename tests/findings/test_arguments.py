from __future__ import annotations

import pytest

from moontap.findings.arguments import Shape, read, same


@pytest.mark.parametrize(
    ("text", "shape", "value"),
    [
        ('{"a": 1}', Shape.OBJECT, {"a": 1}),
        (' {"a": "\\ud83d"}\n', Shape.OBJECT, {"a": "\ud83d"}),
        ("", Shape.EMPTY, {}),
        (" \n", Shape.EMPTY, {}),
        ("null", Shape.EMPTY, {}),
        ("[1]", Shape.OTHER, [1]),
        ('"{}"', Shape.OTHER, "{}"),
        ("0", Shape.OTHER, 0),
        ('{"a"', Shape.BROKEN, None),
        ('{"a": NaN}', Shape.BROKEN, None),
        ('{"a": 1} x', Shape.BROKEN, None),
        ("[" * 100_000, Shape.BROKEN, None),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_arguments_are(text: str, shape: Shape, value: object) -> None:
    one = read(text)
    assert (one.shape, one.value) == (shape, value)
    assert bool(one.why) is (shape is Shape.BROKEN)
    assert read(text.encode()) == one
    assert one.runs is (shape in (Shape.OBJECT, Shape.EMPTY))


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ('{"a":1,"b":[2]}', '{ "b": [2.0], "a": 1 }', True),
        ('{"a":"\\ud83d"}', '{"a":"\\ufffd"}', True),
        ('{"a":"\\u00e9"}', '{"a":"é"}', True),
        ("", "{}", True),
        ('{"a":1}', '{"a":true}', False),
        ('{"a":0}', '{"a":false}', False),
        ('{"a":1}', '{"a":"1"}', False),
        ('{"a":1}', '{"b":1}', False),
        ('{"a":[1,2]}', '{"a":[2,1]}', False),
        ('{"a":null}', "{}", False),
    ],
)
def test_which_arguments_say_the_same(one: str, other: str, equal: bool) -> None:
    assert same(read(one), read(other)) is equal
    assert same(read(other), read(one)) is equal
