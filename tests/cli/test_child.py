"""A command run by `child.run`: exit codes and signals, with this process in the parent's part."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from moontap.commands import child

# Says when it is ready, then ends with code 40 + N on signal N.
_LISTENS = """
import pathlib, signal, sys, time
for number in (1, 2, 3, 10, 15):
    if signal.getsignal(number) is not signal.SIG_IGN:
        signal.signal(number, lambda n, frame: sys.exit(40 + n))
pathlib.Path(sys.argv[1]).touch()
time.sleep(20)
"""


async def run(*command: str) -> int:
    with child.Signals() as signals:
        return await child.run(command, os.environ, signals)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["true"], 0),
        (["sh", "-c", "exit 3"], 3),
        (["sh", "-c", "exit 255"], 255),
        (["sh", "-c", "kill -9 $$"], 137),
        (["sh", "-c", "kill -TERM $$"], 143),
    ],
)
async def test_the_exit_code_is_the_commands(command: list[str], code: int) -> None:
    assert await run(*command) == code


async def listening(file: Path, *send: signal.Signals) -> int:
    """The exit code of a child that listens for signals, after we were sent some."""
    task = asyncio.create_task(run(sys.executable, "-c", _LISTENS, str(file)))
    while not file.exists():
        await asyncio.sleep(0.01)
    for number in send:
        os.kill(os.getpid(), number)
        await asyncio.sleep(0.05)
    return await task


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
async def test_what_is_sent_to_us_is_passed_on(number: signal.Signals, tmp_path: Path) -> None:
    assert await listening(tmp_path / "ready", number) == 40 + number


async def test_interrupts_are_left_to_the_terminal(tmp_path: Path) -> None:
    sent = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
    assert await listening(tmp_path / "ready", *sent) == 40 + signal.SIGTERM


async def test_what_we_ignore_the_child_ignores(tmp_path: Path) -> None:
    """As under nohup, which would mean nothing otherwise."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        sent = (signal.SIGHUP, signal.SIGTERM)
        assert await listening(tmp_path / "ready", *sent) == 40 + signal.SIGTERM
    finally:
        signal.signal(signal.SIGHUP, before)


async def test_the_child_can_be_interrupted(tmp_path: Path) -> None:
    """Were SIGINT ignored by us with SIG_IGN, Ctrl-C would be dead in the child."""
    ready = tmp_path / "ready"
    code = f"import signal, sys; sys.exit(signal.getsignal(2) is signal.SIG_IGN)  # {ready}"
    assert await run(sys.executable, "-c", code) == 0


async def test_a_signal_before_the_start_is_obeyed() -> None:
    with child.Signals() as signals:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0.05)
        assert await child.run(["sleep", "20"], os.environ, signals) == 143


async def test_the_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    await run("true")
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def _made(folder: Path, content: str, mode: int) -> str:
    path = folder / "command"
    path.write_text(content)
    path.chmod(mode)
    return str(path)


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path)}
    with pytest.raises(child.CannotStart, match="nosuch: command not found") as caught:
        child.check("nosuch", environment)
    assert caught.value.code == 127
    _made(tmp_path, "", 0o644)
    for command in ("command", str(tmp_path / "command"), str(tmp_path)):
        with pytest.raises(child.CannotStart, match="not executable") as caught:
            child.check(command, environment)
        assert caught.value.code == 126


@pytest.mark.parametrize(
    ("content", "mode", "code"),
    [("#!/nosuch/interpreter\n", 0o755, 127), ("\x00\x01", 0o755, 126)],
)
async def test_a_command_that_does_not_start(
    content: str, mode: int, code: int, tmp_path: Path
) -> None:
    with pytest.raises(child.CannotStart) as caught:
        await run(_made(tmp_path, content, mode))
    assert caught.value.code == code
