"""The texts of a reply as they grow: pieces in, whole texts in its choices out. Pure.

A text that grows by `+=` is copied with each of its pieces: 8 MB in deltas took twelve seconds, on
the thread that carries the traffic.
"""

from collections.abc import Mapping
from typing import Any

from moontap.wire import jsontext
from moontap.wire.types import Choice


class Texts:
    """The pieces of one reply's texts and thinking, by choice."""

    def __init__(self) -> None:
        self._pieces: dict[tuple[int, str], list[str]] = {}

    def add(self, choice: int, name: str, piece: Any) -> None:
        """Take a piece in. name: `text` or `thinking`. What is no text is none."""
        if text := jsontext.string(piece):
            self._pieces.setdefault((choice, name), []).append(text)

    def put(self, choices: Mapping[int, Choice]) -> None:
        """Put what has come so far into the choices. More may follow."""
        for (number, name), pieces in self._pieces.items():
            pieces[:] = ["".join(pieces)]
            setattr(choices[number], name, pieces[0])
