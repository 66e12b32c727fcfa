"""Content encodings undone for a search: so that nothing is kept that nobody has looked into.

A body and its `content-encoding` in, plain bytes out, or an error where they cannot be had. Gzip,
zstd and zlib are known by how they begin, whatever the header says; Brotli and raw deflate begin
like anything. Live traffic never comes here.
"""

import codecs

from moontap.wire.encoding import Decoder, decode_up_to

# A body this large once decoded is a bomb, or no conversation; it is blanked, not decoded.
_MOST_DECODED = 256 * 1024 * 1024
_PIECE = 4096
# RFC 1952, 2.3.1; RFC 8878, 3.1.1; RFC 1950, 2.2 for the levels whose second byte is not text.
_MAGIC = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\x78\x01", "deflate"),
    (b"\x78\x9c", "deflate"),
    (b"\x78\xda", "deflate"),
)
_BEGINNINGS = tuple(magic for magic, _ in _MAGIC)
# Compressed data is full of these, a text has none: save line ends, tabs and terminal colours.
_CONTROLS = bytes({*range(32), 127} - {*b"\b\t\n\f\r\x1b"})


def sniffed(body: bytes) -> str | None:
    """The encoding that a body begins like."""
    if not body.startswith(_BEGINNINGS):
        return None
    return next(name for magic, name in _MAGIC if body.startswith(magic))


def decoded(body: bytes, encoding: str | None) -> bytes | None:
    """A body with its content encodings undone as far as it goes; None where there is none.

    Raises ValueError: it decodes to more than is sane, or what cannot be decoded is no text either.
    """
    names = [name.strip() for name in (encoding or "").split(",") if name.strip()]
    plain = body
    for name in reversed(names or [""]):
        plain = _undone(plain, name)
    return None if plain == body else plain


def beginning(body: bytes, encoding: str | None, most: int) -> bytes | None:
    """What `decoded` would begin with, where that is longer than `most` bytes; None where it is
    not, or not known."""
    plain = up_to(body, encoding, most)
    return plain[:most] if plain is not None and len(plain) > most else None


def up_to(body: bytes, encoding: str | None, most: int) -> bytes | None:
    """What a body is once decoded, or of one that is longer than `most` bytes then, its beginning,
    which is too; None where that is not known."""
    names = [name.strip() for name in (encoding or "").split(",") if name.strip()]
    plain = body
    for name in reversed(names or [""]):
        coding = _coding(plain, name)
        if coding is not None:
            plain = decode_up_to(plain, coding, most)
        elif name.lower() not in ("", "identity") and not _is_text(plain):
            return None
    return plain


def _coding(body: bytes, name: str) -> str | None:
    declared = name.lower() not in ("", "identity")
    return name if declared and Decoder.can_decode(name) else sniffed(body)


def _undone(body: bytes, name: str) -> bytes:
    declared = name.lower() not in ("", "identity")
    coding = _coding(body, name)
    if coding is None:
        if declared and not _is_text(body):
            raise ValueError("an encoding that is not known")
        return body
    decoder = Decoder(coding)
    out: list[bytes] = []
    size, failed = 0, -1
    # In pieces, because what a broken piece decodes to is lost.
    for start in range(0, len(body), _PIECE):
        out.append(decoder.feed(body[start : start + _PIECE]))
        if decoder.failed and failed < 0:
            failed = start // _PIECE
        size += len(out[-1])
        if size > _MOST_DECODED:
            raise ValueError("too large once decoded")
    out.append(decoder.flush())
    plain = b"".join(out)
    # What only begins like an encoding is none where nothing came of it.
    alike = plain == body and not declared
    if failed >= 0 and not alike and not _is_text(b"".join(out[failed:])):
        raise ValueError("damaged, or another encoding than is said")
    return plain


def _is_text(data: bytes) -> bool:
    """Whether a search in the bytes as they are would find what stands there."""
    if len(data.translate(None, _CONTROLS)) < len(data):
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)  # it may break off in a character
    except UnicodeDecodeError:
        return False
    return True
