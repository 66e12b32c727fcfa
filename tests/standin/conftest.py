from __future__ import annotations

from pathlib import Path

import pytest

from moontap.standin import TLSFiles, make_tls


@pytest.fixture(scope="session")
def tls(tmp_path_factory: pytest.TempPathFactory) -> TLSFiles:
    return make_tls(tmp_path_factory.mktemp("tls"))


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No client may find a key, a base URL or a proxy of the person who runs the tests."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("ANTHROPIC_BASE_URL", "ANTHROPIC_AUTH_TOKEN", "OPENAI_BASE_URL", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
