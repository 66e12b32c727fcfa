"""Saved flows for a command: files, capture folders and HAR exports opened one after the other.

Paths in, flows out; a bar on stderr where it takes long, and a line there for whatever could not
be read: who passes over something must not say that all is well. It never writes to the files.
"""

import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from moontap.commands import UsageError
from moontap.commands.options import shown
from moontap.commands.terminal import put
from moontap.report.text import plain

if TYPE_CHECKING:
    from mitmproxy import http
    from rich.progress import Progress, TaskID

    from moontap.capture.reader import Loss

PATIENCE_S = 0.5
"""Seconds that reading may take before a bar is shown."""

_MOST_SAID = 3


class Saved:
    """The flow files that paths stand for. Iterate it for their HTTP flows, or `each` file by file.

    command: its name, for messages. bar: False where a bar would get into what is printed. empty:
    whether a file of no bytes will do; one who says what went wrong cannot say it of that.
    Where there are several files, one that cannot be read is said and passed over. Raises
    UsageError where a path holds nothing, or no file at all can be read.
    """

    def __init__(
        self,
        command: str,
        paths: Sequence[str | Path],
        *,
        bar: bool = True,
        empty: bool = True,
        patience: float = PATIENCE_S,
    ) -> None:
        from moontap.capture.reader import Unreadable, flow_files

        try:
            self.files = flow_files([Path(path) for path in paths])
        except Unreadable as error:
            raise UsageError(str(error)) from None
        self.count = 0
        """HTTP flows read so far, in all files."""
        self.said: list[str] = []
        """What could not be read, a line each."""
        self._command = command
        self._bar = bar
        self._empty = empty
        self._patience = patience

    def __iter__(self) -> "Iterator[http.HTTPFlow]":
        for _, flows in self.each():
            yield from flows

    def each(self) -> "Iterator[tuple[Path, Iterator[http.HTTPFlow]]]":
        """The files with their flows; a file's are to be used up before the next is asked for."""
        for path, records in self.records():
            yield path, (flow for _, flow in records)

    def records(self) -> "Iterator[tuple[Path, Generator[tuple[int, http.HTTPFlow]]]]":
        """The same with each flow's offset, for `reader.flows_at`."""
        total = sum(_size(path) for path in self.files)
        with bar(total, self._patience if self._bar else None) as tell:
            before = 0
            for path in self.files:
                yield path, self._records(path, before, tell)
                before += _size(path)
        if len(self.said) == len(self.files) and not self.count:
            more = f" (and {len(self.said) - 1} more like it)" if len(self.said) > 1 else ""
            raise UsageError(self.said[0] + more)

    def unread(self, path: Path, why: Sequence[str]) -> None:
        """Note exchanges of a file that could not be made sense of, a line each, for `close`."""
        self.said += (f"{shown(path)}: not read: {line}" for line in why[:_MOST_SAID])
        if (more := len(why) - _MOST_SAID) > 0:
            self.said.append(f"{shown(path)}: and {more} more that were not read")

    def close(self) -> int:
        """Say on stderr what could not be read; the exit code: 2 where there was any, else 0."""
        for line in self.said:
            put(f"moontap {self._command}: {plain(line)}\n", sys.stderr)
        return 2 if self.said else 0

    def _records(
        self, path: Path, before: int, tell: Callable[[int], None]
    ) -> "Generator[tuple[int, http.HTTPFlow]]":
        from moontap.capture.reader import FlowFile, Unreadable

        file = FlowFile(path, lambda at: tell(before + at))
        try:
            for record in file.records():
                self.count += 1
                yield record
        except Unreadable as error:
            self.said.append(str(error))
            return
        except GeneratorExit:  # ended in the middle, by a person: what was lost by then is said
            if file.loss:
                self.said.append(lost(path, file.loss, file.count))
            raise
        if file.loss:
            self.said.append(lost(path, file.loss, file.count))
        elif not (self._empty or _size(path)):
            self.said.append(f"{shown(path)}: is empty")


def lost(path: Path, loss: "Loss", count: int) -> str:
    """A line that says what of a file could not be used. count: the flows that could."""
    return f"{shown(path)}: left out {loss}; {count} readable exchanges were used"


@contextmanager
def bar(
    total: int,
    patience: float | None = PATIENCE_S,
    stream: TextIO | None = None,
    what: str = "reading",
) -> Iterator[Callable[[int], None]]:
    """A progress bar that comes only where it takes long and a person looks on.

    Give what it hands out the bytes done so far. total: bytes. patience: seconds before it is
    shown; None: never. stream: default: stderr; nothing is shown where it is no terminal.
    """
    out = stream or sys.stderr
    if patience is None or not out.isatty():
        yield lambda done: None
        return
    begun = _Bar(total, time.monotonic() + patience, out, what)
    try:
        yield begun.tell
    finally:
        begun.stop()


class _Bar:
    def __init__(self, total: int, due: float, out: TextIO, what: str) -> None:
        self._total, self._due, self._out, self._what = total, due, out, what
        self._shown: tuple[Progress, TaskID] | None = None

    def tell(self, done: int) -> None:
        if self._shown is None:
            if time.monotonic() < self._due:
                return
            self._shown = self._show()
        progress, task = self._shown
        progress.update(task, completed=done)

    def stop(self) -> None:
        if self._shown:
            self._shown[0].stop()

    def _show(self) -> "tuple[Progress, TaskID]":
        from rich import progress
        from rich.console import Console

        # stdout may be a file or a pipe: what goes there is not the bar's.
        made = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.DownloadColumn(binary_units=True),
            progress.TimeRemainingColumn(),
            console=Console(file=self._out),
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        made.start()
        return made, made.add_task(self._what, total=self._total)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # the reader says so
        return 0
