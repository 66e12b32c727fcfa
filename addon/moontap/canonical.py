"""JSON in one spelling, so that equal values have equal bytes and equal hashes.

A value or a JSON text in, UTF-8 bytes out: keys sorted, no spaces, nothing escaped that need not
be. Numbers keep Python's spelling: `1` and `1.0` differ here, as they do on the wire.
"""

import hashlib
import json
import re

from moontap.wire import jsontext

_ODD_NUMBER = re.compile(rb"NaN|Infinity|[eE]\+?[0-9]{3}|[0-9]{4300}")


def encode(value: object) -> bytes:
    """The canonical text of a decoded value."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def parse(text: bytes) -> object:
    """The value of a JSON text; where it does not parse, the text itself, never repaired.

    Numbers that JSON cannot say again (`NaN`; `1e999`, which is infinite) count as not parsing.
    """
    try:
        value = jsontext.loads(text)
        if _ODD_NUMBER.search(text):
            json.dumps(value, allow_nan=False)
        return value
    except ValueError:
        return text.decode("utf-8", "replace")


def of_text(text: bytes) -> bytes:
    """The canonical text of a JSON text; of the text as a string where it does not parse."""
    return encode(parse(text))


def sha256(value: object) -> str:
    """Hex SHA-256 over the canonical text of a value."""
    return hashlib.sha256(encode(value)).hexdigest()
