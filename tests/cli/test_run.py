"""`moontap run` as a process, around real clients and before a real stand-in."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.commands import (
    ANTHROPIC,
    COMMAND,
    ENVIRONMENT,
    KEY,
    OPENAI,
    REQUEST,
    Moontap,
    holds,
    pairs,
    python,
)
from tests.cli.forks import Forks


@pytest.mark.parametrize(
    ("agent", "code", "id_"), [(ANTHROPIC, 3, "Bash_0"), (OPENAI, 0, "Bash:0")]
)
def test_an_agent_with_a_real_sdk(
    agent: str,
    code: int,
    id_: str,
    moontap_command: Moontap,
    standin_url: str,
    forked_python: Forks,
) -> None:
    run = python(agent, forked_python.python)
    done = moontap_command.run("run", "--upstream", standin_url, *run)
    assert (done.returncode, done.stdout) == (code, "3 3 All done.\n"), done.stderr
    (capture,) = moontap_command.captures()
    assert (
        "3 calls, 3 pairs, 2 with an id used before, 3 rewritten, 0 unanswered in 4 requests"
        in done.stderr
    )
    assert f"capture: moontap-captures/{capture.name}" in done.stderr
    logged = pairs(capture)
    assert [line["upstream_id"] for line in logged] == [id_] * 3
    assert [line["result"] for line in logged] == ["did pwd", "did ls", "did date"]
    assert len({line["id"] for line in logged}) == 3
    assert holds(capture, KEY) == []
    assert KEY not in done.stderr


def test_the_environment_and_stdin_of_the_command(moontap_command: Moontap) -> None:
    """Also: a tap that listens on loopback alone, a home that cannot be written, and a command that
    sends nothing through the tap."""
    asked = {
        "ANTHROPIC_BASE_URL": "https://api.kimi.com/coding",
        "HOME": "/dev/null",
        "NO_PROXY": "a.b",
    }
    done = moontap_command.run("run", *python(ENVIRONMENT), stdin="typed\n", env=asked)
    assert done.returncode == 0, done.stderr
    environment, reached, typed = done.stdout.splitlines()
    got = json.loads(environment)
    (tap,) = re.findall(
        r"tap on (http://127\.0\.0\.1:\d+) before https://api\.kimi\.com,", done.stderr
    )
    assert got == {
        "ANTHROPIC_BASE_URL": f"{tap}/coding",
        "OPENAI_BASE_URL": f"{tap}/coding/v1",
        "KIMI_BASE_URL": f"{tap}/coding/v1",
        "NO_PROXY": "a.b,127.0.0.1,localhost",
        "no_proxy": "a.b,127.0.0.1,localhost",
    }
    assert reached == "['127.0.0.1']"
    assert typed == "TYPED"
    assert "upstream https://api.kimi.com, as ANTHROPIC_BASE_URL says" in done.stderr
    assert "no request came through the tap" in done.stderr
    assert "settings.json" in done.stderr
    assert not (moontap_command.folder / "moontap-captures").exists()


def test_a_gateway_that_the_person_chose_is_kept(
    moontap_command: Moontap, standin_url: str
) -> None:
    """The key goes where it went before, and nowhere else."""
    env = {"ANTHROPIC_BASE_URL": f"{standin_url}/anthropic"}
    done = moontap_command.run("run", *python(REQUEST), env=env)
    assert (done.returncode, done.stdout) == (0, "200\n"), done.stderr
    assert f"upstream {standin_url}, as ANTHROPIC_BASE_URL says\n" in done.stderr


def test_claude_with_an_address_of_its_own_is_told(moontap_command: Moontap) -> None:
    settings = moontap_command.folder / "home/.claude/settings.json"
    settings.parent.mkdir()
    settings.write_text('{"env": {"ANTHROPIC_BASE_URL": "https://gate.example/kimi"}}')
    claude = moontap_command.folder / "claude"
    claude.write_text("#!/bin/sh\nexit 1\n")
    claude.chmod(0o755)
    done = moontap_command.run("run", "--", "./claude")
    assert done.returncode == 1
    remedy = "moontap run --port 8799 --upstream https://gate.example -- claude --settings "
    note, tap, look, silent = done.stderr.splitlines()
    assert note.startswith("moontap: ~/.claude/settings.json sets ANTHROPIC_BASE_URL")
    assert remedy in note
    assert tap.startswith("moontap: tap on ")
    assert re.search(r"while it runs: \S+ explain moontap-captures/\*-\d+$", look)
    assert silent.startswith(
        "moontap: no request came through the tap (the command ended with code 1 after "
    )


def test_an_upstream_that_is_down(moontap_command: Moontap) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    forward = {"HTTPS_PROXY": "http://127.0.0.1:1"}
    done = moontap_command.run(
        "run", "--upstream", f"http://127.0.0.1:{port}", *python(REQUEST), env=forward
    )
    assert (done.returncode, done.stdout) == (0, "502\n")
    assert "warning: POST /anthropic/v1/messages to 127.0.0.1 failed" in done.stderr
    assert "Connect call failed" in done.stderr
    assert "HTTPS_PROXY are not used" in done.stderr
    assert "1 broken off in 1 request" in done.stderr


def test_signals_reach_the_command(moontap_command: Moontap) -> None:
    """SIGINT to us alone is no Ctrl-C and changes nothing; SIGTERM is passed on."""
    code = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('term', flush=True), sys.exit(5)))\n"
        "print('ready', flush=True); time.sleep(20)"
    )
    process = moontap_command.start("run", *python(code))
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (5, "term\n"), err
    assert "no request came through the tap" in err


# What a terminal emulator does before it starts a shell.
_OWN_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""

_TERMINAL = (
    REQUEST
    + """
import signal, sys, time
assert all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
assert os.getpgrp() == os.tcgetpgrp(0) == os.getpgid(os.getppid())
def interrupted(number, frame):
    time.sleep(0.3)
    os.write(1, b"bye\\n")
    sys.exit(7)
signal.signal(signal.SIGINT, interrupted)
os.write(1, b"ready\\n")
time.sleep(20)
"""
)
# Not `print`: the signal can come while that flushes, which then cannot be entered once more.


def test_a_terminal_is_the_commands_own(moontap_command: Moontap) -> None:
    """Ctrl-C reaches the command and not us; nothing of ours is on the screen while it runs,
    although the request fails and there is a warning to give."""
    arguments = [*COMMAND, "run", "--upstream", "http://127.0.0.1:1", *python(_TERMINAL)]
    terminal, inner = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", _OWN_TERMINAL, *arguments],
        start_new_session=True,
        cwd=moontap_command.folder,
        env=moontap_command.environment,
        stdin=inner,
        stdout=inner,
        stderr=inner,
    )
    os.close(inner)
    screen = b""
    interrupted = False
    while True:
        try:
            seen = os.read(terminal, 4096)
        except OSError:  # Linux's way to say that the other end is closed
            break
        if not seen:
            break
        screen += seen
        if b"ready\r\n" in screen and not interrupted:
            os.write(terminal, b"\x03")
            interrupted = True
    os.close(terminal)
    assert process.wait(20) == 7, screen.decode()
    lines = screen.decode().replace("^C", "").splitlines()
    assert lines[0].startswith("moontap: tap on ")
    assert " explain moontap-captures/*-" in lines[1]
    assert lines[2:5] == ["502", "ready", "bye"]
    assert lines[5].startswith("moontap: warning: ")
    assert all(line.startswith("moontap: ") for line in lines[5:])


def test_nothing_is_kept_where_nothing_is_to_be(moontap_command: Moontap, standin_url: str) -> None:
    done = moontap_command.run(
        "run", "--dir", "", "--rewrite", "off", "--upstream", standin_url, *python(REQUEST)
    )
    assert (done.returncode, done.stdout) == (0, "200\n")
    assert "1 call, 0 pairs, 0 rewritten, 1 unanswered in 1 request" in done.stderr
    assert "nothing was kept on disk" in done.stderr
    assert [path for path in Path(moontap_command.folder).iterdir() if path.name != "home"] == []
