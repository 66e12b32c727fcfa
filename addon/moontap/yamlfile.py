"""YAML files that people write by hand: nodes that know their line, read with checks.

A path goes in, a `Node` comes out whose methods give checked values. Nothing is guessed or
coerced, no tag builds an object, and every complaint is one line that says file, line and remedy.
"""

import difflib
import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

_KINDS = {
    "tag:yaml.org,2002:str": "text",
    "tag:yaml.org,2002:int": "a whole number",
    "tag:yaml.org,2002:float": "a number",
    "tag:yaml.org,2002:bool": "true or false",
    "tag:yaml.org,2002:null": "nothing",
    "tag:yaml.org,2002:timestamp": "a date",
    "tag:yaml.org,2002:seq": "a list",
    "tag:yaml.org,2002:map": "keys with values",
}
_NODES = {"a list": yaml.SequenceNode, "keys with values": yaml.MappingNode}
_REMEDIES = {
    "text": "put it in single quotes",
    "a JSON value": "put it in single quotes",
    "a whole number": "write it in decimal digits, without leading zeros",
    "a number": "write a finite one in decimal digits",
    "true or false": "write one of the two",
    "a list": "start each entry with '- '",
    "keys with values": "write 'key: value'",
}
_BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
# A leading zero means octal in YAML 1.1 and decimal in YAML 1.2.
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]*)")


class YamlError(ValueError):
    """What is wrong with a file: one line, `file:line: what; remedy`."""


@dataclass(frozen=True, slots=True)
class Node:
    """A value of the file and where it stands.

    file, line: for messages; lines count from 1.
    name: what the value is called in messages, for example `redact.patterns[0]`; empty at the top.
    """

    file: str
    line: int
    name: str
    node: yaml.Node

    def error(self, message: str) -> YamlError:
        """A complaint about this value, to be raised by the caller."""
        return YamlError(f"{self.file}:{self.line}: {' '.join(message.split())}")

    @property
    def is_null(self) -> bool:
        """Whether nothing (or `null`) stands here."""
        return self._kind() == "nothing"

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.node, yaml.MappingNode)

    @property
    def is_list(self) -> bool:
        return isinstance(self.node, yaml.SequenceNode)

    @property
    def names(self) -> list[str]:
        """The keys of what is a mapping, whatever they are."""
        return [str(key.value) for key, _ in self.node.value] if self.is_mapping else []

    def members(
        self, known: Collection[str] | None = None, needs: Collection[str] = ()
    ) -> dict[str, "Node"]:
        """The keys and values here, in their order.

        known: the keys that are allowed; None allows any. needs: those that must be there.
        Raises YamlError: not a mapping, a key that is not text, unknown, there twice, or missing.
        """
        if not self.is_mapping:
            raise self._wrong("keys with values", f"known: {_listed(known)}" if known else None)
        where = f"under '{self.name}'" if self.name else "at the top"
        found: dict[str, Node] = {}
        lines: dict[str, int] = {}
        for key_node, value_node in self.node.value:
            key = Node(self.file, key_node.start_mark.line + 1, self.name, key_node)
            # `off` and the like are no text to YAML 1.1; where such a key is known, it is meant.
            if key._kind() != "text" and not key._is_word(known):
                raise key._wrong("text", what=f"a key {where}")
            name = str(key_node.value)
            if known is not None and name not in known:
                raise key.error(f"unknown key '{name}' {where}; {_known(name, known)}")
            if name in found:
                raise key.error(
                    f"key '{name}' stands here and in line {lines[name]}; keep one of them"
                )
            full = f"{self.name}.{name}" if self.name else name
            lines[name] = key.line
            found[name] = Node(self.file, value_node.start_mark.line + 1, full, value_node)
        for name in needs:
            if name not in found:
                raise self.error(f"{self._what} lacks '{name}'; add '{name}: …'")
        return found

    def items(self) -> list["Node"]:
        """The elements of a list. Raises YamlError: not a list."""
        if not self.is_list:
            raise self._wrong("a list")
        return [
            Node(self.file, item.start_mark.line + 1, f"{self.name}[{index}]", item)
            for index, item in enumerate(self.node.value)
        ]

    def text(self) -> str:
        """A text. Raises YamlError for anything else: `123` and `yes` want quotes."""
        if self._kind() != "text":
            raise self._wrong("text")
        return str(self.node.value)

    def integer(self, minimum: int | None = None, maximum: int | None = None) -> int:
        """A decimal whole number of at most 18 digits, within the limits. Raises YamlError."""
        number = self._whole()
        if abs(number) >= 10**18:
            raise self._too_large()
        self._check_limits(number, minimum, maximum)
        return number

    def number(self, minimum: float | None = None) -> float:
        """A finite number, whole or not, not below minimum. Raises YamlError."""
        number = self.integer() if self._kind() == "a whole number" else self._fraction()
        self._check_limits(number, minimum)
        return float(number)

    def boolean(self) -> bool:
        """`true` or `false`. Raises YamlError."""
        value = _BOOLEANS.get(str(self.node.value).lower())
        if self._kind() != "true or false" or value is None:
            raise self._wrong("true or false")
        return value

    def choice(self, options: Collection[str]) -> str:
        """One of the given texts. Raises YamlError."""
        value = self.text()
        if value not in options:
            raise self.error(f"'{value}' is no value for '{self.name}'; {_known(value, options)}")
        return value

    def json(self) -> Any:
        """Whatever JSON can say: text, a number, true, false, null, a list, keys with values.

        Raises YamlError: a date or another tag, a key that is not text or stands twice, a number
        that is not finite or not decimal, a value that holds itself through an alias.
        """
        return self._json(())

    def _is_word(self, words: Collection[str] | None) -> bool:
        return isinstance(self.node, yaml.ScalarNode) and self.node.value in (words or ())

    def _json(self, within: tuple[yaml.Node, ...]) -> Any:
        if self.node in within:
            raise self.error(f"{self._what} is an alias of what it stands in; write it out")
        within = (*within, self.node)
        match self._kind():
            case "keys with values":
                return {key: value._json(within) for key, value in self.members().items()}
            case "a list":
                return [item._json(within) for item in self.items()]
            case "text":
                return self.text()
            case "a whole number":
                return self._whole()
            case "a number":
                return self._fraction()
            case "true or false":
                return self.boolean()
            case "nothing":
                return None
            case _:
                raise self._wrong("a JSON value")

    def _whole(self) -> int:
        digits = str(self.node.value).replace("_", "")
        if self._kind() != "a whole number" or not _DECIMAL.fullmatch(digits):
            raise self._wrong("a whole number")
        try:
            return int(digits)
        except ValueError:  # past sys.get_int_max_str_digits()
            raise self._too_large() from None

    def _fraction(self) -> float:
        try:
            if self._kind() != "a number":
                raise ValueError
            number = float(self.node.value.replace("_", ""))
            if not math.isfinite(number):
                raise ValueError
        except ValueError:
            raise self._wrong("a number") from None
        return number

    def _check_limits(
        self, number: float, minimum: float | None, maximum: float | None = None
    ) -> None:
        if minimum is not None and number < minimum:
            limit = f"at least {minimum}"
        elif maximum is not None and number > maximum:
            limit = f"at most {maximum}"
        else:
            return
        if minimum is None:
            remedy = f"give {maximum} or less"
        else:
            remedy = f"give {minimum} " + ("or more" if maximum is None else f"to {maximum}")
        raise self.error(f"'{self.name}' must be {limit}, is {self.node.value}; {remedy}")

    @property
    def _what(self) -> str:
        return f"'{self.name}'" if self.name else "the file"

    def _kind(self) -> str:
        # A tag that is written out may belie what stands there: `!!int [1]`.
        kind = _KINDS.get(self.node.tag)
        if kind is None or not isinstance(self.node, _NODES.get(kind, yaml.ScalarNode)):
            return f"a value tagged {self.node.tag}"
        return kind

    def _wrong(self, wanted: str, remedy: str | None = None, what: str | None = None) -> YamlError:
        kind = self._kind()
        found = f"'{self.node.value}'" if kind == wanted else kind
        return self.error(
            f"{what or self._what} must be {wanted}, is {found}; {remedy or _REMEDIES[wanted]}"
        )

    def _too_large(self) -> YamlError:
        return self.error(f"'{self.name}' is too large; give fewer digits")


def _listed(words: Collection[str]) -> str:
    return ", ".join(sorted(words))


def _known(word: str, words: Collection[str]) -> str:
    near = difflib.get_close_matches(word, words, n=1)
    return f"known: {_listed(words)}" + (f"; did you mean '{near[0]}'?" if near else "")


def load(path: str) -> Node | None:
    """The root value of a YAML file; None where the file holds none.

    Raises YamlError: unreadable, not UTF-8, not YAML, more than one document.
    """
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
    except OSError as error:
        raise YamlError(
            f"{path}: cannot be read: {error.strerror or type(error).__name__}; "
            "check the path and its permissions"
        ) from None
    except UnicodeDecodeError:
        raise YamlError(f"{path}: is not UTF-8 text; save it as UTF-8") from None
    return parse(text, path)


def parse(text: str, file: str) -> Node | None:
    """Like `load`, for a text that is already there; `file` is its name in messages."""
    try:
        documents = list(_compose(text))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        problem = " ".join((error.problem or error.context or "cannot be read").split())
        raise YamlError(
            f"{file}:{line}: not valid YAML: {problem}; "
            "check indentation, and put texts with special characters in single quotes"
        ) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, int(error.position)) + 1
        raise YamlError(f"{file}:{line}: not valid YAML: a control character; remove it") from None
    except RecursionError:
        raise YamlError(f"{file}:1: nested too deeply; flatten it") from None
    if len(documents) > 1:
        line = documents[1].start_mark.line + 1
        raise YamlError(f"{file}:{line}: a second document begins here; keep one")
    root = Node(file, documents[0].start_mark.line + 1, "", documents[0]) if documents else None
    return None if root is None or root.is_null else root


def _compose(text: str) -> Iterator[yaml.Node]:
    # Composing stops at nodes, which keep their marks; constructing would lose the lines and let
    # the last of two equal keys win in silence.
    yield from yaml.compose_all(text, Loader=yaml.SafeLoader)
