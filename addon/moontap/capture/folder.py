"""One run's folder on disk: made at the first write, never shared with another run.

Bytes and lines in, files out: `run.json`, `traffic.flow`, `pairs.jsonl`. It never raises: a write
that fails is counted, said once, and the traffic goes on.
"""

import json
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Any

from mitmproxy import http
from mitmproxy.io import tnetstring

logger = logging.getLogger(__name__)


class CaptureFolder:
    """Where a run keeps its traffic. Folder mode 0700, files 0600.

    root: the folder that holds every run's folder. describe: what `run.json` says, asked for once.
    After a failed write `lost` counts what did not reach the disk. A record is written whole or,
    as far as the disk allows, taken back, so that what comes later stays readable.
    """

    def __init__(self, root: Path, describe: Callable[[], Mapping[str, Any]]) -> None:
        self._root = root
        self._describe = describe
        self._files: dict[str, IO[bytes]] = {}
        self._described = False
        self._making = threading.Lock()
        self.path: Path | None = None
        self.lost = 0

    def place(self) -> Path:
        """The run's folder, made where there is none yet; on any thread. Raises OSError."""
        with self._making:
            if self.path is None or not self.path.is_dir():
                self.path, self._described = self._make(), False
            return self.path

    def write_flow(self, flow: http.HTTPFlow) -> bool:
        """Append a flow to `traffic.flow`; whether it is there."""
        return self._append("traffic.flow", lambda: tnetstring.dumps(flow.get_state()))

    def write_lines(self, name: str, lines: Iterable[Mapping[str, Any]]) -> None:
        """Append JSON objects to a file of lines."""
        for line in lines:
            self._append(name, partial(json_line, line))

    def close(self) -> None:
        """Close the files."""
        for name, file in self._files.items():
            try:
                file.close()
            except OSError as error:
                self._lose(name, error)
        self._files.clear()

    def _append(self, name: str, encode: Callable[[], bytes]) -> bool:
        try:
            file = self._open(name)
            start = file.tell()
            try:
                _write_all(file, encode())
            except BaseException:
                self._take_back(name, start)
                raise
            return True
        except OSError as error:
            self._lose(name, error)
        except (ValueError, TypeError) as error:
            self.lost += 1
            logger.error("moontap: a record of %s cannot be encoded, and is lost: %s", name, error)
        return False

    def _open(self, name: str) -> IO[bytes]:
        if (file := self._files.get(name)) is not None:
            if os.fstat(file.fileno()).st_nlink:
                return file
            # Somebody has removed it, while the run goes on; where the folder is gone, what follows
            # gets another.
            self.close()
        path = self.place()
        if not (self._described and (path / "run.json").exists()):
            self._write_description(path)
        descriptor = os.open(path / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        # Unbuffered: a record is with the system when `write` returns, whatever kills us then.
        file = self._files[name] = os.fdopen(descriptor, "ab", buffering=0)
        return file

    def _make(self) -> Path:
        if not self._root.exists():
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Made in an agent's working folder: not for its next `git add`, nor for its searches.
            (self._root / ".gitignore").write_text("*\n")
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        path = self._root / f"{stamp}-{os.getpid()}"
        number = 1
        while True:
            try:
                path.mkdir(mode=0o700)
                break
            except FileExistsError:  # a second run of this process within the second
                number += 1
                path = self._root / f"{stamp}-{os.getpid()}-{number}"
        logger.info("moontap: capture in %s", path)
        return path

    def _write_description(self, path: Path) -> None:
        text = json.dumps({"v": 1, **self._describe()}, indent=2)
        descriptor = os.open(path / "run.json", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text + "\n")
        self._described = True

    def _take_back(self, name: str, start: int) -> None:
        """Cut a half-written record off: mitmproxy's reader hides all that follows one."""
        file = self._files.pop(name)
        try:
            os.ftruncate(file.fileno(), start)
            file.close()
        except OSError:
            logger.warning("moontap: %s may end in a broken record", name)

    def _lose(self, name: str, error: Exception) -> None:
        self.lost += 1
        if self.lost == 1:
            where = self.path or self._root
            logger.error(
                "moontap: CANNOT WRITE %s in %s: %s. Traffic goes on and is not kept; what is lost "
                "is counted. Free space or permissions, or set moontap_dir to another folder.",
                name,
                where,
                error,
            )


def _write_all(file: IO[bytes], data: bytes) -> None:
    """Write every byte or raise: near the end of a disk a single write takes but a part."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def json_line(line: Mapping[str, Any]) -> bytes:
    """A JSON object as a line of a file, with its line feed."""
    text = json.dumps(line, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        # A lone surrogate, as where a client cut a text within an emoji: an escape is valid JSON,
        # its bytes would not be UTF-8.
        return json.dumps(line, separators=(",", ":")).encode() + b"\n"
