"""What of an input could not be used, and where. Plain data."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Damage:
    """what: a phrase. line: from 1 on; byte: an offset from 0 on; None where not known."""

    what: str
    line: int | None = None
    byte: int | None = None

    def __str__(self) -> str:
        if self.line is None and self.byte is None:
            return self.what
        places = [f"line {self.line:,}"] if self.line else []
        places += [f"byte {self.byte:,}"] if self.byte is not None else []
        return f"{', '.join(places)}: {self.what}"


def line_of(text: bytes, offset: int) -> int:
    """The line, from 1 on, that holds the byte at an offset."""
    return text.count(b"\n", 0, offset) + 1
