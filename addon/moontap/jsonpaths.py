"""JSON paths (RFC 9535), behind the one library that evaluates them.

A path as text goes in, the selected values come out, as the very objects that stand in the
document. It never copies or changes a document.
"""

from dataclasses import dataclass
from typing import Any

import jsonpath
from jsonpath.segments import JSONPathSegment
from jsonpath.selectors import NameSelector


class _Environment(jsonpath.JSONPathEnvironment):
    # The library's 100 is less than real tool schemas and nested results can reach; its descent
    # takes one Python frame a level, so this stays well below Python's own limit.
    max_recursion_depth = 400


_ENVIRONMENT = _Environment(strict=True)


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A compiled path.

    source: as written.
    names: member names without which nothing can match, so that a search for them can rule a
    document out; only names that every JSON encoder writes the same.
    """

    source: str
    names: tuple[str, ...]
    path: Any

    def select(self, document: object) -> list[object]:
        """The values the path selects in a document of dicts, lists and scalars.

        Raises RecursionError: the document is nested deeper than the evaluation can go.
        """
        return [match.obj for match in self.path.finditer(document)]

    def places(self, document: object) -> list[tuple[str | int, ...]]:
        """Where they stand: names and indexes from the top. Raises RecursionError as `select`."""
        if isinstance(document, str):  # the library would read it as JSON
            return [] if self.path.segments else [()]
        return [tuple(match.parts) for match in self.path.finditer(document)]


def compile_path(source: str) -> JsonPath:
    """Raises ValueError, with one line that says what is wrong: not an RFC 9535 path."""
    if not source.startswith("$"):
        # Also keeps the empty path away, whose error the library cannot print.
        raise ValueError("a path starts with '$'")
    try:
        path = _ENVIRONMENT.compile(source)
    except (jsonpath.JSONPathError, RecursionError) as error:
        raise ValueError(str(error.args[0]) if error.args else "not a JSON path") from None
    if not isinstance(path, jsonpath.JSONPath):
        raise ValueError("paths cannot be combined; write them as two")
    segments: tuple[JSONPathSegment, ...] = path.segments
    names = (
        segment.selectors[0].name
        for segment in segments
        if len(segment.selectors) == 1 and isinstance(segment.selectors[0], NameSelector)
    )
    return JsonPath(source, tuple(name for name in names if _is_plain(name)), path)


def _is_plain(name: str) -> bool:
    return name.isascii() and name.replace("_", "").replace("-", "").isalnum()
