"""The tools that a request declares, with what each takes.

The raw JSON of `tools` or `functions` in, names and schemas out; remembered by these bytes, so that
a turn of a long conversation costs one look into a dict. Pure, bounded, never raises.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from moontap.findings.schemas import Schema
from moontap.wire import jsontext
from moontap.wire.types import Asked

_KEPT = 32  # declarations; sub-agents and side requests have their own


@dataclass(frozen=True, slots=True)
class Declared:
    """names: of all tools, those that the server runs among them. schemas: what a tool takes, by
    its name; not there where it does not say, or where two of one name say different things."""

    names: frozenset[str]
    schemas: Mapping[str, Schema]


NOTHING = Declared(frozenset(), {})


def declared(asked: Asked) -> Declared:
    """What a request declares; no names where it declares no tools at all."""
    tools, functions = bytes(asked.tools), bytes(asked.functions)
    if not functions:
        return _read(tools) if tools else NOTHING
    one, other = _read(tools), _read(functions)
    return Declared(one.names | other.names, {**other.schemas, **one.schemas})


@lru_cache(maxsize=_KEPT)
def _read(raw: bytes) -> Declared:
    try:
        tools = jsontext.loads(raw) if raw else None
    except ValueError:
        tools = None
    names: set[str] = set()
    schemas: dict[str, Any] = {}
    unclear: set[str] = set()
    for name, schema in _entries(tools):
        if name in names and schemas.get(name) != schema:
            unclear.add(name)
        names.add(name)
        if isinstance(schema, dict):
            schemas[name] = schema
    known = {name: Schema(one) for name, one in schemas.items() if name not in unclear}
    return Declared(frozenset(names), known)


def _entries(tools: object) -> Iterator[tuple[str, object]]:
    """The name and the schema of each tool: Messages, Chat Completions, and its `functions`."""
    for tool in tools if isinstance(tools, list) else ():
        if not isinstance(tool, dict):
            continue
        for key in ("function", "custom"):  # a custom tool takes text of any form
            if isinstance(tool.get(key), dict):
                tool = tool[key]
                break
        name = jsontext.string(tool.get("name"))
        if name:
            yield name, tool.get("input_schema", tool.get("parameters"))
