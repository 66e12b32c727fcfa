"""Python as forks of a process that has loaded what takes long: real processes of their own,
without the seconds in which each loads mitmproxy or an SDK, hundreds of times.

    with Forks(MOONTAP) as forks:
        done = forks.run(["pairs", "x.flow"], cwd=folder, env={...}, stdin="")

`Forks(PYTHON, …).python` is a program that takes the place of `python` for what a test starts.

The process that is forked is shared by all who name the same socket: the processes in which pytest
runs its tests. It ends with the last of them.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn, Self

TIMEOUT_S = 60
_MOST = 1 << 20
_LONGEST = 100  # of a socket's path, as the kernel takes it


@dataclass(frozen=True)
class Program:
    """main: `module:function`, which returns an exit code; None: it is Python, and is told what to
    run by its arguments. loads: what the process that is forked has loaded."""

    name: str
    main: str | None
    loads: tuple[str, ...]


MOONTAP = Program(
    "moontap",
    "moontap.cli:main",
    (
        *("mitmproxy.addons", "mitmproxy.tools.dump", "rich.progress", "rich.table"),
        *("moontap.addon", "moontap.care.scrub", "moontap.cli", "moontap.replay.server"),
        "moontap.tapping.tap",
    ),
)
# What agents, their tests and a test's taps use. The SDKs take the most by far. Not xdist, which
# hands on sys.path as it was when it was loaded.
PYTHON = Program(
    "python",
    None,
    (
        *MOONTAP.loads,
        *("anthropic", "anthropic.resources.messages", "anthropic.lib.streaming", "httpcore"),
        *("openai", "openai.resources.chat.completions", "openai.lib.streaming.chat"),
        *("pytest", "pytest_asyncio.plugin", "hypothesis"),
        *("moontap.testing", "moontap.testing.session", "moontap.testing.worker"),
    ),
)
_GO_ON: list[subprocess.Popen[bytes]] = []
"""Those that others may use still; they end by themselves."""
_PROGRAMS = {program.name: program for program in (MOONTAP, PYTHON)}


class Forks:
    """Starts the process that is forked at the first command; done with it when left.

    shared: where its socket is; None: it is nobody else's.
    """

    def __init__(self, program: Program, shared: Path | None = None) -> None:
        self._program = program
        self._shared = shared if shared and len(str(shared)) < _LONGEST else None
        self._ours: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._ours:
            self._ours.close()
        if self._process and self._shared:
            _GO_ON.append(self._process)
        elif self._process:
            self._process.wait(10)

    @property
    def python(self) -> str:
        """A program to start in place of `sys.executable`, with the same arguments."""
        if self._shared is None or self._program.main is not None:
            return sys.executable
        self._ours = self._ours or self._connected()
        return str(_shim(self._shared))

    def run(
        self,
        arguments: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        stdin: str = "",
        seconds: float = TIMEOUT_S,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end. Raises TimeoutError after that time; the command is killed."""
        ours = self._ours = self._ours or self._connected()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            reading, writing = os.pipe()
            try:
                ours.settimeout(TIMEOUT_S)
                fds = [reading, out.fileno(), err.fileno()]
                asked = {"arguments": list(arguments), "cwd": str(cwd), "env": dict(env)}
                socket.send_fds(ours, [json.dumps(asked).encode()], fds)
            finally:
                os.close(reading)
            with os.fdopen(writing, "wb") as file:
                try:
                    file.write(stdin.encode())
                    file.flush()
                except BrokenPipeError:
                    pass  # it did not want to know
            pid = int(ours.recv(_MOST))
            ours.settimeout(seconds)
            try:
                code = int(ours.recv(_MOST))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                ours.settimeout(TIMEOUT_S)
                ours.recv(_MOST)
                raise
            texts = []
            for said in (out, err):
                said.seek(0)
                texts.append(said.read().decode())
        return subprocess.CompletedProcess([self._program.name, *arguments], code, *texts)

    def _connected(self) -> socket.socket:
        if self._shared is None:
            return self._started(Path(tempfile.mkdtemp()) / "socket")
        with self._shared.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with contextlib.suppress(OSError):
                return _connected(self._shared)
            return self._started(self._shared)

    def _started(self, path: Path) -> socket.socket:
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(str(path))
            listener.listen(64)
            # Before it listens: with nobody there it would end at once.
            ours = _connected(path)
            # A session of its own: what a test sends to its own group must not reach it.
            self._process = subprocess.Popen(
                [sys.executable, __file__, self._program.name, str(listener.fileno())],
                pass_fds=[listener.fileno()],
                env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "addon")},
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        return ours


def _connected(path: Path) -> socket.socket:
    ours = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        ours.connect(str(path))
    except OSError:
        ours.close()
        raise
    return ours


# The program in place of Python

_SHIM = """\
#!{python} -IS
import os, signal, sys
try:
    import json, socket
    ours = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.connect({path!r})
    asked = {{"arguments": sys.argv[1:], "cwd": os.getcwd(), "env": dict(os.environ)}}
    socket.send_fds(ours, [json.dumps(asked).encode()], [0, 1, 2])
except OSError:
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
pid = int(ours.recv(99))
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, lambda number, _: os.kill(pid, number))
code = int(ours.recv(99))
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
"""


def _shim(path: Path) -> Path:
    """What it starts ends with it: who kills it, and the group that it leads, has killed both."""
    shim = path.with_name("python")
    if not shim.exists():
        made = path.with_name(f"python.{os.getpid()}")
        made.write_text(_SHIM.format(python=sys.executable, path=str(path)))
        made.chmod(0o755)
        made.rename(shim)
    return shim


# In the process that is forked


def _serve(listener: socket.socket, program: Program) -> None:
    """A fork for each who connects; it ends when the last has gone."""
    for name in program.loads:
        importlib.import_module(name)
    gc.freeze()  # else each fork copies all of it at its first collection
    path = listener.getsockname()
    clients: set[int] = set()
    while True:
        with contextlib.suppress(BlockingIOError):
            while True:
                ours, _ = listener.accept()
                pid = os.fork()
                if pid == 0:
                    listener.close()
                    _attend(ours, program, path)
                    os._exit(0)
                ours.close()
                clients.add(pid)
                listener.setblocking(False)
        clients -= {pid for pid in clients if os.waitpid(pid, os.WNOHANG)[0]}
        if not clients:
            if not path:
                return
            # From now on nobody connects; who already has is served.
            os.unlink(path)
            path = ""
        select.select([listener] if path else [], [], [], 0.05)


def _attend(ours: socket.socket, program: Program, path: str) -> None:
    """Fork once for each command; told over the socket. It ends, and the command with it, when the
    one who asked has gone."""
    ours.setblocking(True)
    while True:
        asked, fds, _, _ = socket.recv_fds(ours, _MOST, 3)
        if not asked:
            return
        pid = os.fork()
        if pid == 0:
            ours.close()
            _be(program, json.loads(asked), fds, path)
        for fd in fds:
            os.close(fd)
        ended = os.pidfd_open(pid)
        try:
            ours.send(str(pid).encode())
            watched: list[Any] = [ended, ours]
            ready, _, _ = select.select(watched, [], [])
            if ended not in ready:
                os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            ours.send(str(os.waitstatus_to_exitcode(status)).encode())
        except OSError:
            os.kill(pid, signal.SIGKILL)
            return
        finally:
            os.close(ended)


def _be(program: Program, asked: dict[str, Any], fds: Sequence[int], path: str) -> NoReturn:
    """The command itself."""
    code = 1
    try:
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
            os.close(fd)
        os.chdir(asked["cwd"])
        os.environ.clear()
        os.environ.update(asked["env"])
        for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
            stream = open(number, mode, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
        if program.main is None:
            sys.executable = str(_shim(Path(path)))
            _python(asked["arguments"])
            code = 0
        else:
            sys.argv = [program.name, *asked["arguments"]]
            module, _, function = program.main.partition(":")
            code = int(getattr(importlib.import_module(module), function)())
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        try:
            if program.main is None:
                threading._shutdown()  # type: ignore[attr-defined]
                atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def _python(arguments: list[str]) -> None:
    """`python [-u] -c CODE`, `-m MODULE` or FILE, with their arguments."""
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [*paths, *(path for path in sys.path[1:] if path not in paths)]
    if arguments[0] == "-u":
        sys.stdout.reconfigure(write_through=True)  # type: ignore[union-attr]
        del arguments[0]
    how, *sys.argv = arguments
    if how == "-m":
        sys.path.insert(0, os.getcwd())
        sys.modules.pop(sys.argv[0], None)  # else there is a warning that it is loaded
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    elif how == "-c":
        sys.path.insert(0, "")
        code, sys.argv[0] = sys.argv[0], "-c"
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(code, "<string>", "exec"), main.__dict__)
    elif how.startswith("-"):
        raise SystemExit(f"the forked python knows no {how}")
    else:
        sys.path.insert(0, str(Path(how).parent))
        sys.argv.insert(0, how)
        runpy.run_path(how, run_name="__main__")


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[2])), _PROGRAMS[sys.argv[1]])
