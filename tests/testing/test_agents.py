"""Programs run as agents: real processes, and what they get."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from moontap.tapping.upstream import Upstream
from moontap.testing import run_agent
from moontap.testing.served import Key, Served

HERE = "http://127.0.0.1:9999"
KEY = "made-up-7f3kq9"
REPLAY = Served(HERE, Upstream(HERE))
RECORDING = Served(HERE, Upstream(HERE), Key(KEY))

TELL = "import json, os; print(json.dumps(dict(os.environ)))"
LEAVE = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', {!r}]).pid)"
STAY = "import time; print('here', flush=True); time.sleep(60)"


def told(served: Served, capfd: pytest.CaptureFixture[str]) -> dict[str, str]:
    ran = run_agent([sys.executable, "-c", TELL], served, env={"MORE": "yes"})
    assert ran.code == 0
    assert capfd.readouterr().out.startswith(ran.output)
    environment: dict[str, str] = json.loads(ran.output)
    assert environment["ANTHROPIC_BASE_URL"] == f"{HERE}/anthropic"
    assert environment["OPENAI_BASE_URL"] == environment["KIMI_BASE_URL"] == f"{HERE}/v1"
    assert environment["MORE"] == "yes"
    return environment


def test_a_replay_gets_no_real_key_and_no_network(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "MOONSHOT_API_KEY"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    environment = told(REPLAY, capfd)
    assert KEY not in environment.values()
    assert environment["OPENAI_API_KEY"] == environment["ANTHROPIC_API_KEY"] == "made-up"
    assert environment["HTTPS_PROXY"] == environment["https_proxy"] == "http://127.0.0.1:9"
    assert environment["NO_PROXY"] == "127.0.0.1,localhost"


def test_a_recording_gets_what_there_is(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOONSHOT_API_KEY", KEY)
    monkeypatch.delenv("HTTPS_PROXY", raising=False)
    environment = told(RECORDING, capfd)
    assert environment["MOONSHOT_API_KEY"] == KEY
    assert "HTTPS_PROXY" not in environment


def test_the_folder_and_the_exit_code(tmp_path: Path) -> None:
    code = "import os, sys; print(os.getcwd()); print('oh', file=sys.stderr); sys.exit(3)"
    ran = run_agent([sys.executable, "-c", code], REPLAY, cwd=tmp_path)
    assert (ran.code, sorted(ran.output.split())) == (3, sorted([str(tmp_path), "oh"]))


@pytest.mark.parametrize(("code", "ended"), [(STAY, None), (LEAVE.format(STAY), 0)])
def test_nothing_is_left_running(code: str, ended: int | None) -> None:
    started = time.monotonic()
    ran = run_agent([sys.executable, "-c", code], REPLAY, timeout=2)
    assert time.monotonic() - started < 10
    assert ran.code == ended
    if ended == 0:
        with pytest.raises(ProcessLookupError):
            _wait_for_end(int(ran.output.split()[0]))


def _wait_for_end(pid: int) -> None:
    """Raises ProcessLookupError once it is gone; what was orphaned is for init to collect."""
    for _ in range(200):
        os.kill(pid, 0)
        if Path(f"/proc/{pid}/stat").exists():
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            if state == "Z":
                raise ProcessLookupError
        time.sleep(0.02)


def test_what_cannot_be_started() -> None:
    with pytest.raises(FileNotFoundError):
        run_agent(["no-such-program"], REPLAY)
