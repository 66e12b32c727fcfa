"""Saved flows read back: a flow file, a capture folder, mitmproxy's HAR export.

A path in, HTTP flows out, one at a time. A damaged record is skipped, counted and said; whatever
stands before and after it is used. Never writes.
"""

import io
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from mitmproxy import flow, http, version
from mitmproxy.io import compat, tnetstring

from moontap.capture import har, metadata
from moontap.moments import is_moment

TRAFFIC = "traffic.flow"
"""The name of the flow file in a capture folder."""

_HEAD = re.compile(rb"([1-9][0-9]{0,11}):")
_HEAD_MOST = 13
# A record is a dict, and mitmproxy writes the flow's last field first. Each digit may be where its
# length begins: those before it may be what a cut left of another.
_NEXT = re.compile(rb"(?=[1-9][0-9]{0,11}:9:websocket;)")
_STEP = 1 << 20
_OVERLAP = 32
_START = 4096  # bytes that tell what a file is
_LONG = 120  # characters of a name that are said


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
            start = file.peek(_START)
            read = _har if har.looks_like(start) else _framed
            for at, end, one in read(file, self.loss):
                if isinstance(one, http.HTTPFlow):
                    self.count += 1
                    yield at, _settled(at, one)
                else:  # TCP, UDP or DNS: no traffic of an agent, and no loss
                    others += 1
                self._progress(end)
        if self.loss and not self.count + others:
            raise Unreadable(f"{self.path} {_nothing(self.path.name, start, self.loss)}")


def flow_at(path: Path, offset: int) -> http.HTTPFlow:
    """The flow whose record begins at an offset that `records` gave. Raises Unreadable."""
    return next(flows_at(path, [offset]))


def flows_at(path: Path, offsets: Sequence[int]) -> Iterator[http.HTTPFlow]:
    """The same for several; a HAR file is read but once for them. Raises Unreadable."""
    with _opened(path) as file:
        is_har = har.looks_like(file.peek(_START))
        numbered = {at: one for at, _, one in _har(file, Loss()) if at in offsets} if is_har else {}
        frames = _Frames(file)
        for offset in offsets:
            one = numbered.get(offset) if is_har else frames.record(offset)[1]
            if not isinstance(one, http.HTTPFlow):
                raise Unreadable(f"{path}: has changed since it was read")
            yield _settled(offset, one)


def flows_in(data: bytes, loss: Loss) -> Iterator[http.HTTPFlow]:
    """The HTTP flows of a flow file or HAR that was not read from a path, as from a pipe."""
    is_har = har.looks_like(data[:_START])
    records = har.flows(data, loss.add) if is_har else _framed(io.BytesIO(data), loss)
    for at, _, one in records:
        if isinstance(one, http.HTTPFlow):
            yield _settled(at, one)


def flow_files(paths: Sequence[Path]) -> list[Path]:
    """The flow files that paths stand for.

    A file is itself; a capture folder its `traffic.flow`; any other folder every `*.flow` and
    `*.har` in it and every capture folder below it, in the order of their names. A file that is
    named twice counts once. Raises Unreadable where there is none.
    """
    found: list[Path] = []
    for path in paths:
        if why := absent(path):
            raise Unreadable(why)
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
    return list(filter(Once(), found))


def absent(path: Path) -> str | None:
    """Why nothing can be found at a path: a line; None where there is something."""
    try:
        path.stat()
    except OSError as error:
        name, missing = str(path), isinstance(error, FileNotFoundError | NotADirectoryError)
        if name.lstrip().startswith(("{", "[")):
            why = "looks like JSON, and is no file: `moontap lint -` reads it from standard input"
        else:
            why = "no such file or folder" if missing else os.strerror(error.errno or 0).lower()
        return f"{name if len(name) <= _LONG else name[:_LONG] + '…'}: {why}"
    return None


class Once:
    """Whether a path names a file that none before it named, also by a link. Call it."""

    def __init__(self) -> None:
        self._seen: set[tuple[int, int] | Path] = set()

    def __call__(self, path: Path) -> bool:
        try:
            there = path.stat()
        except OSError:  # who opens it says what is wrong
            one: tuple[int, int] | Path = path
        else:
            one = (there.st_dev, there.st_ino)
        is_new = one not in self._seen
        self._seen.add(one)
        return is_new


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


def _nothing(name: str, start: bytes, loss: Loss) -> str:
    """What is the matter with a file of which no record can be read."""
    if loss.newer:
        return f"was {_too_new(loss.newer)}"
    if name.endswith(".jsonl"):
        return f"holds lines, not flows: give the {TRAFFIC} beside it, or the folder"
    if har.looks_like(start):
        return "holds no readable exchange: a HAR file has its exchanges in log.entries"
    if _HEAD.match(start):
        return f"holds no whole exchange: {loss}"
    return f"is not a flow file: give mitmproxy's format ({TRAFFIC}), a capture folder, or a HAR"


def _settled(at: int, one: http.HTTPFlow) -> http.HTTPFlow:
    """The flow with what mitmproxy takes as it finds it, whatever it is, of the right type."""
    if not isinstance(one.id, str):
        one.id = f"at-{at}"
    one.comment = one.comment if isinstance(one.comment, str) else ""
    one.marked = one.marked if isinstance(one.marked, str) else ""
    one.metadata = metadata.settled(one.metadata)
    metadata.strip(one)  # mitmweb saves what it shows
    # A NaN compares with nothing, so that one such time would mix up the order of all flows, and
    # JSON has no word for it.
    request, response, error = one.request, one.response, one.error
    request.timestamp_start = _time(request.timestamp_start) or 0.0
    request.timestamp_end = _time(request.timestamp_end)
    if response:
        response.timestamp_start = _time(response.timestamp_start) or 0.0
        response.timestamp_end = _time(response.timestamp_end)
    if error:
        error.timestamp = _time(error.timestamp) or 0.0
    return one


def _time(timestamp: float | None) -> float | None:
    return timestamp if timestamp is not None and is_moment(timestamp) else None


type _Found = Iterator[tuple[int, int, flow.Flow]]
"""Records: where each begins (for a HAR file its number), how far the file is read, the flow."""


def _har(file: IO[bytes], loss: Loss) -> _Found:
    yield from har.flows(file.read(), loss.add)


def _framed(file: IO[bytes], loss: Loss) -> _Found:
    frames = _Frames(file)
    at = 0
    while at < frames.size:
        newer = 0
        try:
            end, one = frames.record(at)
        except _Newer as error:
            end, one, newer = error.end, None, error.format
        if one is not None:
            yield at, end, one
        else:
            end = end or frames.resume(at)
            loss.add(at, end - at, newer)
        at = end


class _Newer(Exception):
    """A whole record that this mitmproxy does not know how to read."""

    def __init__(self, end: int, format_: int) -> None:
        super().__init__(end, format_)
        self.end, self.format = end, format_


class _Frames:
    """The records of an open file, by where they begin.

    In vain, it reads at most some five times the file's size: what looks like the beginning of a
    record, within a damaged one, can stand at every 15th byte and name the rest as its length.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.size = file.seek(0, os.SEEK_END)  # which a file in memory can do as well
        self._file = file
        self._in_vain = 0

    def record(self, at: int) -> tuple[int, flow.Flow | None]:
        """The flow whose record begins there, and where that ends.

        No flow: the record is damaged; no end (0): nor can be told where it ends. Raises _Newer.
        """
        file = self._file
        file.seek(at)
        framed = _HEAD.match(file.read(_HEAD_MOST))
        if not framed:
            return 0, None
        start, length = at + framed.end(), int(framed[1])
        end = start + length + 1
        if end > self.size:
            return 0, None
        file.seek(end - 1)
        if file.read(1) != b"}":  # a damaged length: that much is not read for nothing
            return 0, None
        file.seek(start)
        data = file.read(length)
        try:
            state = cast(Any, tnetstring.parse(ord("}"), memoryview(data)))
            format_ = state.get("version")
            if isinstance(format_, int) and format_ > version.FLOW_FORMAT_VERSION:
                raise _Newer(end, format_)
            return end, flow.Flow.from_state(compat.migrate_flow(state))
        except _Newer:
            raise
        except Exception:  # mitmproxy raises whatever its fields' converters do
            # Its end is believed only where a record follows: the length may be what is damaged.
            file.seek(end)
            if end == self.size or _HEAD.match(file.read(_HEAD_MOST)):
                return end, None
            self._in_vain += length
            return 0, None

    def resume(self, at: int) -> int:
        """Where the next record begins, behind a damaged one; the end of the file where none does.

        What only looks like a beginning, as the damaged one's own does, belongs to the damage.
        """
        for place in self._beginnings(at + 1):
            # With the place it grows: a bad stretch does not cost all that is behind it.
            if self._in_vain > 2 * (self.size + place) + _STEP:
                continue
            try:
                if self.record(place)[0]:
                    return place
            except _Newer:
                return place
        return self.size

    def _beginnings(self, at: int) -> Iterator[int]:
        """Where, from there on, something looks like the beginning of a record."""
        while at < self.size:
            self._file.seek(at)
            block = self._file.read(_STEP + _OVERLAP)
            for found in _NEXT.finditer(block):
                if found.start() >= _STEP:
                    break
                yield at + found.start()
            at += _STEP
