from __future__ import annotations

import itertools
import json
from typing import Any

import jsonschema_rs
import pytest

from moontap.findings.effort import Allowance, Effort, TooMuchError

REF = {"$ref": "#/$defs/n"}
LIST = {"$defs": {"n": {"properties": {"next": REF}}}, **REF}
TWO = {"$defs": {"n": {"anyOf": [{"properties": {"next": REF}}] * 2}}, **REF}


def chain(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"next": value}
    return value


@pytest.mark.parametrize(
    ("schema", "value", "count"),
    [
        (True, {}, 1),
        ({}, 7, 1),
        ({"type": "object"}, {"a": 1}, 1),
        ({"properties": {"a": {}, "b": {}}}, {"a": 1, "c": 2}, 2),
        ({"additionalProperties": {}, "properties": {"a": {}}}, {"a": 1, "c": 2, "d": 3}, 4),
        ({"patternProperties": {"^a": {}, "b": {}}, "propertyNames": {}}, {"x": 1}, 4),
        ({"items": {"items": {}}}, [[1, 2], [3]], 1 + 2 + 2 + 3 + 3),
        ({"prefixItems": [{}], "items": {}, "contains": {}}, [1, 2], 1 + 2 + 1 + 2 + 2),
        ({"anyOf": [{}, {}], "not": {}, "if": {}, "then": {}}, 1, 6),
        ({"enum": list(range(160))}, 1, 11),
        ({"pattern": "a"}, "x" * 100, 201),
        (LIST, chain(0), 2),
        (LIST, chain(9), 20),
        (TWO, chain(3), 4 * (1 + 2 + 4 + 8)),
        ({"$anchor": "a", "properties": {"a": {"$ref": "#a"}}}, {"a": {"a": 1}}, 5),
        ({"$id": "x:y", "properties": {"a": {"$ref": "x:y#"}}}, {"a": 1}, 3),
        ({"unevaluatedProperties": False, "allOf": [{}]}, {"a": 1}, 4),
    ],
)
def test_how_many_evaluations(schema: Any, value: Any, count: int) -> None:
    assert Effort(schema).of(value, Allowance()) == count


@pytest.mark.parametrize(
    ("schema", "value", "why"),
    [
        (TWO, chain(30), "too much"),
        (LIST, chain(5000), "too much"),
        ({"items": {}}, [0] * 200_000, "too much"),
        ({"$ref": "#"}, 1, "begins with itself"),
        ({"anyOf": [{"not": {"$ref": "#"}}]}, 1, "begins with itself"),
        ({"$ref": "other.json"}, 1, "not plain"),
        ({"$ref": "#/nowhere"}, 1, "not plain"),
        ({"$ref": 7}, 1, "not plain"),
        ({"$defs": {"n": {"$id": "a:b"}}, **REF}, 1, "not plain"),
    ],
)
def test_what_is_too_much(schema: Any, value: Any, why: str) -> None:
    with pytest.raises(TooMuchError, match=why):
        Effort(schema).of(value, Allowance())


def test_steps_are_taken_from_all_that_is_allowed() -> None:
    allowance = Allowance(steps=30)
    Effort(LIST).of(chain(3), allowance)
    assert 0 <= allowance.steps < 30
    with pytest.raises(TooMuchError):
        Effort(LIST).of(chain(30), allowance)


PARTS: list[dict[str, Any]] = [
    {"anyOf": [{"type": "string"}, {"type": "null"}]},
    {"properties": {"a": {"oneOf": [{}, {"type": "integer"}]}, "b": {"type": "array"}}},
    {"items": {"allOf": [{"type": "integer"}, {"minimum": 3}]}},
    {"additionalProperties": {"type": "integer"}},
]
VALUES: list[Any] = ["x", None, {"a": 1, "b": []}, [1, 2, "x"], {"a": "x", "c": {}}]


@pytest.mark.parametrize(("first", "second"), [*itertools.combinations(PARTS, 2)])
def test_there_are_never_more_errors_than_evaluations(first: Any, second: Any) -> None:
    schema = {"oneOf": [first, second, {"allOf": [first, second]}]}
    for value in VALUES:
        errors = list(jsonschema_rs.validator_for(schema).iter_errors(value))
        text = json.dumps([str(error.kind) for error in errors])
        assert Effort(schema).of(value, Allowance()) >= len(errors), text
