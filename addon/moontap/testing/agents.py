"""Agents that are programs of their own, run for a test: a bounded time, on made-up keys, offline.

A command and a server in; its exit code and output out. Nothing that it started is left running.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from moontap.testing.served import Served

_KEYS = ("ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "MOONSHOT_API_KEY", "KIMI_API_KEY")
_PYTHON = re.compile(r"python(3(\.\d+)?)?")
_NOWHERE = "http://127.0.0.1:9"
_LOOPBACK = "127.0.0.1,localhost"


@dataclass(frozen=True, slots=True)
class Ran:
    """How an agent ended. code: None where its time was up. output: stdout and stderr."""

    code: int | None
    output: str


def run_agent(
    command: Sequence[str],
    served: Served,
    *,
    timeout: float = 60,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
) -> Ran:
    """Run a command whose requests go to `served` (a replay, or a tap before one).

    timeout: seconds, after which it is ended; that is no error, an agent that loops does so. env:
    further variables. What it printed is printed, for pytest to show where the test fails.
    Raises OSError, which names the command, where it cannot be started.
    """
    program = _program(command[0], env)
    # A file, not a pipe: what the agent left behind may hold a pipe open for good.
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(
            [program, *command[1:]],
            env=environment(os.environ, served) | dict(env or {}),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        code: int | None = None
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            pass
        finally:
            _end(process)
        out.seek(0)
        output = out.read().decode("utf-8", "replace")
    print(output)
    print(f"({command[0]}: " + ("its time was up)" if code is None else f"exit code {code})"))
    return Ran(code, output)


def _program(name: str, env: Mapping[str, str] | None) -> str:
    """Where a command is; for a `python` that is not on PATH, the one that runs the tests."""
    found = shutil.which(name, path=(env or {}).get("PATH"))
    if found is None and _PYTHON.fullmatch(name):
        return sys.executable
    if found is None and not os.path.dirname(name):
        raise FileNotFoundError(f"{name}: command not found; the agent must be on PATH")
    return name


def environment(given: Mapping[str, str], served: Served) -> dict[str, str]:
    """The given environment, sent to `served`.

    Unless it records, keys are made up, and a client that does not heed the base URLs meets a proxy
    that is not there: a replayed session must never reach the real API.
    """
    made = {**given, **served.environment}
    if served.recording:
        return made
    for name in (*_KEYS, "ANTHROPIC_API_KEY"):
        if name in _KEYS or given.get(name):
            made[name] = str(served.api_key)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        made[name] = made[name.lower()] = _NOWHERE
    made["NO_PROXY"] = made["no_proxy"] = _LOOPBACK
    return made


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the command and what it started."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
