"""`moontap probe` as a process: exit codes, the question before live requests, and the key.

A server that is not on loopback stands on loopback all the same: 0.0.0.0 is no loopback address,
and dialling it comes out there.
"""

from __future__ import annotations

import asyncio
import os
import pty
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from mitmproxy import http, io

from moontap.standin import Call, Conversation, Fault, FaultKind, Script, Standin, Step
from tests.cli.commands import KEY as OTHER_KEY
from tests.cli.commands import Moontap, holds
from tests.sentinel import Sentinel

KEY = "made-up-key-of-moonshot-0815"
PWD = Step((Call("pwd"),))
SCRIPT = Script(default=Conversation(steps=(PWD, PWD)))


def test_the_sentinel_counts(sentinel: Sentinel) -> None:
    with socket.create_connection(("0.0.0.0", sentinel.port)) as client:
        assert client.recv(1) == b""
    assert sentinel.connections == 1


@pytest.mark.parametrize(
    ("arguments", "env", "said"),
    [
        ([], {}, "is asked only with a key in MOONSHOT_API_KEY"),
        (["--yes"], {}, "is asked only with a key in MOONSHOT_API_KEY"),
        (["--yes"], {"MOONSHOT_API_KEY": "  "}, "is asked only with a key in MOONSHOT_API_KEY"),
        (["--yes"], {"MOONSHOT_API_KEY": "a\nb"}, "holds what cannot stand in a header"),
        ([], {"MOONSHOT_API_KEY": KEY}, "there is no terminal to ask at; give --yes"),
        (["--yes", "--out", "/no/such/x.flow"], {"MOONSHOT_API_KEY": KEY}, "/no/such is no folder"),
        (["--yes", "--out", "."], {"MOONSHOT_API_KEY": KEY}, "is there already"),
    ],
)
def test_no_connection_is_made(
    moontap_command: Moontap,
    sentinel: Sentinel,
    arguments: list[str],
    env: dict[str, str],
    said: str,
) -> None:
    url = f"http://0.0.0.0:{sentinel.port}"
    done = moontap_command.run("probe", "--base-url", url, *arguments, env=env)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("moontap probe: ")
    assert said in line
    assert KEY not in line
    assert sentinel.connections == 0
    assert list(moontap_command.folder.glob("*.flow")) == []


def test_without_arguments_and_key_it_names_the_default(moontap_command: Moontap) -> None:
    done = moontap_command.run("probe")
    assert done.returncode == 2
    assert done.stderr.startswith("moontap probe: https://api.moonshot.cn is asked only with a key")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--base-url", "nosuch"], "--base-url: a URL begins with https://"),
        (["--base-url", f"http://{KEY}@127.0.0.1"], "--base-url: no user name and password"),
        (["--protocol", "http"], "invalid choice: 'http'"),
        (["extra"], "unrecognized arguments: extra"),
    ],
)
def test_wrong_usage(moontap_command: Moontap, arguments: list[str], said: str) -> None:
    done = moontap_command.run("probe", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert KEY not in done.stderr


def test_the_help_has_an_example_and_the_codes(moontap_command: Moontap) -> None:
    done = moontap_command.run("probe", "--help")
    assert done.returncode == 0
    assert "example:\n  moontap probe " in done.stdout
    assert re.search(r"Exit code 1: .*\n0: .* 2: ", done.stdout)


@contextmanager
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends of a pseudo-terminal: the person's and the command's."""
    person, command = pty.openpty()
    try:
        yield person, command
    finally:
        os.close(person)
        os.close(command)


def at_terminal(moontap: Moontap, typed: bytes, *arguments: str) -> tuple[int, str, str]:
    """Run a probe with a terminal as stdin, at which somebody types."""
    with terminal() as (person, command):
        process = moontap.start("probe", *arguments, env={"MOONSHOT_API_KEY": KEY}, stdin=command)
        os.write(person, typed)
        try:
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    return process.returncode, out, err


@pytest.mark.parametrize("typed", [b"\n", b"n\n", b"\x04", b"Y es\n"], ids=repr)
def test_a_person_who_does_not_say_yes_is_heard(
    moontap_command: Moontap, sentinel: Sentinel, typed: bytes
) -> None:
    url = f"http://0.0.0.0:{sentinel.port}"
    code, out, err = at_terminal(moontap_command, typed, "--base-url", url)
    assert (code, out) == (2, "")
    assert err.splitlines()[0] == (
        f"8 to 12 requests to {url}, model kimi-k3, with the key in MOONSHOT_API_KEY IN CLEAR; "
        "each has about 300 tokens and gets at most 2,048."
    )
    assert "Go ahead? [y/N] " in err
    assert err.endswith("moontap probe: nothing was sent\n")
    assert KEY not in err
    assert sentinel.connections == 0


@pytest.mark.parametrize("how", ["y\n", "YES\n", "--yes"])
async def test_a_yes_goes_ahead_with_that_key_and_no_other(
    moontap_command: Moontap, how: str
) -> None:
    async with Standin(SCRIPT, mint="history") as standin:
        arguments = ["--base-url", f"http://0.0.0.0:{standin.port}/v1", "--protocol", "openai"]
        if how == "--yes":
            done = await asyncio.to_thread(
                moontap_command.run,
                "probe",
                *arguments,
                how,
                env={"MOONSHOT_API_KEY": KEY, "HTTPS_PROXY": "http://127.0.0.1:9"},
            )
            code, out, err = done.returncode, done.stdout, done.stderr
        else:
            code, out, err = await asyncio.to_thread(
                at_terminal, moontap_command, how.encode(), *arguments
            )
        received = list(standin.requests)
    assert code == 1, out + err
    assert err.startswith(f"4 to 6 requests to http://0.0.0.0:{standin.port}, model kimi-k3, ")
    assert ("Go ahead?" in err) is (how != "--yes")
    assert len(received) == 6
    for request in received:
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert OTHER_KEY not in str(request.headers)
    assert out.count("  counted: ") == 2
    assert KEY not in out + err
    assert holds(moontap_command.folder, KEY) == []


@pytest.mark.parametrize(
    ("mint", "code", "requests"), [("response", 1, 8), ("history", 1, 12), ("unique", 0, 12)]
)
async def test_on_loopback_it_needs_nothing_and_keeps_the_traffic(
    moontap_command: Moontap, mint: str, code: int, requests: int
) -> None:
    """Nor is a key that there is sent to it."""
    async with Standin(SCRIPT, mint=mint) as standin:
        done = await asyncio.to_thread(
            moontap_command.run,
            "probe",
            *("--base-url", f"{standin.base_url}/anthropic", "--model", "kimi-k2.6"),
            env={"MOONSHOT_API_KEY": KEY},
        )
        received = list(standin.requests)
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stderr == f"8 to 12 requests to {standin.base_url}, with a made-up key.\n"
    assert len(received) == requests
    assert {request.body["model"] for request in received} == {"kimi-k2.6"}
    assert KEY not in str([request.headers for request in received])
    (kept,) = moontap_command.folder.glob("*.flow")
    assert re.fullmatch(r"moontap-probe-\d{8}T\d{6}Z\.flow", kept.name)
    saved, look = done.stdout.splitlines()[-2:]
    assert saved == f"saved: {kept.name}"
    assert re.fullmatch(rf"look at it: (\S*/)?moontap pairs {kept.name}", look)
    with kept.open("rb") as file:
        flows = [one for one in io.FlowReader(file).stream() if isinstance(one, http.HTTPFlow)]
    assert len(flows) == requests
    assert list((moontap_command.folder / "home").iterdir()) in (
        [],
        [moontap_command.folder / "home" / ".mitmproxy"],
    )


async def test_a_file_of_ones_choice(moontap_command: Moontap) -> None:
    async with Standin(SCRIPT, mint="unique") as standin:
        arguments = ("--base-url", standin.base_url, "--protocol", "openai", "--out", "my.flow")
        done = await asyncio.to_thread(moontap_command.run, "probe", *arguments)
        again = await asyncio.to_thread(moontap_command.run, "probe", *arguments)
        received = len(standin.requests)
    assert (done.returncode, again.returncode) == (0, 2)
    assert "saved: my.flow\n" in done.stdout
    assert again.stderr.rstrip().endswith("my.flow is there already; give another name")
    assert received == 6


async def test_ctrl_c_ends_it_while_a_server_is_silent(moontap_command: Moontap) -> None:
    stall = Fault(FaultKind.STALL, ms=60_000)
    async with Standin(Script(default=SCRIPT.default, faults=(stall,))) as standin:
        process = moontap_command.start("probe", "--base-url", standin.base_url)
        try:
            for _ in range(400):
                await asyncio.sleep(0.05)
                if standin.requests:
                    break
            process.send_signal(signal.SIGINT)
            out, err = await asyncio.to_thread(process.communicate, timeout=15)
        finally:
            process.kill()
    assert process.returncode == 130, out + err
    assert "Traceback" not in out + err
    assert "could not ask" not in out
    assert list(moontap_command.folder.glob("*.flow")) == []


async def test_a_reader_that_leaves_changes_nothing(
    moontap_command: Moontap, tmp_path: Path
) -> None:
    """`moontap probe | head -2`"""
    async with Standin(SCRIPT, mint="unique") as standin:
        process = moontap_command.start("probe", "--base-url", standin.base_url)
        assert process.stdout
        await asyncio.to_thread(process.stdout.readline)
        process.stdout.close()
        code = await asyncio.to_thread(process.wait, 30)
        assert process.stderr
        said = process.stderr.read()
    assert code == 0, said
    assert "Traceback" not in said
    assert len(list(tmp_path.glob("*.flow"))) == 1


def test_what_cannot_be_asked_is_code_2(moontap_command: Moontap) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    done: subprocess.CompletedProcess[str] = moontap_command.run(
        "probe", "--base-url", f"http://127.0.0.1:{port}"
    )
    assert done.returncode == 2
    assert done.stdout.count("could not ask: no answer from ") == 1
    assert "saved" not in done.stdout
