"""What tests of the whole tap share: certificates, a way to start it, and a check of the log."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import pytest

from moontap.standin import TLSFiles
from tests.cli.forks import PYTHON, Forks
from tests.proxying import Tap, tap, tls_files
from tests.sentinel import Sentinel

type Start = Callable[..., AbstractAsyncContextManager[Tap]]
"""`proxying.tap` with its folders and the upstream's certificate filled in."""


_TELLING = {"CI", "BUILD_NUMBER", "GITHUB_ACTIONS", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"}
"""Variables by which programs decide how they write: with CI set, pytest cuts no line of its
summary, and a test that counted a text in it failed in CI alone."""


@pytest.fixture(scope="session", autouse=True)
def _written_alike_everywhere() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in _TELLING & os.environ.keys():
            patch.delenv(name)
        yield


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all processes in which the tests run."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session")
def forked_python(shared_folder: Path) -> Iterator[Forks]:
    """Python that has loaded mitmproxy, pytest and the SDKs already; see `tests.cli.forks`."""
    with Forks(PYTHON, shared_folder / "python.socket") as forks:
        yield forks


@pytest.fixture(scope="session")
def upstream_tls(tmp_path_factory: pytest.TempPathFactory) -> TLSFiles:
    return tls_files(tmp_path_factory.mktemp("upstream"))


@pytest.fixture(scope="session")
def _conf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("conf")


@pytest.fixture
def start(tmp_path: Path, upstream_tls: TLSFiles, _conf: Path) -> Start:
    return partial(tap, tmp_path, upstream_ca=upstream_tls.ca, conf=_conf)


@pytest.fixture
def sentinel() -> Iterator[Sentinel]:
    """Where no connection may arrive."""
    made = Sentinel()
    yield made
    made.close()


@pytest.fixture
def _no_errors(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """An addon's exception is but a log line in mitmproxy: here it fails the test."""
    yield
    errors = [
        record.getMessage()
        for record in caplog.get_records("call")
        if record.levelname in ("ERROR", "CRITICAL")
        and record.name.startswith(("mitmproxy", "moontap"))
    ]
    assert not errors


@pytest.fixture
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No client may find a key, a base URL or a proxy of the person who runs the tests."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN", "OPENAI_BASE_URL", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
