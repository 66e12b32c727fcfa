"""`moontap` commands as forks of a process that has loaded it: real processes of their own, without
the second that starting Python and loading mitmproxy takes, two hundred times.

    with Forks() as forks:
        done = forks.run(["pairs", "x.flow"], cwd=folder, env={...}, stdin="")
"""

from __future__ import annotations

import array
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, Self

TIMEOUT_S = 60
_MOST = 1 << 20


class Forks:
    """Starts the process that is forked at the first command; ends it when left."""

    def __init__(self) -> None:
        self._ours: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._ours and self._process:
            self._ours.close()
            self._process.wait(10)

    def run(
        self, arguments: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end. Raises TimeoutError after a minute, with the command killed."""
        ours = self._ours or self._start(env)
        asked = {"arguments": list(arguments), "cwd": str(cwd), "env": dict(env)}
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            reading, writing = os.pipe()
            try:
                fds = array.array("i", [reading, out.fileno(), err.fileno()])
                rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)]
                ours.sendmsg([json.dumps(asked).encode()], rights)
            finally:
                os.close(reading)
            with os.fdopen(writing, "wb") as file:
                try:
                    file.write(stdin.encode())
                    file.flush()
                except BrokenPipeError:
                    pass  # it did not want to know
            pid = int(ours.recv(_MOST))
            ours.settimeout(TIMEOUT_S)
            try:
                code = int(ours.recv(_MOST))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                ours.recv(_MOST)
                raise
            texts = []
            for said in (out, err):
                said.seek(0)
                texts.append(said.read().decode())
        return subprocess.CompletedProcess(["moontap", *arguments], code, *texts)

    def _start(self, env: Mapping[str, str]) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # A session of its own: what a test sends to its own group must not reach it.
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=dict(env),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self._ours = ours
        return ours


def _serve(ours: socket.socket) -> None:
    """Fork once for each command; told over the socket, which closes at the end."""
    import mitmproxy.addons
    import mitmproxy.tools.dump
    import rich.progress
    import rich.table

    import moontap.addon
    import moontap.care.scrub
    import moontap.cli
    import moontap.replay.server
    import moontap.tapping.tap

    del mitmproxy, rich, moontap
    while True:
        asked, fds, _, _ = socket.recv_fds(ours, _MOST, 3)
        if not asked:
            return
        pid = os.fork()
        if pid == 0:
            ours.close()
            _be(json.loads(asked), fds)
        for fd in fds:
            os.close(fd)
        ours.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        ours.send(str(os.waitstatus_to_exitcode(status)).encode())


def _be(asked: dict[str, Any], fds: Sequence[int]) -> NoReturn:
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
        sys.argv = ["moontap", *asked["arguments"]]
        from moontap.cli import main

        code = main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
