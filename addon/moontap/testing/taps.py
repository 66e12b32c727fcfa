"""Taps for tests, each in a child process that is kept for the next test.

Settings in; a tap that listens, and where its capture is, out. The first one takes a second, a
later one a fraction of that. Nothing of mitmproxy is imported here.
"""

import json
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import moontap

_SECONDS = 60
"""The longest that a child may take for an answer."""

# Found at the end of sys.path, where it shadows nothing; an installed package is found anyway.
_CHILD = "import sys; sys.path.append({!r}); from moontap.testing.worker import main; main()"


class TapError(Exception):
    """A tap does not start or has died; the text is for a person."""


@dataclass(frozen=True, slots=True)
class State:
    """folder: of the capture; None before the first exchange. troubles: warnings, masked."""

    folder: Path | None
    troubles: tuple[str, ...]


class Running:
    """A tap that listens at `url`."""

    def __init__(self, pool: "Taps", child: "_Child", url: str) -> None:
        self._pool, self._child = pool, child
        self._end: State | None = None
        self.url = url

    def settle(self) -> State:
        """Wait until what has ended is recorded. After `close`: as it was then."""
        return self._end or _state(self._child.ask("settle"))

    def close(self) -> State:
        """End the run: calls that still wait are logged as unanswered."""
        if self._end is None:
            self._end = _state(self._child.ask("close"))
            self._pool.give_back(self._child)
        return self._end


class Taps:
    """The taps of one pytest process."""

    def __init__(self) -> None:
        self._idle: list[_Child] = []
        self._all: list[_Child] = []

    def start(self, upstream: str, directory: Path, **settings: Any) -> Running:
        """Start one. settings: further ones of `commands.tap.Settings`. Raises TapError."""
        if not self._idle:
            self._idle.append(_Child())
            self._all.append(self._idle[-1])
        child = self._idle.pop()
        answer = child.ask(
            json.dumps({"upstream": upstream, "directory": str(directory), **settings})
        )
        if "error" in answer:
            self.give_back(child)
            raise TapError(str(answer["error"]))
        return Running(self, child, str(answer["url"]))

    def give_back(self, child: "_Child") -> None:
        """The child has no tap now and can have the next."""
        self._idle.append(child)

    def close(self) -> None:
        """End the children."""
        for child in self._all:
            child.close()
        self._idle, self._all = [], []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Child:
    """A process with `worker.main` in it, asked one thing at a time."""

    def __init__(self) -> None:
        # An authority of its own: several that make the one in ~/.mitmproxy at the same time, as
        # pytest-xdist's workers would, break it.
        self._folder = tempfile.TemporaryDirectory(prefix="moontap-")
        self._errors = Path(self._folder.name) / "stderr"
        root = str(Path(moontap.__file__).parents[1])
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _CHILD.format(root), str(Path(self._folder.name, "conf"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                encoding="utf-8",
                # Ctrl-C is for pytest, which then ends this as after any run.
                start_new_session=True,
            )

    def ask(self, line: str) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        timer = threading.Timer(_SECONDS, self._process.kill)
        timer.start()
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except OSError:
            answer = ""
        finally:
            timer.cancel()
        if not answer:
            self._process.kill()
            self._process.wait()
            said = self._errors.read_text("utf-8", "replace").strip().splitlines()[-1:]
            raise TapError("; ".join(["the tap's process has ended", *said]))
        value: dict[str, Any] = json.loads(answer)
        return value

    def close(self) -> None:
        """End it: it goes when its stdin does."""
        assert self._process.stdin
        assert self._process.stdout
        try:
            self._process.stdin.close()
            self._process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._folder.cleanup()


def _state(answer: dict[str, Any]) -> State:
    if "error" in answer:
        raise TapError(str(answer["error"]))
    folder = answer["folder"]
    return State(Path(folder) if folder else None, tuple(answer["troubles"]))
