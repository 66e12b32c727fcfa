from __future__ import annotations

import json
from typing import Any

import pytest

from moontap.findings.declared import declared
from moontap.wire.types import Asked

ANY: dict[str, Any] = {"type": "object"}


def raw(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    ("asked", "names", "checked"),
    [
        (Asked(), set(), set()),
        (Asked(tools=b"[]"), set(), set()),
        (Asked(tools=b"null"), set(), set()),
        (Asked(tools=b'{"name":"a"}'), set(), set()),
        (Asked(tools=raw([7, None, {}, {"name": ""}, {"name": 5}])), set(), set()),
        (Asked(tools=raw([{"name": "a", "input_schema": ANY}, {"name": "b"}])), {"a", "b"}, {"a"}),
        (
            Asked(tools=raw([{"type": "function", "function": {"name": "a", "parameters": ANY}}])),
            {"a"},
            {"a"},
        ),
        (
            Asked(tools=raw([{"type": "builtin_function", "function": {"name": "$web_search"}}])),
            {"$web_search"},
            set(),
        ),
        (Asked(tools=raw([{"type": "custom", "custom": {"name": "a"}}])), {"a"}, set()),
        (Asked(functions=raw([{"name": "a", "parameters": ANY}])), {"a"}, {"a"}),
        (
            Asked(tools=raw([{"name": "a"}]), functions=raw([{"name": "b"}])),
            {"a", "b"},
            set(),
        ),
        # Twice the same is clear, two of one name are not.
        (Asked(tools=raw([{"name": "a", "input_schema": ANY}] * 2)), {"a"}, {"a"}),
        (
            Asked(tools=raw([{"name": "a", "input_schema": ANY}, {"name": "a"}])),
            {"a"},
            set(),
        ),
        (Asked(tools=raw([{"name": "a", "input_schema": True}])), {"a"}, set()),
    ],
)
def test_what_is_declared(asked: Asked, names: set[str], checked: set[str]) -> None:
    known = declared(asked)
    assert (set(known.names), set(known.schemas)) == (names, checked)


def test_the_same_bytes_are_read_once() -> None:
    tools = raw([{"name": "a", "input_schema": ANY}])
    first, again = declared(Asked(tools=tools)), declared(Asked(tools=bytes(bytearray(tools))))
    assert first.schemas["a"] is again.schemas["a"]
