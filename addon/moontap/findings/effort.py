"""How much work it is to hold a value against a JSON Schema, told before it is done.

A schema and a value in, a number of evaluations out. Pure. A validator walks each branch of
`anyOf`, `oneOf` and `allOf` and each `$ref` anew, so that a schema of a few lines that refers to
itself doubles its work with every level of the value: a layout of rows and columns, 16 deep with
one slip in it, took 19 s, and all the proxy's connections stood still. Here each part of the schema
is counted once for each part of the value, and never more of them than allowed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

_BRANCHES = ("allOf", "anyOf", "oneOf")
_ALONE = ("not", "if", "then", "else")
_BY_NAME = ("dependentSchemas", "dependencies")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_LONG = 4096  # characters of a string; looking through a longer one is work, too
_UNFOLDED = 20_000  # parts, some microseconds each
_WORK = "it is too much work for these arguments"
_A_CHARACTER = 2  # evaluations that a pattern's way over one comes to


class TooMuchError(Exception):
    """More than was allowed, or a schema of which it cannot be told. Says which."""


@dataclass(slots=True)
class Allowance:
    """What the calls of one turn may cost, all in all: the proxy stands still meanwhile.

    steps: of telling the work beforehand, a microsecond each. evaluations: of a part of a schema
    on a part of a value, some ten nanoseconds each. described: those of values that do not match,
    where each may make an error to be read, which takes a thousand times as long.
    """

    steps: int = 100_000
    evaluations: int = 2_000_000
    described: int = 4_000


class Effort:
    """Of one schema."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._anchors: dict[str, Any] = {}
        self._is_plain = True
        self._unevaluated: list[dict[str, Any]] = []
        self._look_around(schema)

    def of(self, value: Any, allowance: Allowance) -> int:
        """At most how many evaluations; takes the steps of it. Raises TooMuchError."""
        return self._count([self._schema], value, allowance)

    def to_compile(self) -> None:
        """Raises TooMuchError where the library would unfold the schema without an end: each part
        with `unevaluatedProperties` holds what it begins with once more (14 levels: 166 s)."""
        allowance = Allowance(evaluations=_UNFOLDED)
        self._count(self._unevaluated, None, allowance)

    def _count(self, parts: list[Any], value: Any, allowance: Allowance) -> int:
        count = _Count(self, allowance)
        try:
            total = sum(count.of(part, value) for part in parts)
        except RecursionError:
            raise TooMuchError(_WORK) from None
        if total > allowance.evaluations:
            raise TooMuchError(_WORK)
        return total

    def target(self, reference: Any) -> Any:
        """What a reference names. Raises TooMuchError where that is not plain to see."""
        root = self._schema.get("$id") if isinstance(self._schema, dict) else None
        if isinstance(reference, str) and self._is_plain:
            base, _, fragment = reference.partition("#")
            if base in ("", root):
                try:
                    return self._within(unquote(fragment))
                except (LookupError, ValueError, TypeError):
                    pass
        raise TooMuchError("what its references mean is not plain")

    def _within(self, fragment: str) -> Any:
        if fragment and not fragment.startswith("/"):
            return self._anchors[fragment]
        found = self._schema
        for name in fragment.split("/")[1:]:
            name = name.replace("~1", "/").replace("~0", "~")
            found = found[int(name)] if isinstance(found, list) else found[name]
        return found

    def _look_around(self, schema: Any) -> None:
        """Find the anchors. A part with a name of its own changes what the references in it
        mean; an anchor that is there twice means one or the other."""
        left = [schema]
        while left:
            part = left.pop()
            if isinstance(part, list):
                left += part
            if not isinstance(part, dict):
                continue
            for key in ("$anchor", "$dynamicAnchor"):
                if isinstance(name := part.get(key), str):
                    self._is_plain &= name not in self._anchors
                    self._anchors[name] = part
            if part is not schema and (isinstance(part.get("$id"), str) or _is_named(part)):
                self._is_plain = False
            if "unevaluatedProperties" in part or "unevaluatedItems" in part:
                self._unevaluated.append(part)
            left += part.values()


def _is_named(part: dict[str, Any]) -> bool:
    """As in draft 4. In data (`const`, `examples`) it may stand, too: then nothing is lost but
    the count."""
    return isinstance(part.get("id"), str) and "$ref" not in part


class _Count:
    def __init__(self, effort: Effort, allowance: Allowance) -> None:
        self._effort = effort
        self._allowance = allowance
        # By the schema's part and the value's; 0 while it is being counted.
        self._known: dict[tuple[int, int], int] = {}

    def of(self, schema: Any, value: Any) -> int:
        if not isinstance(schema, dict):
            return 1
        apart = isinstance(value, (dict, list)) or (isinstance(value, str) and len(value) > _LONG)
        key = id(schema), id(value) if apart else 0
        known = self._known.get(key)
        if known == 0:
            raise TooMuchError("a part of it begins with itself")
        if known is None:
            self._spend(1)
            self._known[key] = 0
            known = self._known[key] = self._all(schema, value)
        return known

    def _all(self, schema: dict[str, Any], value: Any) -> int:
        here = self._sum(self._in_place(schema), value)
        if "unevaluatedProperties" in schema or "unevaluatedItems" in schema:
            # What the branches have looked at is asked again for each member.
            here *= 2 + (len(value) if isinstance(value, (dict, list)) else 0)
        total = 1 + here + len(_list(schema, "enum")) // 16
        if isinstance(value, dict):
            total += self._members(schema, value)
        elif isinstance(value, list):
            total += len(value) + self._items(schema, value)
        elif isinstance(value, str):
            each = _A_CHARACTER if "pattern" in schema else 1 / 64
            total += int(len(value) * each)
        if total > self._allowance.evaluations:
            raise TooMuchError(_WORK)
        return total

    def _in_place(self, schema: dict[str, Any]) -> Iterator[Any]:
        for key in _REFERENCES:
            if key in schema:
                yield self._effort.target(schema[key])
        for key in _BRANCHES:
            yield from _list(schema, key)
        for key in _ALONE:
            if key in schema:
                yield schema[key]
        for key in _BY_NAME:
            yield from _dict(schema, key).values()

    def _members(self, schema: dict[str, Any], value: dict[str, Any]) -> int:
        named, total = _dict(schema, "properties"), 0
        self._spend(len(value))
        for name, inner in value.items():
            if name in named:
                total += self.of(named[name], inner)
        for part in _dict(schema, "patternProperties").values():
            total += self._each(part, value.values())
        if isinstance(part := schema.get("additionalProperties"), dict):
            total += self._each(part, (one for name, one in value.items() if name not in named))
        if isinstance(part := schema.get("unevaluatedProperties"), dict):
            total += self._each(part, value.values())
        if "propertyNames" in schema:
            total += self._each(schema["propertyNames"], value)
        return total

    def _items(self, schema: dict[str, Any], value: list[Any]) -> int:
        total = 0
        for key in ("prefixItems", "items"):
            for part, inner in zip(_list(schema, key), value, strict=False):
                total += self.of(part, inner)
        for key in ("items", "contains", "additionalItems", "unevaluatedItems"):
            if isinstance(part := schema.get(key), dict):
                total += self._each(part, value)
        return total

    def _each(self, schema: Any, values: Iterable[Any]) -> int:
        total = 0
        for value in values:
            self._spend(1)
            total += self.of(schema, value)
        return total

    def _sum(self, schemas: Iterator[Any], value: Any) -> int:
        total = 0
        for schema in schemas:
            self._spend(1)
            total += self.of(schema, value)
        return total

    def _spend(self, steps: int) -> None:
        self._allowance.steps -= steps
        if self._allowance.steps < 0:
            raise TooMuchError(_WORK)


def _list(schema: dict[str, Any], key: str) -> list[Any]:
    found = schema.get(key)
    return found if isinstance(found, list) else []


def _dict(schema: dict[str, Any], key: str) -> dict[str, Any]:
    found = schema.get(key)
    return found if isinstance(found, dict) else {}
