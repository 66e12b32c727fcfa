"""Reading JSON that may be odd: typed and fast first, lenient where that fails.

Bytes in, Python values out. Never raises anything but `ValueError`, so that callers fail open.
"""

import json
import math
import re
from typing import Any

import msgspec

_ANY = msgspec.json.Decoder()

# Half of a surrogate pair, or what looks like it behind an escaped backslash.
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_LOW = b"cdefCDEF"


class Number(float):
    """A number that is too large for a float (`1e400`), or has more digits than Python takes for
    an int. It counts as infinite; text: how it was written."""

    text: str


def loads(text: bytes) -> Any:
    """Decode a JSON text; accepts what Python's decoder does (NaN, lone surrogates, bad UTF-8).

    Raises ValueError.
    """
    try:
        return _ANY.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        pass
    except RecursionError:
        raise ValueError("JSON nested too deeply") from None
    try:
        # `bytes`, because a `msgspec.Raw` has a bytes' contents and none of its methods.
        whole = bytes(text).decode("utf-8", "replace")
        return json.loads(whole, parse_float=_float, parse_int=integer)
    except RecursionError:
        raise ValueError("JSON nested too deeply") from None


def _float(text: str) -> float:
    value = float(text)
    return _number(text) if math.isinf(value) else value


def integer(text: str) -> int | float:
    """A whole number of JSON; `Number` where it has more digits than Python takes for an int."""
    try:
        return int(text)
    except ValueError:
        return _number(text)


def _number(text: str) -> Number:
    number = Number(f"{text[:1]}inf" if text.startswith("-") else "inf")
    number.text = text
    return number


def decode[T](decoder: msgspec.json.Decoder[T], text: bytes) -> T | None:
    """Decode with a typed decoder; None where the text does not have that shape."""
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        text = bytes(text)  # it may be a view (`msgspec.Raw`)
        plain = bytes(text)
        whole = mended(plain)
    return None if whole is plain else decode(decoder, whole)


def mended(text: bytes) -> bytes:
    """The text with lone surrogates (`\\ud83d`) as `\\ufffd`: same length, so offsets stay true.

    JavaScript clients write them where they cut a text within an emoji, and msgspec then reads
    nothing of the whole text. The same object where there are none.
    """
    if b"\\ud" not in text and b"\\uD" not in text:
        return text
    lone: list[int] = []
    high = -1  # where the latest first half stands, if nothing came behind it
    for found in _SURROGATE.finditer(text):
        at = found.start()
        if _is_escaped(text, at):
            continue
        low = text[at + 3] in _LOW
        if low and high >= 0 and high == at - 6:
            lone.pop()
        else:
            lone.append(at)
        high = -1 if low else at
    if not lone:
        return text
    fixed = bytearray(text)
    for at in lone:
        fixed[at : at + 6] = b"\\ufffd"
    return bytes(fixed)


def _is_escaped(text: bytes, at: int) -> bool:
    """Whether the backslash at an offset is the second half of an escaped one."""
    start = at
    while start and text[start - 1] == 0x5C:
        start -= 1
    return (at - start) % 2 == 1


def encode(value: object) -> str:
    """A decoded value as JSON text again, also one that only Python's decoder takes."""
    try:
        return msgspec.json.encode(value, enc_hook=_spelled).decode()
    except (OverflowError, ValueError):  # lone surrogates, numbers of more than 64 bits
        return json.dumps(value, separators=(",", ":"))


def _spelled(value: object) -> msgspec.Raw:
    if isinstance(value, Number):
        return msgspec.Raw(value.text.encode())
    raise ValueError(f"no JSON value: {type(value).__name__}")


def text_of(raw: bytes) -> bytes:
    """A JSON string's decoded text as UTF-8; any other JSON value as it stands."""
    if raw[:1] != b'"':
        return raw
    value: str = loads(raw)
    return value.encode("utf-8", "surrogatepass")


def string(value: object) -> str | None:
    """A decoded value where it is a string."""
    return value if isinstance(value, str) else None
