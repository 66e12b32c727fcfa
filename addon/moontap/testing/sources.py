"""Where a test's questions are put to: a tap, lines, a capture folder, a flow file.

A source in, its lines out. It never changes what it is given, but for a tap, whose run it ends.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

type Line = Mapping[str, Any]
"""A JSON object of a log."""


class Ends(Protocol):
    """A tap: something whose run can end."""

    def close(self) -> None: ...


def lines_of[Tap: Ends](
    source: Tap | Iterable[Line] | str | PathLike[str],
    of_tap: Callable[[Tap], Sequence[Line]],
    log: str,
    anew: Callable[[Path], Sequence[Line]],
) -> list[Line]:
    """The lines of a source. of_tap: those of a tap whose run has ended. log: the name of the file
    that holds them in a capture folder. anew: makes them of saved flows.

    Raises FileNotFoundError, and what `anew` raises.
    """
    if isinstance(source, str | PathLike):
        path = Path(source)
        if (path / "run.json").is_file():
            return list[Line](logged(path, log))
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file or folder")
        return list(anew(path))
    if isinstance(source, Iterable):
        return list(source)
    source.close()
    return list(of_tap(source))


def logged(folder: Path, name: str) -> list[dict[str, Any]]:
    """What a log of a capture folder holds; none where there is no such log."""
    log = folder / name
    return [json.loads(line) for line in log.read_bytes().splitlines()] if log.is_file() else []
