"""docs/replay.md: its commands, run as they are written.

A block that is not known here fails. What a test adds is the environment, a free port to listen on
and, in the place of what is behind mitmproxy, a listener that counts connections.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from moontap.capture import metadata
from tests.e2e import rig
from tests.e2e.conftest import Once
from tests.e2e.test_mitmproxy_replay import (
    HEALTHY,
    HOST,
    KNOWN,
    Recording,
    ask,
    record,
    redirect,
    talking,
)
from tests.sentinel import Sentinel

TEXT = (rig.ROOT / "docs" / "replay.md").read_text("utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
SERVE, READ, DEAD_END, FORWARD, STANDIN, KEY = (
    "moontap replay traffic.flow",
    "mitmdump -nr traffic.flow",
    "--mode reverse:https://127.0.0.1:9 ",
    '-S traffic.flow -s "$(moontap path)" --listen-host',
    "map_remote=",
    "modify_headers=",
)


def block(holds: str) -> str:
    (found,) = [text for text in BLOCKS if holds in text]
    return str(found).strip()


@pytest.fixture(scope="module")
def recorded(once: Once, conf: Path) -> Recording:
    """A capture as `moontap run` makes it."""
    return once("replay-docs", lambda folder: record(folder / "all", conf, "all"))


@contextmanager
def shell(
    text: str, folder: Path, recorded: Recording, env: dict[str, str] | None = None
) -> Iterator[rig.Process]:
    """A block in a shell, in a folder that holds the capture's traffic."""
    work = folder / "shell.home"
    work.mkdir()
    shutil.copy(recorded.traffic, work)
    path = {"PATH": f"{_programs(folder)}:{Path(sys.executable).parent}:{os.environ['PATH']}"}
    # A block that fails leaves its server behind.
    text = f"trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{text}"
    with rig.running(["bash", "-euc", text], folder, "shell", {**path, **(env or {})}) as process:
        yield process


def _programs(folder: Path) -> Path:
    """A folder with `moontap` as the checkout has it, installed or not."""
    programs = folder / "bin"
    programs.mkdir()
    program = programs / "moontap"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m moontap.cli "$@"\n')
    program.chmod(0o755)
    return programs


def captured(folder: Path) -> Path:
    return folder / "shell.home" / "moontap-captures"


def test_every_block_is_known() -> None:
    known = [SERVE, READ, DEAD_END, FORWARD, STANDIN, KEY]
    assert [sum(holds in text for text in BLOCKS) for holds in known] == [1] * len(known)
    assert len(BLOCKS) == len(known)


def test_a_session_as_an_api(recorded: Recording, tmp_path: Path) -> None:
    text = block(SERVE).replace("--port 8090", "--port 0")
    with shell(text, tmp_path, recorded) as process:
        port = process.wait_for(r"127\.0\.0\.1:(\d+)")[1]
        with talking(f"http://127.0.0.1:{port}", HEALTHY) as talk:
            assert talk.to_the_end() == 4
            assert talk.text == "The task is done."
        assert ask(f"http://127.0.0.1:{port}", KNOWN)[0] not in ("200", "-")


def test_reading(recorded: Recording, tmp_path: Path) -> None:
    with shell(block(READ), tmp_path, recorded) as process:
        assert process.wait(60) == 0, process.output
    again = rig.run_folder(captured(tmp_path)) / "pairs.jsonl"
    assert again.read_bytes() == recorded.pairs


@pytest.mark.parametrize("holds", [DEAD_END, FORWARD], ids=["reverse", "regular"])
def test_serving_makes_no_connection(
    recorded: Recording, tmp_path: Path, conf: Path, sentinel: Sentinel, holds: str
) -> None:
    """Found, run out, and never known: with a sentinel wherever it could go."""
    text = block(holds).replace("127.0.0.1:9 ", f"127.0.0.1:{sentinel.port} ")
    text += f" --listen-port 0 --set confdir={conf} -s {rig.HERE / 'clients' / 'redirect.py'}"
    with shell(text, tmp_path, recorded, redirect(sentinel.port)) as process:
        port = process.wait_for(r"listening at 127\.0\.0\.1:(\d+)\.")[1]
        url = f"http://127.0.0.1:{port}"
        if holds == DEAD_END:
            with talking(url, HEALTHY) as talk:
                talk.to_the_end()
                assert talk.messages == recorded.said[HEALTHY]
            assert ask(url, KNOWN)[0] == "404"
            with talking(url, HEALTHY) as talk, pytest.raises(AssertionError):
                talk.turn()  # used up
        else:
            for flow, wanted in zip(recorded.flows * 2, [200] * 7 + [404] * 7, strict=True):
                status = _through_proxy(port, conf, flow.request.raw_content or b"")
                assert status == wanted
        assert process.code is None
        assert sentinel.connections == 0
        process.stop()
    assert len(rig.saved_flows(captured(tmp_path))) >= 6


def _through_proxy(port: str, conf: Path, content: bytes) -> int:
    import ssl

    trust = ssl.create_default_context(cafile=str(conf / "mitmproxy-ca-cert.pem"))
    status, _ = ask(f"https://{HOST}", content, proxy=f"http://127.0.0.1:{port}", verify=trust)
    return int(status)


def test_sending_to_a_stand_in(recorded: Recording, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with shell(block(STANDIN).replace("8767", str(port)), tmp_path, recorded) as process:
        assert process.wait(90) == 0, process.output
    flows = rig.saved_flows(captured(tmp_path))
    assert len(flows) == len(recorded.flows)
    for flow in flows:
        assert flow.response
        assert flow.response.status_code == 200
        assert flow.server_conn.address == ("127.0.0.1", port)


def test_the_key_is_put_back(recorded: Recording, tmp_path: Path) -> None:
    """Before a stand-in here; and the second capture masks it as the first did."""
    key = "Bearer made-up-key-of-the-docs-4711"
    script = tmp_path / "told.py"
    script.write_text(
        "def request(flow):\n    print('sent', flow.request.headers['authorization'], flush=True)\n"
    )
    with rig.standin(tmp_path, {"final": "Done."}) as standin:
        text = f"printf %s '{key}' > key.txt\n{block(KEY)}"
        text += f" --set 'map_remote=|https://{HOST}|{standin.url}' -q -s {script}"
        with shell(text, tmp_path, recorded) as process:
            assert process.wait(90) == 0, process.output
        assert len(standin.received) == len(recorded.flows)
    assert process.output.count(f"sent {key}\n") == len(recorded.flows)
    flows = rig.run_folder(captured(tmp_path)) / "traffic.flow"
    assert b"made-up-key-of-the-docs" not in flows.read_bytes()
    assert all(metadata.CALLS in flow.metadata for flow in rig.saved_flows(captured(tmp_path)))
