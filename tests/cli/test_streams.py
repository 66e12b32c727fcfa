"""Commands whose standard streams the shell has closed: no traceback, and the same exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.evidence.documents import flow_file, flows

COMMANDS = ["lint -", "explain saved.flow"]
CLOSED = [">&-", "<&- >&- 2>&-"]


@pytest.mark.parametrize("closed", CLOSED)
def test_closed_streams(tmp_path: Path, closed: str) -> None:
    (tmp_path / "saved.flow").write_bytes(flow_file(flows(1)))
    each = [f'"{sys.executable}" -m moontap.cli {one} {closed}; echo $? >&9' for one in COMMANDS]
    script = "\n".join(["exec 9>codes", *each])
    ended = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert "Traceback" not in ended.stdout + ended.stderr
    codes = (tmp_path / "codes").read_text().split()
    assert codes == ["2", *["0"] * (len(COMMANDS) - 1)]
