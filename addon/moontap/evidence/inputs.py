"""The inputs that arguments of a command stand for.

Paths in, sources out, each with its kind where what holds it tells that. Never writes.
"""

import os
import stat
import sys
from pathlib import Path

from moontap.capture.reader import TRAFFIC, Unreadable, absent, flow_files
from moontap.evidence.kinds import Kind
from moontap.evidence.recognise import is_flows
from moontap.evidence.source import Source, Unusable, read

STANDARD_INPUT = "-"
_TEXTS = ("*.jsonl", "*.json", "*.har", "*.log", "*.txt", "*.sse")
_OURS = ("pairs.jsonl", "findings.jsonl", "run.json")


def files(name: str) -> list[str]:
    """The files that a name stands for: a folder's flow files, else the texts anywhere below it.

    Raises Unusable where there is nothing, or a folder holds none.
    """
    path = Path(name)
    if name == STANDARD_INPUT:
        return [name]
    if why := absent(path):
        raise Unusable(why)
    if not path.is_dir():
        return [name]
    try:
        return list(map(str, flow_files([path])))
    except Unreadable:
        below = sorted({found for one in _TEXTS for found in path.rglob(one)})
    below = [one for one in below if one.name not in _OURS and one.is_file()]
    if not below:
        raise Unusable(f"{name}: holds no flow file, transcript or other text to look at")
    return list(map(str, below))


def standard_input() -> bytes:
    """What stands on standard input. Raises Unusable."""
    try:
        # Python has none where the shell has closed it.
        return sys.stdin.buffer.read() if sys.stdin else b""
    except OSError as error:
        raise Unusable(f"standard input: {os.strerror(error.errno or 0)}") from None


def opened(
    name: str, stdin: bytes | None = None, given: str | None = None
) -> tuple[Source, Kind | None]:
    """A source, and its kind where that need not be looked for. Raises Unusable.

    stdin: what standard input gave, where the name stands for it. given: what a person named, of
    which this is a file.
    """
    if stdin is not None:
        return read("standard input", stdin), None
    path = Path(name)
    by_folder = given not in (None, name)
    if by_folder and path.name == TRAFFIC and (path.parent / "run.json").is_file():
        return Source(name, path, b""), Kind.CAPTURE
    try:
        mode = path.stat().st_mode
    except OSError:
        return read(name), None  # which says what is wrong
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):  # `<(command)`: it cannot be read twice
        try:
            return read(name, path.read_bytes()), None
        except OSError as error:
            raise Unusable(f"{name}: {error.strerror}") from None
    return read(name, enough=is_flows), None
