from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from moontap.demo import agent
from moontap.standin import Standin, parse_script
from moontap.testing.background import Background
from moontap.testing.taps import Taps
from tests.cli.forks import Forks
from tests.testing.projects import ROOT, Project, entry_points

SCRIPT = """
seed: 7
steps:
  - calls: [{name: pwd, arguments: {}}]
  - calls: [{name: pwd, arguments: {deep: 1}}]
final: "You are in /work."
"""


@pytest.fixture
def project(tmp_path: Path, forked_python: Forks) -> Project:
    """An empty one."""
    folder = tmp_path / "project"
    folder.mkdir()
    installed = entry_points(tmp_path / "installed")
    return Project(folder, os.pathsep.join((str(ROOT / "addon"), str(installed))), forked_python)


@pytest.fixture(scope="session")
def background() -> Iterator[Background]:
    with Background() as background:
        yield background


@pytest.fixture
def standin(background: Background) -> Iterator[Standin]:
    """Two calls of `pwd`, both as `pwd_0` (`pwd:0` on Chat), then an answer."""
    standin, close = background.enter(Standin(parse_script(SCRIPT)))
    yield standin
    close()


@pytest.fixture(scope="session")
def session_flow(background: Background, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A flow file: two calls of `pwd` with their results, three requests, ids as the server gave
    them, recorded through a tap that made them unique."""
    standin, close = background.enter(Standin(parse_script(SCRIPT)))
    with Taps() as taps:
        tap = taps.start(standin.base_url, tmp_path_factory.mktemp("recorded"))
        list(agent.turns(f"{tap.url}/anthropic", {"pwd": lambda _: "/work"}, "where am I?", 5))
        folder = tap.close().folder
    close()
    assert folder
    return folder / "traffic.flow"
