"""JSON that may be cut off or broken, as values that know where they stand.

A text goes in, a tree of dicts, lists and marked scalars comes out. It never raises on broken
JSON: what can be read is read, and `ok` says whether anything but the end was missing.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from moontap.redact.views import unescape

_TOKEN = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+\\?+)("?)|[\[\]{}:,]|[^\s"\[\]{}:,]++', re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_LITERALS: dict[str, bool | None] = {"true": True, "false": False, "null": None}


class Text(str):
    """A string; start and end are its place in the source, without the quotes."""

    start: int
    end: int


class Number(float):
    """A number, as far as a float can hold it; start and end are its place in the source."""

    start: int
    end: int


@dataclass(slots=True)
class Tree:
    """What was read.

    roots: the values at the top; more than one in JSON lines.
    ok: nothing was wrong, save that the end may be missing.
    shadowed: members that a later one of the same name displaced: object, name, value.
    texts: every string value, keys not among them.
    """

    roots: list[Any] = field(default_factory=list)
    ok: bool = True
    shadowed: list[tuple[dict[str, Any], str, Any]] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)


def is_number(token: str) -> bool:
    return _NUMBER.fullmatch(token) is not None


def parse(source: str) -> Tree:
    """Read as much of a JSON text as there is."""
    tree = Tree()
    stack: list[tuple[Any, str]] = []  # open containers, and the name their next value gets
    wanted = "value"
    name = ""

    def attach(value: object) -> None:
        if not stack:
            tree.roots.append(value)
            return
        container = stack[-1][0]
        if isinstance(container, list):
            container.append(value)
        else:
            if name in container:
                tree.shadowed.append((container, name, container[name]))
            container[name] = value

    for match in _TOKEN.finditer(source):
        token = source[match.start()]
        if token == '"':
            text = Text(unescape(match[1]))
            text.start, text.end = match.span(1)
            if wanted == "name":
                name, wanted = text, "colon"
                continue
            tree.ok = tree.ok and wanted == "value"
            tree.texts.append(text)
            attach(text)
            wanted = "next"
        elif token in "{[":
            tree.ok = tree.ok and wanted == "value"
            container: Any = {} if token == "{" else []
            attach(container)
            stack.append((container, name))
            wanted = "name" if token == "{" else "value"
        elif token in "}]":
            if not stack or isinstance(stack[-1][0], dict) != (token == "}"):
                tree.ok = False
                continue
            stack.pop()
            wanted = "next"
        elif token == ":":
            tree.ok = tree.ok and wanted == "colon"
            wanted = "value"
        elif token == ",":
            tree.ok = tree.ok and wanted == "next"
            wanted = "name" if stack and isinstance(stack[-1][0], dict) else "value"
        else:
            word = match[0]
            last = match.end() == len(source)
            tree.ok = tree.ok and wanted == "value"
            if word in _LITERALS:
                attach(_LITERALS[word])
            elif is_number(word) or (last and word[0] in "-0123456789"):
                number = Number(word) if is_number(word) else Number()
                number.start, number.end = match.span()
                attach(number)
            else:
                tree.ok = tree.ok and last and any(one.startswith(word) for one in _LITERALS)
            wanted = "next"
        if not stack and wanted == "next":
            wanted = "value"
    return tree
