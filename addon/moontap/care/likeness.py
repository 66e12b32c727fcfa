"""A value replaced by another that looks alike: letters for letters, digits for digits.

A text and a salt go in, a text comes out, of as many characters and as many bytes in UTF-8, with
the same case and punctuation. The same value always gives the same one. Pure; knows no rule.
"""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from math import prod
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_UUID = re.compile(
    r"(?<![0-9A-Za-z])[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-"
    r"[0-9a-fA-F]{12}(?![0-9A-Za-z])"
)
_HEX = re.compile(
    r"(?<![0-9A-Za-z])(?=[a-fA-F]*[0-9])(?=[0-9]*[a-fA-F])[0-9a-fA-F]{32,}(?![0-9A-Za-z])"
)
# In a UUID: the digit that names its version, and the one that names its variant (RFC 9562).
_UUID_FIXED = (14, 19)
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(?:\.[0-9]+)?([eE][-+]?[0-9]+)?")

# Alphabets whose letters have one length in UTF-8: first, last. A capital row stands before the
# row of its small letters, and folds to it.
_CASED = (
    ("A", "Z", "a"),
    ("\u00c0", "\u00d6", "\u00e0"),
    ("\u00d8", "\u00de", "\u00f8"),
    ("\u0391", "\u03a1", "\u03b1"),
    ("\u03a3", "\u03a9", "\u03c3"),
    ("\u0410", "\u042f", "\u0430"),
    ("\uff21", "\uff3a", "\uff41"),
)
_UNCASED = (
    ("\u05d0", "\u05ea"),  # Hebrew
    ("\u0628", "\u063a"),  # Arabic
    ("\u0904", "\u0939"),  # Devanagari
    ("\u0e01", "\u0e2e"),  # Thai
    ("\u3041", "\u3096"),  # Hiragana
    ("\u30a1", "\u30fa"),  # Katakana
    ("\u4e00", "\u9fff"),  # Han
    ("\uac00", "\ud7a3"),  # Hangul
    ("\U00020000", "\U0002a6d6"),  # Han, the rarer half
)
# What letters of no alphabet above become, by their length in UTF-8: capital, small, neither.
_OTHERS = {2: "\u00c0\u00e0\u05d0", 3: "\uff21\uff41\u4e00", 4: "\U00020000" * 3}

# Up to here every value of one form gets a replacement of its own, by a permutation of all of
# them. Beyond, two that meet are as rare as two equal hashes, and a one-way function is better.
_MOST_PERMUTED = 2**32
_ROUNDS = 64
_MOST_ATTEMPTS = 200


class _Row(NamedTuple):
    """An alphabet. folded: where the row of its small letters begins."""

    first: int
    size: int
    folded: int


def _rows() -> Iterator[_Row]:
    yield _Row(ord("0"), 10, ord("0"))
    for first, last, small in _CASED:
        size = ord(last) - ord(first) + 1
        yield _Row(ord(first), size, ord(small))
        yield _Row(ord(small), size, ord(small))
    for first, last in _UNCASED:
        yield _Row(ord(first), ord(last) - ord(first) + 1, ord(first))


_ROWS = tuple(_rows())
_BY_FIRST = {row.first: row for row in _ROWS}
_ASCII = {
    chr(code): row for row in _ROWS for code in range(row.first, row.first + row.size) if code < 128
}


@dataclass(slots=True)
class _Unit:
    """One character: what it can become, and how it is spelled (`%C3%A9`, or itself).

    row: None where it stays. exact: it is in its row, so that the way back exists.
    """

    character: str
    spelled: str
    row: _Row | None
    exact: bool = True
    digits: str = ""  # instead of the row: the digits it can be one of


def like(value: str, salt: str, refused: Callable[[str], bool] = lambda _: False) -> str:
    """What takes the place of a value; the value itself where it holds no letter and no digit.

    Capital and small letters count as equal and keep their case, and `%41` as what it stands for.
    UUIDs and long hexadecimal numbers stay such, JSON numbers stay numbers of the same size.
    refused: whether a replacement must not be used; then the next one is tried, two hundred in all.
    """
    units = _units(value)
    free = [unit for unit in units if unit.row or unit.digits]
    sizes = [len(unit.digits) or (unit.row.size if unit.row else 1) for unit in free]
    if not free:
        return value
    form = "\0".join(_form(unit) for unit in units)
    key = f"{len(salt)}\0{salt}\0"
    if all(unit.exact for unit in free) and prod(sizes) <= _MOST_PERMUTED:
        tries = _permuted([_number(unit) for unit in free], sizes, key + form)
    else:
        tries = _hashed(key + "".join(_folded(unit) for unit in units), sizes)
    new = value
    for numbers in islice(tries, _MOST_ATTEMPTS):
        given = iter(numbers)
        new = "".join(
            _spelled(unit, next(given)) if unit.row or unit.digits else unit.spelled
            for unit in units
        )
        if new != value and not refused(new):
            break
    return new


def _units(value: str) -> list[_Unit]:
    units: list[_Unit] = []
    position = 0
    for match in _PERCENT.finditer(value):
        units += [_unit(one, one) for one in value[position : match.start()]]
        units += _decoded(match[0])
        position = match.end()
    units += [_unit(one, one) for one in value[position:]]
    _hold_form(units)
    return units


def _decoded(escapes: str) -> list[_Unit]:
    try:
        text = unquote_to_bytes(escapes).decode()
    except UnicodeDecodeError:
        return [_Unit(one, one, None) for one in escapes]
    units, position = [], 0
    for character in text:
        end = position + 3 * len(character.encode())
        units.append(_unit(character, escapes[position:end]))
        position = end
    return units


def _unit(character: str, spelled: str) -> _Unit:
    if character < "\x80":
        return _Unit(character, spelled, _ASCII.get(character))
    if "\ud800" <= character <= "\udfff":
        return _Unit(character, spelled, None)  # half a pair, or a byte that is not UTF-8
    category, code = unicodedata.category(character), ord(character)
    if category == "Nd":
        zero = code - unicodedata.decimal(character)
        return _Unit(character, spelled, _Row(zero, 10, zero))
    if category[0] != "L":
        return _Unit(character, spelled, None)
    for row in _ROWS:
        if row.first <= code < row.first + row.size:
            return _Unit(character, spelled, row)
    others = _OTHERS[len(character.encode())]
    instead = others[0 if category == "Lu" else 1 if category == "Ll" else 2]
    return _Unit(character, spelled, _BY_FIRST[ord(instead)], exact=False)


def _hold_form(units: Sequence[_Unit]) -> None:
    """Hexadecimal stays so, and what is a JSON number stays one."""
    text = "".join(unit.character for unit in units)
    number = _NUMBER.fullmatch(text)
    for pattern in () if number else (_UUID, _HEX):
        for match in pattern.finditer(text):
            upper = match[0] == match[0].upper() and match[0] != match[0].lower()
            for at in range(*match.span()):
                if pattern is _UUID and at - match.start() in _UUID_FIXED:
                    units[at].row = None
                elif units[at].row:
                    units[at].row = None
                    units[at].digits = "0123456789ABCDEF" if upper else "0123456789abcdef"
    if re.fullmatch("0[0-9]+", text):
        units[0].row = None  # else it could meet a number, whose first digit is no 0
    if number:
        first = number.start(1)
        if text[first] != "0":
            units[first].row, units[first].digits = None, "123456789"
        elif len(text) > 1:
            units[first].row = None
        for unit in units[number.start(2) : number.end(2)] if number[2] else ():
            unit.row, unit.digits = None, ""


def _form(unit: _Unit) -> str:
    """All that a permutation leaves alone."""
    if unit.digits:
        return unit.digits.lower()
    return f"{unit.row.folded}" if unit.row else unit.character


def _folded(unit: _Unit) -> str:
    """A character as it counts for what it becomes."""
    if unit.character.isspace():
        return " "
    if unit.row and unit.exact:
        return chr(ord(unit.character) - unit.row.first + unit.row.folded)
    small = unit.character.lower()
    return small if len(small) == 1 else unit.character


def _number(unit: _Unit) -> int:
    if unit.digits:
        found = unit.digits.find(unit.character)
        return found if found >= 0 else unit.digits.lower().find(unit.character.lower())
    return ord(unit.character) - unit.row.first if unit.row else 0


def _spelled(unit: _Unit, number: int) -> str:
    new = unit.digits[number] if unit.digits else chr((unit.row.first if unit.row else 0) + number)
    if unit.spelled == unit.character:
        return new
    coded = "".join(f"%{byte:02X}" for byte in new.encode())
    return coded.lower() if unit.spelled != unit.spelled.upper() else coded


def _hashed(text: str, sizes: Sequence[int]) -> Iterator[list[int]]:
    """Numbers below each size, from a one-way function of the whole value; any number of times."""
    for attempt in count():
        seed = f"{attempt}\0{text}".encode("utf-8", "surrogatepass")
        bits = hashlib.shake_256(seed).digest(4 * len(sizes))
        words = (bits[at : at + 4] for at in range(0, len(bits), 4))
        yield [int.from_bytes(word) % size for word, size in zip(words, sizes, strict=True)]


def _permuted(numbers: Sequence[int], sizes: Sequence[int], key: str) -> Iterator[list[int]]:
    """The next in a ring of all combinations, and so on: no two have the same next one.

    The ring is drawn by a swap-or-not shuffle (Hoang, Morris and Rogaway, 2012), which takes a
    domain of any size, and of which every round undoes itself.
    """
    total = prod(sizes)
    seed = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
    at = 0
    for number, size in zip(numbers, sizes, strict=True):
        at = at * size + number
    for turn in range(_ROUNDS):
        at = _swapped(at, turn, seed, total)
    while True:
        at = (at + 1) % total
        place = at
        for turn in reversed(range(_ROUNDS)):
            place = _swapped(place, turn, seed, total)
        out = []
        for size in reversed(sizes):
            place, number = divmod(place, size)
            out.append(number)
        yield out[::-1]


def _swapped(at: int, turn: int, seed: bytes, total: int) -> int:
    partner = (_random(seed, turn, 0, total) - at) % total
    return partner if _random(seed, turn, 1 + max(at, partner), 2) else at


def _random(seed: bytes, turn: int, place: int, below: int) -> int:
    text = seed + turn.to_bytes(2) + place.to_bytes(8)
    return int.from_bytes(hashlib.blake2b(text, digest_size=16).digest()) % below
