"""The command as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import moontap
from tests.standin.bodies import messages_request

COMMAND = [sys.executable, "-m", "moontap.standin"]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(moontap.__file__).parent.parent)}


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().rstrip("\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_and_ends_on_a_signal(number: signal.Signals, tmp_path: Path) -> None:
    script = tmp_path / "s.yaml"
    script.write_text("model: kimi-k2.6\nsteps: [{calls: [{name: Bash}]}]\n")
    log = tmp_path / "log.jsonl"
    options = ["--script", str(script), "--id-form", "colon", "--log", str(log)]
    with started(*options) as process:
        said = line(process)
        assert said.startswith("standin: http://127.0.0.1:")
        url = said.removeprefix("standin: ") + "/v1/messages"
        reply = httpx.post(url, json=messages_request(), trust_env=False).json()
        process.send_signal(number)
        out, err = process.communicate(timeout=10)
    assert (process.returncode, out, err) == (0, "", "")
    assert (reply["model"], reply["content"][0]["id"]) == ("kimi-k2.6", "Bash:0")
    (record,) = map(json.loads, log.read_text().splitlines())
    assert record["answer"]["ids"] == ["Bash:0"]


def test_tls_names_its_authority(tmp_path: Path) -> None:
    with started("--tls", "--tls-dir", str(tmp_path / "tls"), "--mint", "unique") as process:
        url = line(process).removeprefix("standin: ")
        ca = line(process).removeprefix("standin: ca ")
        assert url.startswith("https://127.0.0.1:")
        assert ca == str(tmp_path / "tls" / "standin-ca-cert.pem")
        trust = ssl.create_default_context(cafile=ca)
        reply = httpx.post(
            f"{url}/v1/messages", json=messages_request(), verify=trust, trust_env=False
        ).json()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=10)
    assert process.returncode == 0
    assert reply["content"][0]["id"].startswith("toolu_")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (
            "stepz: []",
            "s.yaml:1: unknown key 'stepz' at the top; known: conversations, faults, final, model, "
            "pacing, seed, steps; did you mean 'steps'?",
        ),
        (None, "s.yaml: cannot be read"),
    ],
)
def test_a_bad_script_is_one_line_and_code_2(script: str | None, said: str, tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    if script is not None:
        path.write_text(script)
    done = subprocess.run(
        [*COMMAND, "--script", str(path)], capture_output=True, text=True, env=ENVIRONMENT
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert said in done.stderr


@pytest.mark.parametrize(
    "arguments", [["--mint", "x"], ["--port", "70000"], ["--id-form", "dot"], ["--nope"]]
)
def test_wrong_usage_is_code_2(arguments: list[str]) -> None:
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_help_has_an_example() -> None:
    done = subprocess.run([*COMMAND, "--help"], capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 0
    for word in ("example:", "--script steps.yaml", "at_request", "null_id_continuation"):
        assert word in done.stdout


def test_a_port_in_use_is_one_line_with_the_remedy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [*COMMAND, "--port", port], capture_output=True, text=True, env=ENVIRONMENT
        )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"standin: port {port} is in use; --port 0 takes a free one\n"
