"""Saved flows read back: a flow file, a capture folder, mitmproxy's HAR export.

A path in, HTTP flows out, one at a time. A damaged record is skipped, counted and said; whatever
stands before and after it is used. Never writes.
"""

import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from mitmproxy import flow, http, version
from mitmproxy.io import compat, har, tnetstring

TRAFFIC = "traffic.flow"
"""The name of the flow file in a capture folder."""

_HAR = (b"{", b"\xef\xbb\xbf{")
_ENTRIES = re.compile(r'"entries"\s*:\s*\[')
_BETWEEN = (" ", "\t", "\r", "\n", ",")
_ENTRY = re.compile(r'\{\s*"startedDateTime"')
_HEAD = re.compile(rb"([1-9][0-9]{0,11}):")
_HEAD_MOST = 13
# A record is a dict, and mitmproxy writes the flow's last field first.
_NEXT = re.compile(rb"[1-9][0-9]{0,11}:9:websocket;")
_STEP = 1 << 20


class Unreadable(Exception):
    """Nothing can be read at a path; one line that names it and the remedy."""


@dataclass(slots=True)
class Loss:
    """What of a file could not be used.

    records: damaged ones, one that is cut off among them. bytes: their size. at: the offset of
    the first. newer: the highest flow format among them that only a newer mitmproxy reads, or 0.
    Truthy where there is any.
    """

    records: int = 0
    bytes: int = 0
    at: int = 0
    newer: int = 0

    def __bool__(self) -> bool:
        return bool(self.records)

    def add(self, at: int, size: int, newer: int = 0) -> None:
        """Count one."""
        self.at = self.at if self.records else at
        self.records += 1
        self.bytes += size
        self.newer = max(self.newer, newer)

    def __str__(self) -> str:
        kind = "unreadable" if self.newer else "damaged"
        said = f"1 {kind} record" if self.records == 1 else f"{self.records} {kind} records"
        said += f" ({self.bytes:,} bytes, from byte {self.at:,} on)"
        return f"{said}; {_too_new(self.newer)}" if self.newer else said


class FlowFile:
    """One flow file, in mitmproxy's format or as HAR. Iterate it for its HTTP flows, in order.

    progress: told the bytes read so far, after each record. Holds one record at a time (a HAR
    file whole). Iterating raises Unreadable where nothing can be read; after that `loss` and
    `count` say what was left out and how many flows came.
    """

    def __init__(self, path: Path, progress: Callable[[int], None] | None = None) -> None:
        self.path = path
        self.loss = Loss()
        self.count = 0
        self._progress = progress or (lambda _: None)

    def __iter__(self) -> Iterator[http.HTTPFlow]:
        for _, one in self.records():
            yield one

    def records(self) -> Iterator[tuple[int, http.HTTPFlow]]:
        """The flows with their offsets, for `flow_at`; of a HAR file, their numbers from 0."""
        self.loss, self.count, others = Loss(), 0, 0
        with _opened(self.path) as file:
            start = file.peek(_HEAD_MOST)[:_HEAD_MOST]
            read = _har if start.startswith(_HAR) else _framed
            for at, end, one in read(file, self.loss):
                if isinstance(one, http.HTTPFlow):
                    self.count += 1
                    yield at, one
                else:  # TCP, UDP or DNS: no traffic of an agent, and no loss
                    others += 1
                self._progress(end)
        if self.loss and not self.count + others:
            raise Unreadable(f"{self.path} {_nothing(start, self.loss)}")


def flow_at(path: Path, offset: int) -> http.HTTPFlow:
    """The flow whose record begins at an offset that `records` gave. Raises Unreadable."""
    return next(flows_at(path, [offset]))


def flows_at(path: Path, offsets: Sequence[int]) -> Iterator[http.HTTPFlow]:
    """The same for several; a HAR file is read but once for them. Raises Unreadable."""
    with _opened(path) as file:
        is_har = file.peek(_HEAD_MOST).startswith(_HAR)
        numbered = {at: one for at, _, one in _har(file, Loss()) if at in offsets} if is_har else {}
        size = os.fstat(file.fileno()).st_size
        for offset in offsets:
            one = numbered.get(offset) if is_har else _record(file, offset, size)[1]
            if not isinstance(one, http.HTTPFlow):
                raise Unreadable(f"{path}: has changed since it was read")
            yield one


def flow_files(paths: Sequence[Path]) -> list[Path]:
    """The flow files that paths stand for.

    A file is itself; a capture folder its `traffic.flow`; any other folder every `*.flow` and
    `*.har` in it and every capture folder below it, in the order of their names. Raises Unreadable
    where there is none.
    """
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise Unreadable(f"{path}: no such file or folder")
        if not path.is_dir():
            found.append(path)
            continue
        below = (
            [path / TRAFFIC]
            if (path / TRAFFIC).is_file()
            else sorted({*path.glob("*.flow"), *path.glob("*.har"), *path.glob(f"*/{TRAFFIC}")})
        )
        if not below:
            raise Unreadable(f"{path} holds no flow file: neither {TRAFFIC} nor *.flow nor *.har")
        found += below
    return found


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A file for reading. Raises Unreadable, for what goes wrong later on as well."""
    try:
        if not stat.S_ISREG(mode := path.stat().st_mode) and not stat.S_ISDIR(mode):
            # A record's end is looked for at its beginning, and a pipe cannot go back.
            raise Unreadable(f"{path} is a pipe or device: save what it gives to a file first")
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise Unreadable(f"{path}: {os.strerror(error.errno or 0)}") from None


def _too_new(format_: int) -> str:
    return (
        f"written by a newer mitmproxy (flow format {format_}, this one reads up to "
        f"{version.FLOW_FORMAT_VERSION}): update mitmproxy"
    )


def _nothing(start: bytes, loss: Loss) -> str:
    """What is the matter with a file of which no record can be read."""
    if loss.newer:
        return f"was {_too_new(loss.newer)}"
    if start.startswith(_HAR):
        return "holds no readable exchange: a HAR file has its exchanges in log.entries"
    if _HEAD.match(start):
        return f"holds no whole exchange: {loss}"
    return f"is not a flow file: give mitmproxy's format ({TRAFFIC}), a capture folder, or a HAR"


type _Found = Iterator[tuple[int, int, flow.Flow]]
"""Records: where each begins (for a HAR file its number), how far the file is read, the flow."""


def _framed(file: IO[bytes], loss: Loss) -> _Found:
    size = os.fstat(file.fileno()).st_size
    at = 0
    while at < size:
        newer = 0
        try:
            end, one = _record(file, at, size)
        except _Newer as error:
            end, one, newer = error.end, None, error.format
        if one is not None:
            yield at, end, one
        else:
            end = end or _resume(file, at, size)
            loss.add(at, end - at, newer)
        at = end


class _Newer(Exception):
    """A whole record that this mitmproxy does not know how to read."""

    def __init__(self, end: int, format_: int) -> None:
        super().__init__(end, format_)
        self.end, self.format = end, format_


def _record(file: IO[bytes], at: int, size: int) -> tuple[int, flow.Flow | None]:
    """The flow whose record begins there, and where that ends.

    No flow: the record is damaged; no end (0): nor can be told where it ends. Raises _Newer.
    """
    file.seek(at)
    framed = _HEAD.match(file.read(_HEAD_MOST))
    if not framed:
        return 0, None
    start, length = framed.end(), int(framed[1])
    end = at + start + length + 1
    if end > size:
        return 0, None
    if length > _STEP:  # where a damaged length says so, that much is not read for nothing
        file.seek(end - 1)
        if file.read(1) != b"}":
            return 0, None
    file.seek(at + start)
    data = file.read(length + 1)
    if data[-1:] != b"}":
        return 0, None
    try:
        state = cast(Any, tnetstring.parse(ord("}"), memoryview(data)[:-1]))
        format_ = state.get("version")
        if isinstance(format_, int) and format_ > version.FLOW_FORMAT_VERSION:
            raise _Newer(end, format_)
        return end, flow.Flow.from_state(compat.migrate_flow(state))
    except _Newer:
        raise
    except Exception:  # mitmproxy raises whatever its fields' converters do
        # Its end is believed only where a record follows: the length may be what is damaged.
        file.seek(end)
        return end if end == size or _HEAD.match(file.read(_HEAD_MOST)) else 0, None


def _resume(file: IO[bytes], at: int, size: int) -> int:
    """Where the next record begins, behind a damaged one; the end of the file where there is none.

    What only looks like a beginning, as the damaged one's own does, belongs to the damage.
    """
    while (at := _beginning(file, at + 1, size)) < size:
        try:
            if _record(file, at, size)[0]:
                break
        except _Newer:
            break
    return at


def _beginning(file: IO[bytes], at: int, size: int) -> int:
    """Where, from there on, something looks like the beginning of a record."""
    overlap = 32
    while at < size:
        file.seek(at)
        if found := _NEXT.search(file.read(_STEP + overlap)):
            return at + found.start()
        at += _STEP
    return size


def _har(file: IO[bytes], loss: Loss) -> _Found:
    """The exchanges of a HAR file, as mitmproxy itself reads them.

    Not by its own reader, which gives the rest up at the first entry that it cannot read.
    """
    data = file.read()
    text = data.decode("utf-8-sig", "replace")
    for number, (start, end, entry) in enumerate(_entries(text, loss)):
        try:
            one = har.request_to_flow(cast(Any, entry))
        except Exception:  # whatever is missing in it
            loss.add(start, end - start)
            continue
        one.id = f"har-{number + 1}"  # mitmproxy would give another at each reading
        yield number, len(data) * end // len(text), one


def _entries(text: str, loss: Loss) -> Iterator[tuple[int, int, object]]:
    """The entries with their place, one by one: what a cut took, or a fault in one, is lost alone.

    Where an entry cannot be parsed, it goes on at the next that begins as mitmproxy's do.
    """
    decoder = json.JSONDecoder()
    begun = _ENTRIES.search(text)
    if not begun:
        loss.add(0, len(text))
        return
    at = _between(text, begun.end())
    while text[at : at + 1] != "]":
        try:
            entry, end = decoder.raw_decode(text, at)
            yield at, end, entry
        except ValueError:
            found = _ENTRY.search(text, at + 1)
            end = found.start() if found else len(text)
            loss.add(at, end - at)
            if end == len(text):
                return
        at = _between(text, end)


def _between(text: str, at: int) -> int:
    while text[at : at + 1] in _BETWEEN:
        at += 1
    return at
