"""A command run as if nothing stood between it and the terminal.

A command line and an environment in, an exit code as a shell would give it out. The child has our
terminal and process group; what a terminal sends reaches it directly, what is sent to us is passed
on. It never touches the terminal.
"""

import asyncio
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Self

NOT_EXECUTABLE, NOT_FOUND = 126, 127  # POSIX, Shell Command Language, 2.8.2

# Ctrl-C and Ctrl-\ go to the whole process group: the child decides what they mean.
_LEFT_TO_CHILD = ("SIGINT", "SIGQUIT")
_PASSED_ON = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")


class CannotStart(Exception):
    """The command does not start. code: the exit code that says so."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def check(command: str, environment: Mapping[str, str]) -> None:
    """Raise CannotStart where a command is plainly not there, before anything is set up for it."""
    path = environment.get("PATH", os.defpath)
    if shutil.which(command, path=path):
        return
    if shutil.which(command, mode=os.F_OK, path=path) or os.path.isdir(command):
        raise CannotStart(f"{command}: not executable", NOT_EXECUTABLE)
    raise CannotStart(f"{command}: command not found", NOT_FOUND)


class Signals:
    """What becomes of signals while a command runs, and until all is put away after it.

    A context manager, inside a running loop. Handlers, not SIG_IGN: what is ignored stays ignored
    in the child, and Ctrl-C would be dead there. What we were told to ignore (nohup) is left so,
    for the child's sake as well.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._before: dict[signal.Signals, Any] = {}
        self._process: asyncio.subprocess.Process | None = None
        self.early: signal.Signals | None = None
        """The signal that came before there was a command to take it."""

    def __enter__(self) -> Self:
        for name in (*_LEFT_TO_CHILD, *_PASSED_ON):
            number = getattr(signal, name, None)
            before = signal.getsignal(number) if number else None
            if number is None or before is signal.SIG_IGN:
                continue
            with suppress(NotImplementedError):  # Windows: the child gets what the console sends
                self._loop.add_signal_handler(number, self._take, number, name in _PASSED_ON)
                self._before[number] = before
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            self._loop.remove_signal_handler(number)
            signal.signal(number, before or signal.SIG_DFL)

    def belong_to(self, process: asyncio.subprocess.Process) -> None:
        """From now on the command takes them, and those that came while it was starting."""
        self._process = process
        if self.early:
            process.send_signal(self.early)

    def _take(self, number: signal.Signals, pass_on: bool) -> None:
        if self._process is None:
            self.early = number
        elif pass_on:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)


async def run(command: Sequence[str], environment: Mapping[str, str], signals: Signals) -> int:
    """Run a command to its end; its exit code, 128 + N where signal N ended it.

    Raises CannotStart.
    """
    if signals.early:
        return 128 + signals.early
    try:
        process = await asyncio.create_subprocess_exec(*command, env=dict(environment))
    except FileNotFoundError as error:
        raise CannotStart(f"{command[0]}: {error.strerror}", NOT_FOUND) from None
    except OSError as error:
        raise CannotStart(f"{command[0]}: {error.strerror}", NOT_EXECUTABLE) from None
    signals.belong_to(process)
    code = await process.wait()
    return 128 - code if code < 0 else code
