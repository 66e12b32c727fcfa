from __future__ import annotations

import time
from typing import Any

import pytest

from moontap.findings.types import Severity
from tests.findings.rig import Ex, answered, call, called, completion, found, message, use, user

CODE = "arguments-off-schema"
GO = [user("go")]
READ: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "pattern": "^[a-z/.]+$"},
        "lines": {"type": "integer", "minimum": 1},
        "mode": {"enum": ["text", "bytes"]},
        "where": {"type": "object", "required": ["x"]},
        "any": {"anyOf": [{"type": "string"}, {"type": "array"}]},
    },
    "required": ["path"],
    "additionalProperties": False,
}


def of_chat(schema: Any, arguments: Any, **more: Any) -> Ex:
    tools = [{"type": "function", "function": {"name": "read", "parameters": schema, **more}}]
    reply = completion(called(call(name="read", arguments=arguments)))
    return Ex(GO, reply, {"tools": tools}, chat=True)


def of_messages(schema: Any, **arguments: Any) -> Ex:
    tools = [{"name": "read", "input_schema": schema}]
    return Ex(GO, message(use(name="read", **arguments)), {"tools": tools})


@pytest.mark.parametrize(
    ("exchange", "says"),
    [
        (of_messages(READ), "`path` is missing"),
        (of_messages(READ, path=7), "`path` is a number, not string"),
        (of_messages(READ, path=None), "`path` is null, not string"),
        (of_messages(READ, path="a", lines="3"), "`lines` is a string, not integer"),
        (of_messages(READ, path="a", lines=True), "`lines` is a boolean, not integer"),
        (of_messages(READ, path="a", lines=0), "`lines` does not match `minimum`"),
        (of_messages(READ, path="a", mode="x"), '`mode` is none of "text", "bytes"'),
        (of_messages(READ, path="a", where={}), "`x` is missing in `where`"),
        (of_messages(READ, path="a", any=1), "`any` does not match `anyOf`"),
        (of_messages(READ, path="a", size=1), "`size` is not among its members"),
        (of_messages(READ, path="A"), "`path` does not match `pattern`"),
        (of_messages(READ, path=7, lines="x"), "; `lines` is a string"),
        (of_chat(READ, '{"path": 7}'), "`path` is a number, not string"),
        (of_chat(READ, ""), "`path` is missing"),
    ],
)
def test_what_does_not_match(exchange: Ex, says: str) -> None:
    (finding,) = found(CODE, exchange)
    assert finding.severity is Severity.WARNING
    assert says in finding.message
    assert (finding.evidence.facts["tool"], finding.evidence.index) == ("read", 0)


DRAFT_7 = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "properties": {"a": {"items": [{"type": "string"}]}},
}
TREE = {
    "$defs": {"tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}}}},
    "$ref": "#/$defs/tree",
}
ROUND = {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}


def twofold(**more: Any) -> dict[str, Any]:
    """Each part begins with the one below it twice."""
    below = [{"anyOf": [{"$ref": f"#/$defs/a{n}"}] * 2, **more} for n in range(25)]
    parts = {f"a{n}": part for n, part in enumerate(below, 1)}
    return {"$defs": {"a0": {"type": "string"}, **parts}}


TWOFOLD = twofold()
UNEVALUATED = twofold(unevaluatedProperties=False) | {"$ref": "#/$defs/a14"}

# What an agent that draws screens declares: rows and columns, which hold each other.
NODE = {"$ref": "#/$defs/node"}
LAYOUT: dict[str, Any] = {
    "type": "object",
    "$defs": {
        "node": {
            "anyOf": [
                {"properties": {"kind": {"const": kind}, "child": NODE}, "required": ["kind"]}
                for kind in ("row", "column")
            ]
        }
    },
    "properties": {"root": NODE},
}


def layout(depth: int, leaf: str) -> dict[str, Any]:
    node: dict[str, Any] = {"kind": leaf}
    for number in range(depth):
        node = {"kind": ("row", "column")[number % 2], "child": node}
    return node


@pytest.mark.parametrize(
    "exchange",
    [
        of_messages(LAYOUT, root=layout(16, "row")),
        of_messages(READ, path="a", lines=3, mode="text", where={"x": 1}, any=[]),
        of_messages({}, path=7),
        of_messages(None, path=7),
        of_messages(DRAFT_7, a=["x", 1]),
        of_messages(TREE, left={"left": {}}),
        of_messages({"type": "object", "properties": {"a": {"format": "date"}}}, a="today"),
        of_messages({"type": "object", "properties": {"a": {"multipleOf": 0.1}}}, a=0.3),
        of_chat(READ, '{"path": "a", "lines": 3.0}'),
        # Not arguments, or no tool of that name: other findings.
        of_chat(READ, '{"path": '),
        of_chat(READ, "[1]"),
        Ex(GO, message(use(name="other")), {"tools": [{"name": "read", "input_schema": READ}]}),
        Ex(GO, message(use(name="read"))),
        Ex(GO, message(use(name="read")), {"tools": [{"type": "web_search", "name": "read"}]}),
        # Two of one name: not clear which one is meant.
        Ex(
            GO,
            message(use(name="read")),
            {"tools": [{"name": "read", "input_schema": one} for one in (READ, TREE)]},
        ),
        # Cut off.
        Ex(
            GO,
            message(use(name="read"), stop="max_tokens"),
            {"tools": [{"name": "read", "input_schema": READ}]},
        ),
    ],
)
def test_near_misses(exchange: Ex) -> None:
    assert found(CODE, exchange) == []


def test_null_for_what_may_be_left_out_is_but_info() -> None:
    (finding,) = found(CODE, of_messages(READ, path="a", lines=None))
    assert finding.severity is Severity.INFO


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ({"$ref": "https://example.com/schema.json"}, "nothing is fetched"),
        ({"$ref": "file:///etc/hostname"}, "nothing is fetched"),
        ({"$schema": "https://example.com/own"}, "Unknown meta-schema"),
        ({"type": "objekt"}, "objekt"),
        ({"properties": {"path": {"pattern": "["}}}, "regex"),
        ({"properties": {"path": {"pattern": "(a{1000}){1000}"}}}, "regex"),
        ({"description": "x" * 300_000}, "256 KB"),
        (ROUND, "a part of it begins with itself"),
        (TWOFOLD | {"$ref": "#/$defs/a25"}, "too much work"),
        (UNEVALUATED, "too much work"),
    ],
)
def test_a_schema_that_cannot_be_used_is_but_info(schema: Any, says: str) -> None:
    first, second = of_messages(schema, path="a"), of_messages(schema, path="b")
    (finding,) = found(CODE, first, second)
    assert finding.severity is Severity.INFO
    assert says in finding.message


@pytest.mark.parametrize(
    ("depth", "severity", "says"),
    [
        (2, Severity.WARNING, "`root` does not match `anyOf`"),
        (12, Severity.WARNING, "too much work to say where"),
        (60, Severity.INFO, "not used for every call: it is too much work"),
    ],
)
def test_a_schema_that_unfolds_with_the_value_does_not_hold_the_proxy(
    depth: int, severity: Severity, says: str
) -> None:
    """16 levels took 19 s, and each one more twice as long."""
    began = time.monotonic()
    (finding,) = found(CODE, of_messages(LAYOUT, root=layout(depth, "typo")))
    assert time.monotonic() - began < 3
    assert finding.severity is severity
    assert says in finding.message


def test_many_calls_that_each_take_their_time_do_not_add_up() -> None:
    """Some milliseconds each, and ten thousand of them in a reply."""
    calls = [use(f"a{n}", name="read", root=layout(14, "typo")) for n in range(300)]
    tools = [{"name": "read", "input_schema": LAYOUT}]
    began = time.monotonic()
    found(CODE, Ex(GO, message(*calls), {"tools": tools}))
    assert time.monotonic() - began < 5


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def test_a_schema_that_is_nested_deeply_is_but_info() -> None:
    (finding,) = found(CODE, of_messages(nested(300), a=1))
    assert finding.severity is Severity.INFO


@pytest.mark.parametrize(
    "schema",
    [{"pattern": r"^(a|aa)+\1!$"}, {"anyOf": [{"type": "integer"}, {"pattern": r"^(a|aa)+\1!$"}]}],
)
def test_a_pattern_that_runs_away_says_nothing(schema: Any) -> None:
    """An engine without a bound takes years for this one."""
    began = time.monotonic()
    assert found(CODE, of_messages({"properties": {"path": schema}}, path="a" * 60)) == []
    assert time.monotonic() - began < 5
    matched = found(CODE, of_messages({"properties": {"path": schema}}, path="b"))
    assert len(matched) == 1


def test_the_same_mistake_is_told_once_and_another_one_again() -> None:
    exchanges = [of_messages(READ, path=7), of_messages(READ, path=8), of_messages(READ)]
    findings = found(CODE, *exchanges)
    assert [f.exchange for f in findings] == [1, 3]


def test_a_history_that_no_reply_delivered_is_checked_and_a_delivered_call_only_once() -> None:
    ask = of_chat(READ, "{}").ask
    history = [*GO, called(call(name="read")), answered()]
    (finding,) = found(CODE, Ex(history, ask=ask, chat=True))
    assert (finding.evidence.message, finding.evidence.block) == (1, 0)
    findings = found(CODE, of_chat(READ, "{}"), Ex(history, ask=ask, chat=True))
    assert [f.exchange for f in findings] == [1]


def test_functions_of_the_time_before_tools() -> None:
    reply = completion(called(call(name="read", arguments='{"path": 7}')))
    ask = {"functions": [{"name": "read", "parameters": READ}]}
    assert len(found(CODE, Ex(GO, reply, ask, chat=True))) == 1
