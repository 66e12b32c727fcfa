"""Every rule in force, with its value and where it comes from: `moontap rules --explain`.

A rules file in, YAML that says the same with its sources as comments out. It never writes.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from typing import Any

import yaml

from moontap import yamlfile
from moontap.jsonpaths import JsonPath
from moontap.report.text import plain
from moontap.rules import Rules, RulesError, guard, load_rules, replay, tools

DEFAULT = "default"

# Sections that a file spells in another way than the code does.
_WRITTEN: dict[str, Callable[[Any], dict[str, Any]]] = {
    "guard": guard.written,
    "replay": replay.written,
    "tools": tools.written,
}


def explained(path: str | None) -> str:
    """The text. Without a path, the defaults. Raises RulesError as `load_rules` does."""
    rules = load_rules(path)
    name = plain(path) if path else ""
    of_file = f"those of {name}, defaults for the rest" if path else "the defaults"
    lines = [f"# The rules in force: {of_file}. docs/rules.md explains them."]
    given = _members(_root(path))
    for section in fields_of(Rules):
        value = getattr(rules, section.name)
        write = _WRITTEN.get(section.name)
        shown = write(value) if write else _plain(value)
        lines += _member(section.name, shown, given.get(section.name), name, "")
    return "\n".join(lines) + "\n"


def sections_of(path: str) -> list[str]:
    """The sections that a file has, in its order. Raises RulesError."""
    load_rules(path)
    return list(_members(_root(path)))


def _root(path: str | None) -> yamlfile.Node | None:
    try:
        return yamlfile.load(path) if path else None
    except yamlfile.YamlError as error:  # it was changed while we looked
        raise RulesError(str(error)) from None


def _members(node: yamlfile.Node | None) -> dict[str, yamlfile.Node]:
    """The keys and values that a file has there. Everything in it was checked before."""
    return node.members(known=node.names) if node and node.is_mapping else {}


def _items(node: yamlfile.Node | None) -> list[yamlfile.Node]:
    return node.items() if node and node.is_list else []


def _member(
    name: str, value: object, node: yamlfile.Node | None, file: str, indent: str
) -> Iterator[str]:
    """The lines of a key and its value. node: where the file has it."""
    items = _items(node)
    if isinstance(value, Mapping) and value:
        yield f"{indent}{_key(name)}:"
        known = _members(node)
        for key, one in value.items():
            yield from _member(str(key), one, known.get(key), file, indent + "  ")
    elif isinstance(value, list) and value and len(items) == len(value) and _is_long(value):
        yield f"{indent}{_key(name)}:"
        places = {str(item.node.value): item for item in items}  # a set has lost its order
        for one, item in zip(value, items, strict=True):
            yield from _item(one, places.get(str(one), item), file, indent + "  ")
    else:
        yield f"{indent}{_key(name)}: {_scalar(value)}{_source(node, file)}"


def _item(value: object, node: yamlfile.Node, file: str, indent: str) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{indent}- {_scalar(value)}{_source(node, file)}"
        return
    known = _members(node)
    lines = [
        line
        for key, one in value.items()
        for line in _member(str(key), one, known.get(key), file, indent + "  ")
    ]
    yield f"{indent}- {lines[0].lstrip()}"
    yield from lines[1:]


def _source(node: yamlfile.Node | None, file: str) -> str:
    known = node is not None and not node.is_null
    return f"  # {f'{file}:{node.line}' if node and known else DEFAULT}"


def _is_long(value: list[Any]) -> bool:
    """Whether each item is worth a line of its own."""
    return not all(isinstance(one, int) for one in value)


def _key(name: str) -> str:
    return name if name == "off" else _scalar(name)  # a known key: it needs no quotes


def _scalar(value: object) -> str:
    """A value in YAML, in one line."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str) and not value.isprintable():
        return json.dumps(value)
    text = yaml.safe_dump(
        [value], default_flow_style=True, allow_unicode=True, width=1 << 30, sort_keys=False
    )
    return text.strip()[1:-1]


def _plain(value: object) -> Any:
    """A checked value as a file would say it."""
    if isinstance(value, re.Pattern):
        return value.pattern
    if isinstance(value, JsonPath):
        return value.source
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name)) for one in fields_of(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, frozenset):
        return sorted(map(_plain, value))
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, str) else value  # a StrEnum is no text to YAML
