"""What a command says, where the person is who typed it.

Lines in. The console shows a command's result over its list; mitmweb shows it in one line of JSON,
so that there the lines go to the event log, and the result says the gist and where the rest is. A
file in the run's folder has all of it. Masked; never wider than the window, save for ids.
"""

import logging
import math
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mitmproxy import ctx

from moontap.capture.recorder import Recorder
from moontap.care.outfile import Refused, write
from moontap.looking.views.page import wrapped
from moontap.report.text import plain

logger = logging.getLogger(__name__)

_LOG_COLUMNS = 132  # of mitmweb's event log, at 1,280 pixels, without its times
_MOST_SHOWN = 500  # rows of an overlay; each is a widget
_MOST_LOGGED = 200  # lines that mitmweb gets one by one, where a file has the rest
_MOST_LOGGED_ALONE = 2000  # and where none has
_TRIES = 100


class Output:
    """recorder: of the run, as it is when asked."""

    def __init__(self, recorder: Callable[[], Recorder]) -> None:
        self._recorder = recorder

    @property
    def columns(self) -> int:
        """How wide what is given may be."""
        console: Any = ctx.master
        if not _shows_results():
            return _LOG_COLUMNS
        window = int(console.ui.get_cols_rows()[0])
        return max(40, math.ceil(window * 0.8) - 2)  # what `DataViewerOverlay` takes, its frame off

    def give(
        self,
        about: str,
        gist: str,
        lines: Sequence[str],
        *,
        whole: bytes | None = None,
        suffix: str = ".txt",
        path: Path | None = None,
        where: str = "file: {path}",
    ) -> list[str]:
        """The command's result. about: the command's last word, for the log and the file's name.

        lines: to be shown. whole: what the file holds, where that is not the lines. path: of a
        file that is there already. where: how the file is named in the result: `{path}`, or
        `{word}`, as a shell takes it.
        """
        mask = self._recorder().mask
        lines = [mask(plain(line)) for line in lines]
        gist = mask(plain(gist))
        content = whole if whole is not None else "".join(f"{one}\n" for one in [gist, *lines])
        if path is None and (lines or whole):
            path = self.keep(about, content, suffix)
        named = where.format(path=path, word=shlex.quote(str(path))) if path else ""
        if _shows_results():
            head = [*wrapped(gist, self.columns), *([named] if path else [])]
            return [*head, *_cut(lines, _MOST_SHOWN, path)]
        logger.info("moontap.%s: %s", about, "; ".join(filter(None, (gist, named))))
        for line in _cut(lines, _MOST_LOGGED if path else _MOST_LOGGED_ALONE, path):
            logger.info("%s", line)
        if path:
            return [f"{gist}; {named}"]
        return [f"{gist}; see the event log" if lines else gist]

    def keep(self, about: str, content: str | bytes, suffix: str) -> Path | None:
        """A new file of mode 0600 in the run's folder; None where nothing is kept on disk, or where
        it cannot be, which is said."""
        content = content.encode("utf-8", "replace") if isinstance(content, str) else content
        try:
            path = self.name(about, suffix)
            if path:
                write(path, [content], force=False)
            return path
        except (OSError, Refused) as error:
            logger.warning("moontap: the result is not in a file: %s", error)
            return None

    @property
    def keeps(self) -> bool:
        """Whether there is a folder for files."""
        try:
            return self._recorder().place() is not None
        except OSError:
            return False

    def name(self, about: str, suffix: str) -> Path | None:
        """A path in the run's folder that is free; None where nothing is kept on disk. Raises
        OSError."""
        folder = self._recorder().place()
        if folder is None:
            return None
        folder = folder.absolute()
        with suppress(ValueError):  # as a person would type it
            folder = folder.relative_to(Path.cwd())
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        for number in range(1, _TRIES):
            more = f"-{number}" if number > 1 else ""
            path = folder / f"{about}-{stamp}{more}{suffix}"
            if not path.exists():
                return path
        raise OSError(f"there are {_TRIES} files of this second")


def _shows_results() -> bool:
    """Whether the program shows a command's result line by line, as the console does."""
    return hasattr(ctx.master, "overlay") and hasattr(ctx.master, "ui")


def _cut(lines: Sequence[str], most: int, path: Path | None) -> list[str]:
    if len(lines) <= most:
        return list(lines)
    left = len(lines) - most
    where = f"in {path}" if path else "not shown; give fewer flows"
    return [*lines[:most], f"… {left:,} more lines, {where}"]
