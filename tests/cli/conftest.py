from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import moontap
from tests.cli.commands import KEY, Moontap
from tests.cli.forks import MOONTAP, Forks


@pytest.fixture(scope="session")
def _forks(shared_folder: Path) -> Iterator[Forks]:
    with Forks(MOONTAP, shared_folder / "moontap.socket") as forks:
        yield forks


@pytest.fixture
def moontap_command(tmp_path: Path, _forks: Forks) -> Moontap:
    """The `moontap` command as a process of its own, in a folder and a HOME of its own."""
    home = tmp_path / "home"
    home.mkdir()
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.upper().endswith(("_BASE_URL", "_PROXY", "_API_KEY", "_AUTH_TOKEN"))
    }
    environment = clean | {
        "HOME": str(home),
        "PYTHONPATH": str(Path(moontap.__file__).parent.parent),
        "ANTHROPIC_API_KEY": KEY,
        "OPENAI_API_KEY": KEY,
    }
    return Moontap(tmp_path, environment, _forks)


@pytest.fixture(scope="session")
def standin_url() -> Iterator[str]:
    """A stand-in that calls Bash three times, each time as Bash_0 (Bash:0 on Chat)."""
    process = subprocess.Popen(
        [sys.executable, "-m", "moontap.standin"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(moontap.__file__).parent.parent)},
    )
    assert process.stdout
    yield process.stdout.readline().split()[-1]
    process.terminate()
    process.wait(10)
    process.stdout.close()
