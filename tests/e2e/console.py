"""mitmproxy's console in a terminal of its own (tmux) with the addon: keys in, the screen out.

tmux is a server of its own, ended with the test. Every wait is bounded.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.e2e import rig, web

WIDE = (120, 40)
NARROW = (80, 24)


def tmux() -> Path:
    """The program; without it the test is skipped, or fails where none may be."""
    program = shutil.which("tmux")
    if program:
        return Path(program)
    return web.absent("no tmux on PATH")


class Console:
    """mitmproxy in tmux. urls: of its proxy, one a mode. raw: all that it wrote to the terminal."""

    def __init__(
        self, program: Path, folder: Path, name: str, urls: Sequence[str], captures: Path
    ) -> None:
        self.urls = tuple(urls)
        self.captures = captures
        self.raw = folder / f"{name}.raw"
        self._name = name
        # A socket of its own, and no settings of the person who runs the tests.
        self._tmux = [str(program), "-S", str(folder / f"{name}.tmux"), "-f", "/dev/null"]

    def tmux(self, *arguments: str, env: dict[str, str] | None = None) -> str:
        """What a command of tmux prints."""
        done = subprocess.run(
            [*self._tmux, *arguments],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=20,
        )
        assert done.returncode == 0, f"tmux {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def screen(self, *, escapes: bool = False) -> str:
        """What stands on the screen. escapes: with its colours, as escape sequences."""
        return self.tmux("capture-pane", "-p", *(["-e"] if escapes else []))

    @property
    def title(self) -> str:
        """Of the window, as programs may set it."""
        return self.tmux("display-message", "-p", "#{pane_title}").rstrip("\n")

    def keys(self, *keys: str) -> None:
        """Press keys, by tmux's names for them."""
        self.tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)

    def until(self, true: Callable[[str], object], seconds: float = 8) -> str:
        """The screen, once that is true of it, or at the end of the time."""
        end = time.monotonic() + seconds
        while True:
            shown = self.screen()
            if true(shown) or time.monotonic() > end:
                return shown
            time.sleep(0.05)

    def shows(self, pattern: str, seconds: float = 8) -> str:
        """The screen with that on it. Fails where it does not come."""
        shown = self.until(lambda shown: re.search(pattern, shown), seconds)
        assert re.search(pattern, shown), f"not on the screen: {pattern}\n{shown}"
        return shown

    def settled(self, seconds: float = 8) -> str:
        """The screen, once it has stayed the same for a moment."""
        seen, since, end = self.screen(), time.monotonic(), time.monotonic() + seconds
        while time.monotonic() < end and time.monotonic() - since < 0.35:
            time.sleep(0.05)
            if (now := self.screen()) != seen:
                seen, since = now, time.monotonic()
        return seen

    def command(self, line: str) -> str:
        """Type a command at mitmproxy's prompt; the screen then."""
        self.keys(":")
        self.shows(r"(?m)^:")
        self.type(line)
        self.keys("Enter")
        self.until(lambda shown: not re.search(r"(?m)^:", shown))
        return self.settled()

    def resize(self, size: tuple[int, int]) -> str:
        self.tmux("resize-window", "-x", str(size[0]), "-y", str(size[1]))
        return self.settled()

    def keep(self, what: str, shown: str) -> str:
        """Keep a screen beside the pictures of the browser; the same text."""
        columns = self.tmux("display-message", "-p", "#{window_width}").strip()
        web.saved(shown, f"{self._name}-{what}-{columns}.txt")
        return shown


@contextmanager
def mitmproxy(
    program: Path,
    folder: Path,
    conf: Path,
    modes: Sequence[str],
    *arguments: str | Path,
    name: str = "console",
    size: tuple[int, int] = WIDE,
    **options: object,
) -> Iterator[Console]:
    """`mitmproxy -s addon/main.py` in tmux on free loopback ports; as `rig.tap`."""
    captures = folder / f"{name}.captures"
    home = folder / f"{name}.home"
    home.mkdir()
    ports = rig.free_ports(len(modes))
    command: list[str | Path] = [Path(sys.executable).with_name("mitmproxy"), *arguments]
    command += ["-s", rig.MAIN, *([] if modes else ["-n"])]
    for mode, port in zip(modes, ports, strict=True):
        command += ["--mode", f"{mode}@127.0.0.1:{port}"]
    for option, value in {"confdir": conf, "moontap_dir": captures, **options}.items():
        command += ["--set", f"{option}={value}"]
    console = Console(
        program, folder, name, [f"http://127.0.0.1:{port}" for port in ports], captures
    )
    env = rig.environment(home)
    columns, lines = map(str, size)
    line = f"exec {shlex.join(map(str, command))}"
    console.tmux("new-session", "-d", "-x", columns, "-y", lines, "-c", str(home), line, env=env)
    try:
        console.tmux("pipe-pane", "-O", f"cat >{shlex.quote(str(console.raw))}")
        console.shows(r"Flows", 20)
        yield console
    finally:
        console.tmux("kill-server")


def post(url: str, body: Any, **headers: str) -> httpx.Response:
    """A request through the proxy."""
    return httpx.post(url, json=body, headers=headers, trust_env=False, timeout=20)
