"""What a command says, where the person is who typed it.

Lines in. The console shows a command's result over its list; mitmweb shows it in one line of JSON,
so that there the lines go to the event log, and the result says the gist and where the rest is. A
file in the run's folder has all of it, and where it has not, the result says so. Masked; never
wider than the window, save for ids.
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
from moontap.report.text import plain, short

logger = logging.getLogger(__name__)

_LOG_COLUMNS = 132  # of mitmweb's event log, at 1,280 pixels, without its times
_MOST_SHOWN = 500  # rows of an overlay; each is a widget
_MOST_LOGGED = 200  # lines that mitmweb gets one by one, where a file has the rest
_MOST_LOGGED_ALONE = 2000  # and where none has
_LONGEST = 700  # characters of a gist
_TRIES = 100


class NoFile(Exception):
    """What was to be in a file is not; one line that says why."""


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
        more: Sequence[str] = (),
        whole: bytes | None = None,
        suffix: str = ".txt",
        path: Path | None = None,
        where: str = "file: {path}",
    ) -> list[str]:
        """The command's result. about: the command's last word, for the log and the file's name.

        lines: to be shown. more: those that only the file has, behind them. whole: what the file
        holds, where that is not the lines. path: of a file that is there already. where: how the
        file is named in the result: `{path}`, or `{word}`, as a shell takes it.

        Raises NoFile where `whole` could not be written. Where lines could not, the result says so.
        """
        mask = self._recorder().mask
        lines, more = ([mask(plain(line)) for line in some] for some in (lines, more))
        gist = short(mask(plain(gist)), _LONGEST)
        if whole is None:
            content = "".join(f"{one}\n" for one in (gist, *lines, *more)).encode(errors="replace")
        else:
            content = whole
        said = [gist]
        if path is None and (lines or whole):
            try:
                path = self.keep(about, content, suffix)
            except NoFile as error:
                if whole is not None:
                    raise
                said.append(f"NOT in a file: {mask(plain(str(error)))}")
        if path:
            # A browser is in no folder: the path is whole.
            named = where.format(path=_shown(path), word=_shown(path, shlex.quote))
            said.append(mask(plain(named)))
        if _shows_results():
            head = [*wrapped(gist, self.columns), *said[1:]]
            return [*head, *_cut(lines, _MOST_SHOWN, path)]
        logger.info("moontap.%s: %s", about, "; ".join(said))
        for line in _cut(lines, _MOST_LOGGED if path else _MOST_LOGGED_ALONE, path):
            logger.info("%s", line)
        if lines and not path:
            said.append("see the event log")
        return ["; ".join(said)]

    def keep(self, about: str, content: bytes, suffix: str) -> Path | None:
        """A new file of mode 0600 in the run's folder; None where nothing is kept on disk. Raises
        NoFile."""
        try:
            path = self.name(about, suffix)
            if path:
                write(path, [content], force=False)
            return path
        except Refused as error:
            raise NoFile(str(error)) from None
        except OSError as error:
            raise NoFile(f"{error.filename or about}: {error.strerror or error}") from None

    @property
    def keeps(self) -> bool:
        """Whether there is to be a folder for files."""
        try:
            return self._recorder().place() is not None
        except OSError:
            return True

    def name(self, about: str, suffix: str) -> Path | None:
        """A path in the run's folder that is free; None where nothing is kept on disk. Raises
        OSError."""
        folder = self._recorder().place()
        if folder is None:
            return None
        folder = folder.absolute()
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        for number in range(1, _TRIES):
            more = f"-{number}" if number > 1 else ""
            path = folder / f"{about}-{stamp}{more}{suffix}"
            if not path.exists():
                return path
        raise OSError(f"there are {_TRIES} files of this second")


def _shown(path: Path, quoted: Callable[[str], str] = str) -> str:
    """Wherever one stands, and as short as can be."""
    with suppress(RuntimeError, ValueError):  # there is no home; it is not there
        return f"~/{quoted(str(path.relative_to(Path.home())))}"
    return quoted(str(path))


def _shows_results() -> bool:
    """Whether the program shows a command's result line by line, as the console does."""
    return hasattr(ctx.master, "overlay") and hasattr(ctx.master, "ui")


def _cut(lines: Sequence[str], most: int, path: Path | None) -> list[str]:
    if len(lines) <= most:
        return list(lines)
    left = len(lines) - most
    where = f"in {plain(_shown(path))}" if path else "not shown; give fewer flows"
    return [*lines[:most], f"… {left:,} more lines, {where}"]
