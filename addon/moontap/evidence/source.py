"""An input as text: read, unpacked, in UTF-8 and without secrets.

A path or the bytes of standard input in, a `Source` out. Never writes.
"""

import codecs
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from moontap.evidence.damage import Damage, line_of
from moontap.evidence.unpack import MOST, TooLarge, unpacked
from moontap.redact.flow import Redactor
from moontap.wire import encoding

HEAD = 1 << 20
"""Bytes that are enough to tell a flow file from text."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Unusable(Exception):
    """An input of which nothing can be used; one line that says why and what to give instead."""


class Unknown(Unusable):
    """One that is nothing of what can be read."""


@dataclass(slots=True)
class Source:
    """name: as a person gave it. path: None for standard input, and for a file that was packed.

    raw: its bytes, unpacked. notes: what was done to read it. damage: what of it was lost.
    """

    name: str
    path: Path | None
    raw: bytes
    notes: list[str] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)

    def text(self, redactor: Redactor) -> bytes:
        """The whole as UTF-8, secrets masked. Lines stay as they are."""
        body, coding = self.raw, "utf-8"
        for mark, name in _BOMS:
            if body.startswith(mark):
                body, coding = body[len(mark) :], name
                break
        else:
            coding = _unmarked(body)
        if coding != "utf-8":
            self.notes.append(f"it is {coding.upper()}, read as UTF-8: bytes are counted there")
        try:
            said = body.decode(coding)
        except UnicodeDecodeError as error:
            at = error.start
            self.damage.append(
                Damage(
                    f"what is no {coding.upper()} is read as U+FFFD",
                    line_of(body, at) if coding == "utf-8" else None,
                    at,
                )
            )
            said = body.decode(coding, "replace")
        redactor.learn_text(said)
        return redactor.mask_text(said).encode("utf-8", "surrogatepass")


def _never(head: bytes) -> bool:
    return False


def read(
    name: str, data: bytes | None = None, *, enough: Callable[[bytes], bool] = _never
) -> Source:
    """A file, or what standard input gave (data). Raises Unusable.

    enough: whether the beginning of a file is all that is to be read of it here.
    """
    path = None if data is not None else Path(name)
    if path is not None:
        try:
            with path.open("rb") as file:
                data = file.read(HEAD)
                data += b"" if enough(data) else file.read()
        except OSError as error:
            raise Unusable(f"{name}: {os.strerror(error.errno or 0)}") from None
    assert data is not None
    source = Source(name, path, data)
    packed = encoding.sniffed(data)
    if packed:
        try:
            plain, source.damage = unpacked(data, packed)
        except TooLarge:
            most = f"more than {MOST >> 20} MB"
            raise Unusable(
                f"{name}: unpacks to {most}: unpack it to a file and give a part of that"
            ) from None
        if not plain and source.damage:
            raise Unusable(f"{name}: looks like {packed}, and cannot be unpacked")
        source.path, source.raw = None, plain
        source.notes.append(f"{packed}, unpacked")
    if not source.raw.strip():
        raise Unusable(f"{name}: is empty")
    return source


def _unmarked(body: bytes) -> str:
    """UTF-16 without its mark: every other byte of JSON and of logs is then zero."""
    head = body[:512]
    if len(head) > 3 and head[1::2].count(0) > len(head) // 3:
        return "utf-16-le"
    if len(head) > 3 and head[::2].count(0) > len(head) // 3:
        return "utf-16-be"
    return "utf-8"
