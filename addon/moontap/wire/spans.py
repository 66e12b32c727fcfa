"""Where values stand in a JSON text, as byte offsets, without decoding or copying the rest.

A JSON document as bytes goes in, half-open spans `[start, end)` come out. It never changes the
text and never accepts what is not JSON where it looks: it raises `ValueError` there. What it
skips it checks for balance only.

Why not a JSON library: none gives offsets, and a rewriter that keeps every other byte needs them.
"""

import re
from collections.abc import Container, Iterator, Sequence

import msgspec

_SPACE = re.compile(rb"[ \t\n\r]*+")
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_SCALAR = re.compile(rb"[-+.0-9A-Za-z]++")
# Inside a container only strings and brackets matter for finding its end. A quote that opens no
# string matches alone: looked for anew at each escaped quote behind it, a reply that broke off
# within its arguments took time quadratic in their length.
_STRUCTURE = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}"]', re.DOTALL)

_OPEN = b"[{"
_STRING_DECODER = msgspec.json.Decoder(str)


def skip_space(doc: bytes, position: int) -> int:
    """The first offset at or after position that is not JSON white space."""
    found = _SPACE.match(doc, position)
    return found.end() if found else position


def value_end(doc: bytes, position: int) -> int:
    """Where the value that begins at position ends.

    Raises ValueError: no value begins there, or it is not closed.
    """
    first = doc[position : position + 1]
    if first == b'"':
        found = _STRING.match(doc, position)
        if not found:
            raise ValueError(f"unterminated string at byte {position}")
        return found.end()
    if first and first in _OPEN:
        depth = 0
        for token in _STRUCTURE.finditer(doc, position):
            kind = doc[token.start()]
            if kind in _OPEN:
                depth += 1
            elif kind == 0x22:
                if token.end() - token.start() == 1:
                    raise ValueError(f"unterminated string at byte {token.start()}")
            else:
                depth -= 1
                if depth == 0:
                    return token.end()
        raise ValueError(f"unclosed bracket at byte {position}")
    found = _SCALAR.match(doc, position)
    if not found:
        raise ValueError(f"no JSON value at byte {position}")
    return found.end()


def members(doc: bytes, position: int = 0) -> Iterator[tuple[str, int, int]]:
    """The members of the object that begins at position: key, start and end of the value.

    Lazy: stop early and nothing behind is read. A key that stands twice comes twice; JSON
    decoders take the last. Yields nothing where the value is not an object.
    """
    position = skip_space(doc, position)
    if doc[position : position + 1] != b"{":
        return
    position = skip_space(doc, position + 1)
    if doc[position : position + 1] == b"}":
        return
    while True:
        key_end = value_end(doc, position)
        key = string_at(doc, position, key_end)
        if key is None:
            raise ValueError(f"object key expected at byte {position}")
        position = skip_space(doc, key_end)
        if doc[position : position + 1] != b":":
            raise ValueError(f"':' expected at byte {position}")
        start = skip_space(doc, position + 1)
        end = value_end(doc, start)
        yield key, start, end
        position = _next(doc, end, b"}")
        if position < 0:
            return


def elements(doc: bytes, position: int = 0) -> Iterator[tuple[int, int]]:
    """The elements of the array that begins at position: start and end of each.

    Lazy, like `members`. Yields nothing where the value is not an array.
    """
    position = skip_space(doc, position)
    if doc[position : position + 1] != b"[":
        return
    position = skip_space(doc, position + 1)
    if doc[position : position + 1] == b"]":
        return
    while True:
        end = value_end(doc, position)
        yield position, end
        position = _next(doc, end, b"]")
        if position < 0:
            return


def string_at(doc: bytes, start: int, end: int) -> str | None:
    """The decoded string at [start, end); None where the value is not a string.

    Raises ValueError: it looks like a string and is not one.
    """
    if doc[start : start + 1] != b'"':
        return None
    try:
        return _STRING_DECODER.decode(doc[start:end])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(f"bad string at byte {start}: {error}") from None


def int_at(doc: bytes, start: int, end: int) -> int | None:
    """The whole number at [start, end); None where the value is something else."""
    text = doc[start:end]
    return int(text) if len(text) < 20 and text.lstrip(b"-").isdigit() else None


def _next(doc: bytes, position: int, close: bytes) -> int:
    """Past the comma that follows a value, or -1 at the closing bracket."""
    position = skip_space(doc, position)
    mark = doc[position : position + 1]
    if mark == b",":
        return skip_space(doc, position + 1)
    if mark == close:
        return -1
    raise ValueError(f"',' or {close.decode()!r} expected at byte {position}")


def known_elements(
    doc: bytes, key: str, known: Sequence[bytes], wanted: Container[int]
) -> Iterator[tuple[int, int, int]]:
    """Elements of the array under a top-level key, by position: position, start, end.

    known: the elements' raw bytes as a decoder gave them, which makes this as fast as that
    decoder: 5 MB of history are walked in a few milliseconds instead of a hundred.
    Raises ValueError, before the first of them, where the text does not hold them there: a key
    that stands twice, of which decoders take the last.
    """
    position = member_start(doc, key)
    found = []
    for number, raw in enumerate(known):
        position = skip_space(doc, position + 1 if not number else _comma(doc, position))
        end = position + len(raw)
        if number in wanted:
            if doc[position:end] != bytes(raw):  # a decoder may give a view
                raise ValueError(f"element {number} of {key!r} does not stand at byte {position}")
            found.append((number, position, end))
        position = end
    if known:
        _refuse_another(doc, key, position)
    yield from found


def _comma(doc: bytes, position: int) -> int:
    """Past the comma that must come next."""
    position = skip_space(doc, position)
    if doc[position : position + 1] != b",":
        raise ValueError(f"',' expected at byte {position}")
    return position + 1


def _refuse_another(doc: bytes, wanted: str, position: int) -> None:
    """Raises ValueError where the array whose last element ends at position does not end there, or
    its key comes once more behind it."""
    position = skip_space(doc, position)
    if doc[position : position + 1] != b"]":
        raise ValueError(f"']' expected at byte {position}")
    position += 1
    # Most bodies say neither behind it, and a hundred tools take a millisecond to be walked.
    if doc.find(b'"%s"' % wanted.encode(), position) < 0 and doc.find(b"\\u", position) < 0:
        return
    while (position := _next(doc, position, b"}")) >= 0:
        key_end = value_end(doc, position)
        if string_at(doc, position, key_end) == wanted:
            raise ValueError(f"{wanted!r} stands twice, again at byte {position}")
        position = value_end(doc, skip_space(doc, skip_space(doc, key_end) + 1))


def member_start(doc: bytes, wanted: str) -> int:
    """Where the value of a top-level key begins; reads nothing behind it."""
    position = skip_space(doc, 0)
    mark = b"{"
    while doc[position : position + 1] == mark:
        position = skip_space(doc, position + 1)
        key_end = value_end(doc, position)
        key = string_at(doc, position, key_end)
        position = skip_space(doc, key_end)
        start = skip_space(doc, position + 1)
        if key == wanted:
            return start
        position = skip_space(doc, value_end(doc, start))
        mark = b","
    raise ValueError(f"no {wanted!r} at the top of the document")
