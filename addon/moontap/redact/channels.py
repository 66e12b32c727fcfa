"""Strings that a stream cuts into pieces, put together again.

Decoded events go in, one list of pieces per growing string comes out. Knows no protocol by name:
a channel is the place of a string below `delta` (or the block that it continues), with choice,
block and call numbers in it, so delta kinds that do not exist yet are covered.
"""

from collections.abc import Callable, Iterator
from typing import Any

Path = tuple[object, ...]

# Members that number what a delta belongs to: Messages and Chat Completions, then Responses.
_SCOPE = frozenset(("index", "output_index", "content_index", "summary_index", "item_id"))
# Said again in each delta, never in pieces.
_WHOLE = frozenset(("id", "type", "role", "object"))


class Channels[Part]:
    """Collects the pieces of each string of one stream, in the order they came.

    `part` makes what is kept of a piece out of the decoded string.
    """

    def __init__(self, part: Callable[[str], Part]) -> None:
        self._part = part
        self._pieces: dict[Path, list[Part]] = {}
        self._blocks: dict[Path, int] = {}

    def __iter__(self) -> Iterator[list[Part]]:
        return iter(self._pieces.values())

    def feed(self, event: object) -> None:
        """Take in one decoded event."""
        self._walk(event, ())

    def add(self, path: Path, part: Part) -> None:
        """Take in a piece of a channel that is not JSON."""
        self._pieces.setdefault(path, []).append(part)

    def _walk(self, value: object, path: Path) -> None:
        if isinstance(value, dict):
            path += tuple(
                member
                for name, member in value.items()
                if name in _SCOPE and isinstance(member, int | float | str)
            )
            for name, member in value.items():
                if name == "content_block":
                    # A block number is used again when a second message follows in one stream.
                    self._blocks[path] = self._blocks.get(path, 0) + 1
                    self._join(member, path, ())
                elif name == "delta":
                    kind = value.get("type") if isinstance(member, str) else None
                    self._join(member, path, (str(kind),) if kind else ())
                elif name == "text" and isinstance(member, str) and "choices" in path:
                    self._join(member, path, ("text",))  # the older completions
                elif isinstance(member, dict | list):
                    self._walk(member, (*path, name))
        elif isinstance(value, list):
            for label, element in _labelled(value):
                self._walk(element, (*path, label))

    def _join(self, value: object, path: Path, below: Path) -> None:
        if isinstance(value, str):
            self.add((path, self._blocks.get(path, 0), below), self._part(value))
        elif isinstance(value, dict):
            for name, member in value.items():
                if not (name in _WHOLE and isinstance(member, str)):
                    self._join(member, path, (*below, name))
        elif isinstance(value, list):
            for label, element in _labelled(value):
                self._join(element, path, (*below, label))


def _labelled(elements: list[Any]) -> Iterator[tuple[object, Any]]:
    """List elements by the number they name, or else by their position."""
    for position, element in enumerate(elements):
        index = element.get("index") if isinstance(element, dict) else None
        yield (float(index) if isinstance(index, int | float) else position), element
