"""What a call's arguments are worth: JSON or not, an object or not, equal or not.

JSON texts in, readings out. Pure; never repairs anything, never raises.
"""

import json
import re
from collections.abc import Hashable
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import Any, NoReturn

import msgspec

from moontap.wire import jsontext

_STRICT = msgspec.json.Decoder()
_SURROGATE = re.compile("[\ud800-\udfff]")


class Shape(StrEnum):
    """OBJECT: as it should be. EMPTY: nothing at all, or `null`; clients take that as `{}`.
    OTHER: JSON, but no object. BROKEN: not JSON."""

    OBJECT = auto()
    EMPTY = auto()
    OTHER = auto()
    BROKEN = auto()


@dataclass(frozen=True, slots=True)
class Arguments:
    """value: what clients make of it; None where it is broken. why: then, what a parser says."""

    shape: Shape
    value: Any = None
    why: str = ""

    @property
    def runs(self) -> bool:
        """Whether a tool can be run with them."""
        return self.shape in (Shape.OBJECT, Shape.EMPTY)


def read(text: bytes | str) -> Arguments:
    """The arguments of a JSON text."""
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if not raw.strip():
        return Arguments(Shape.EMPTY, {})
    try:
        value = _loads(raw)
    except (ValueError, RecursionError) as error:
        return Arguments(Shape.BROKEN, why=str(error) or type(error).__name__)
    if value is None:
        return Arguments(Shape.EMPTY, {})
    return Arguments(Shape.OBJECT if isinstance(value, dict) else Shape.OTHER, value)


def same(one: Arguments, other: Arguments) -> bool:
    """Whether two say the same: order of members, blanks, escapes and `1` for `1.0` are but
    spelling."""
    mine, theirs = meaning(one), meaning(other)
    try:
        return _TOO_DEEP in (mine, theirs) or mine == theirs
    except RecursionError:
        return True


def meaning(one: Arguments) -> Hashable:
    """A value that is equal for those that say the same."""
    try:
        return _plain(one.value)
    except RecursionError:
        return _TOO_DEEP


_TOO_DEEP = "too deep"  # to be compared: nothing is claimed


def _loads(raw: bytes) -> Any:
    """As a browser's `JSON.parse` does: half surrogates pass, `NaN` does not."""
    try:
        return _STRICT.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        text = raw.decode("utf-8", "replace")
        return json.loads(text, parse_constant=_refuse, parse_int=jsontext.integer)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _plain(value: Any) -> Hashable:
    """The value with what clients and readers spell in their own way made equal; `true` and `1`
    stay apart, which Python takes for equal."""
    match value:
        case dict():
            return dict, frozenset((_text(key), _plain(inner)) for key, inner in value.items())
        case list():
            return list, tuple([_plain(inner) for inner in value])
        case str():
            return str, _text(value)
        case bool():
            return bool, value
    return None, value


def _text(value: str) -> str:
    """Half a surrogate pair has become `\\ufffd` where a history was read."""
    return value if value.isascii() else _SURROGATE.sub("\ufffd", value)
