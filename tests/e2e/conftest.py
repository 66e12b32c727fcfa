"""What every test of this folder needs: the mark, the clients, one authority for all taps."""

from __future__ import annotations

import fcntl
import os
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.e2e)


class Once(Protocol):
    """`once(name, make)`: what `make(folder)` returned. Where tests run in several processes, the
    first that asks makes it and the others wait; it must pickle, and what runs must have ended."""

    def __call__[T](self, name: str, make: Callable[[Path], T]) -> T: ...


@pytest.fixture(scope="session")
def once(shared_folder: Path) -> Once:
    def once[T](name: str, make: Callable[[Path], T]) -> T:
        folder = shared_folder / f"once-{name}"
        folder.mkdir(exist_ok=True)
        made = folder / "made.pickle"
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not made.exists():
                work = Path(tempfile.mkdtemp(dir=folder))
                made.write_bytes(pickle.dumps(make(work)))
        value: T = pickle.loads(made.read_bytes())
        return value

    return once


@pytest.fixture(scope="session")
def claude_program() -> Path:
    """The Claude Code that `scripts/test` installed."""
    named = os.environ.get("MOONTAP_CLAUDE")
    if named:
        program = Path(named)
        assert os.access(program, os.X_OK), f"MOONTAP_CLAUDE={program} is no program"
        return program
    reason = "MOONTAP_CLAUDE names no Claude Code; scripts/test sets it where npm is there"
    if os.environ.get("MOONTAP_MUST_RUN") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """mitmproxy's own folder; shared, because making its authority takes a second."""
    return tmp_path_factory.mktemp("conf")
