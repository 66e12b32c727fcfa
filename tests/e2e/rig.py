"""Real processes for the tests of this folder: the stand-in, mitmdump with the addon, clients.

Commands in, running processes out. Every wait is bounded, every process is ended by its own id
(or that of the group it leads), and none finds the settings of the person who runs the tests.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from mitmproxy import http, io

ROOT = Path(__file__).resolve().parents[2]
MAIN = ROOT / "addon" / "main.py"
HERE = Path(__file__).resolve().parent

# Whatever is not on loopback must fail at once instead of leaving this machine.
_LOOPBACK_ONLY = {
    "HTTP_PROXY": "http://127.0.0.1:9",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1,localhost",
}


def wait_until(true: Callable[[], object], seconds: float, every: float = 0.02) -> bool:
    """Whether it became true within the time, asked for every so many seconds."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(every)
    return True


def environment(home: Path) -> dict[str, str]:
    """What a process gets of this one's, with a HOME of its own."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(ROOT / "addon"),
        "PYTHONUNBUFFERED": "1",
    }


class Process:
    """A process that leads a group of its own; what it prints goes to a file.

    env is all the environment it gets beyond PATH and a HOME.
    """

    def __init__(
        self, command: Sequence[str | Path], folder: Path, name: str, env: Mapping[str, str]
    ) -> None:
        home = folder / f"{name}.home"
        home.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.log = folder / f"{name}.log"
        with self.log.open("wb") as out:
            self._process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=home,
                env={**environment(home), **env},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> str:
        """What it printed so far, both streams."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.poll()

    def wait_for(self, pattern: str, seconds: float = 30) -> re.Match[str]:
        """The first match in what it prints. Fails where it ends or is silent."""
        found: list[re.Match[str]] = []

        def printed() -> bool:
            match = re.search(pattern, self.output)
            if match:
                found.append(match)
            elif self.code is not None and not re.search(pattern, self.output):
                raise AssertionError(f"{self.name} ended with {self.code}:\n{self.output}")
            return bool(found)

        assert wait_until(printed, seconds), f"{self.name} never said {pattern}:\n{self.output}"
        return found[0]

    def wait(self, seconds: float) -> int:
        """Its exit code. Fails where it does not end in time."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} runs after {seconds} s:\n{self.output}") from None

    def stop(self) -> int:
        """Ask it to end, as Ctrl-C's polite sister does; its exit code."""
        if self.code is None:
            self._process.send_signal(signal.SIGTERM)
        return self.wait(15)

    def kill(self) -> None:
        """`kill -9` for it and for whatever it started."""
        if self.code is None:
            os.killpg(self.pid, signal.SIGKILL)
            self._process.wait(15)


@contextmanager
def running(
    command: Sequence[str | Path], folder: Path, name: str, env: Mapping[str, str] | None = None
) -> Iterator[Process]:
    """A process that is gone afterwards, whatever happens."""
    process = Process(command, folder, name, {**_LOOPBACK_ONLY, **(env or {})})
    try:
        yield process
    finally:
        process.kill()


# The stand-in


@dataclass(frozen=True)
class Standin:
    """A stand-in. What is only known once it listens is waited for when it is asked for, so that
    several processes start at the same time."""

    process: Process
    script: Mapping[str, Any]
    log: Path

    @property
    def url(self) -> str:
        return self.process.wait_for(r"standin: (https?://\S+)\n")[1]

    @property
    def ca(self) -> Path:
        """What to trust, where it speaks TLS."""
        return Path(self.process.wait_for(r"standin: ca (.+)\n")[1])

    @property
    def received(self) -> list[dict[str, Any]]:
        """Its own record of what it received and answered, as far as lines are whole."""
        if not self.log.exists():
            return []
        whole, _, _ = self.log.read_bytes().rpartition(b"\n")
        return [json.loads(line) for line in whole.splitlines()]


@contextmanager
def standin(
    folder: Path,
    script: Mapping[str, Any],
    *arguments: str,
    name: str = "standin",
) -> Iterator[Standin]:
    """`python -m moontap.standin` with a script. arguments: further options of its command."""
    steps, log = folder / f"{name}.yaml", folder / f"{name}.jsonl"
    steps.write_text(yaml.safe_dump(dict(script)), encoding="utf-8")
    command: list[str | Path] = [sys.executable, "-m", "moontap.standin"]
    command += ["--script", steps, "--log", log]
    if "--tls" in arguments:
        command += ["--tls-dir", folder / f"{name}.tls"]
    with running([*command, *arguments], folder, name) as process:
        yield Standin(process, script, log)


# The tap


def _mitmdump() -> Path:
    return Path(sys.executable).with_name("mitmdump")


def free_ports(count: int) -> list[int]:
    """Ports that are free now; what they are for must bind them soon."""
    with ExitStack() as stack:
        listeners = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener in listeners:
            listener.bind(("127.0.0.1", 0))
        return [listener.getsockname()[1] for listener in listeners]


@dataclass(frozen=True)
class Tap:
    """mitmdump with the addon. urls: one a mode, in their order."""

    process: Process
    urls: tuple[str, ...]
    captures: Path
    conf: Path

    @property
    def url(self) -> str:
        return self.urls[0]


@contextmanager
def tap(
    folder: Path,
    conf: Path,
    modes: Sequence[str],
    *arguments: str | Path,
    name: str = "tap",
    captures: Path | None = None,
    env: Mapping[str, str] | None = None,
    **options: object,
) -> Iterator[Tap]:
    """`mitmdump -s addon/main.py` on free loopback ports.

    modes: as for `--mode`, without the port. arguments: further ones for mitmdump. captures: where
    runs are kept. options: for `--set`.
    """
    captures = captures or folder / f"{name}.captures"
    command: list[str | Path] = [_mitmdump(), *arguments, "-s", MAIN]
    # mitmproxy takes port 0 for one mode only.
    for mode, port in zip(modes, [0, *free_ports(len(modes) - 1)], strict=True):
        command += ["--mode", f"{mode}@127.0.0.1:{port}"]
    for option, value in {"confdir": conf, "moontap_dir": captures, **options}.items():
        command += ["--set", f"{option}={value}"]
    with running(command, folder, name, env) as process:
        says = r" listening at 127\.0\.0\.1:(\d+)\."
        urls = []
        for mode in modes:
            before = f"reverse proxy to {mode.removeprefix('reverse:')}"
            if mode == "regular":
                before = "proxy"
            found = process.wait_for(re.escape(before) + says)
            urls.append(f"http://127.0.0.1:{found[1]}")
        yield Tap(process, tuple(urls), captures, conf)


def replay(folder: Path, conf: Path, flows: Path, name: str = "replay") -> Path:
    """`mitmdump -nr FLOWS -s addon/main.py`, to its end; the folder of what it captured."""
    captures = folder / f"{name}.captures"
    command: list[str | Path] = [_mitmdump(), "-nr", flows, "-s", MAIN]
    for option, value in {"confdir": conf, "moontap_dir": captures}.items():
        command += ["--set", f"{option}={value}"]
    with running(command, folder, name) as process:
        assert process.wait(40) == 0, process.output
    return run_folder(captures)


# What a run left


def run_folder(captures: Path) -> Path:
    """The folder of the one run."""
    (folder,) = captures.glob("*Z-*")
    return folder


def saved_flows(captures: Path) -> list[http.HTTPFlow]:
    """The flows of the one run, read by mitmproxy to the file's end; a broken file fails."""
    with (run_folder(captures) / "traffic.flow").open("rb") as file:
        return [flow for flow in io.FlowReader(file).stream() if isinstance(flow, http.HTTPFlow)]


def saved_pairs(captures: Path) -> list[dict[str, Any]]:
    """The lines of `pairs.jsonl` of the one run."""
    return _lines(run_folder(captures) / "pairs.jsonl")


def saved_findings(captures: Path) -> list[dict[str, Any]]:
    """The lines of `findings.jsonl` of the one run; none where there is no such file."""
    file = run_folder(captures) / "findings.jsonl"
    return _lines(file) if file.exists() else []


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


# Claude Code

REPAIR = b"ensureToolResultPairing"
"""What its debug log calls a repair of a conversation that lost a call or a result."""


@dataclass(frozen=True)
class Claude:
    """A Claude Code under way. debug: its own debug log."""

    process: Process
    debug: Path

    @property
    def repairs(self) -> int:
        """How often it found a call without its result, or one id twice, and mended that."""
        if not self.debug.exists():
            return 0
        return self.debug.read_bytes().count(REPAIR)


def claude_arguments(debug: Path) -> list[str | Path]:
    return ["-p", "do it", "--dangerously-skip-permissions", "--debug-file", debug]


CLAUDE_ENV = {
    "ANTHROPIC_AUTH_TOKEN": "made-up-token-of-the-tests",
    "ANTHROPIC_MODEL": "kimi-k3",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "IS_SANDBOX": "1",  # without it, root may not skip the questions for permission
}


@contextmanager
def claude(program: Path, base_url: str, folder: Path, name: str = "claude") -> Iterator[Claude]:
    """The real Claude Code at a base URL, with one task and no questions."""
    debug = folder / f"{name}.debug"
    env = {**CLAUDE_ENV, "ANTHROPIC_BASE_URL": base_url}
    with running([program, *claude_arguments(debug)], folder, name, env) as process:
        yield Claude(process, debug)
