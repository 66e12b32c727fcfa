"""Taps in child processes, before a real stand-in."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from moontap.demo import agent
from moontap.standin import Standin
from moontap.testing.checks import LOG
from moontap.testing.flows import flows
from moontap.testing.sources import logged
from moontap.testing.taps import Running, TapError, Taps

TOOLS = {"pwd": lambda arguments: "/work"}


@pytest.fixture(scope="module")
def taps() -> Iterator[Taps]:
    with Taps() as taps:
        yield taps


def use(tap: Running, turns: int = 5) -> list[str]:
    """The ids that an agent got."""
    made = agent.turns(f"{tap.url}/anthropic", TOOLS, "where am I?", turns)
    return [call.id for turn in made for call in turn.calls]


def listens(url: str) -> bool:
    parts = urlsplit(url)
    with socket.socket() as client:
        return client.connect_ex((parts.hostname, parts.port)) == 0


def test_one_after_the_other_in_one_process(taps: Taps, standin: Standin, tmp_path: Path) -> None:
    for rewrite, ids in (("off", 1), ("all", 2), ("off", 1)):
        tap = taps.start(standin.base_url, tmp_path / rewrite, rewrite=rewrite)
        assert tap.settle().folder is None
        assert len(set(use(tap))) == ids
        folder = tap.settle().folder
        assert folder is not None
        assert folder.parent == tmp_path / rewrite
        assert listens(tap.url)
        tap.close()
        assert not listens(tap.url)
        assert tap.close() == tap.settle()
    assert len(taps._all) == 1


def test_pairs_are_there_once_a_reply_has_ended(
    taps: Taps, standin: Standin, tmp_path: Path
) -> None:
    tap = taps.start(standin.base_url, tmp_path, rewrite="off")
    use(tap, 2)
    folder = tap.settle().folder
    assert folder
    assert [line["status"] for line in logged(folder, LOG)] == ["ok"]
    tap.close()
    assert [line["status"] for line in logged(folder, LOG)] == ["ok", "unanswered"]


def test_two_at_a_time(taps: Taps, standin: Standin, tmp_path: Path) -> None:
    inner = taps.start(standin.base_url, tmp_path / "inner", rewrite="off")
    outer = taps.start(inner.url, tmp_path / "outer", rewrite="all")
    ids = use(outer)
    saved = [tap.close().folder or tmp_path for tap in (outer, inner)]
    assert [len(flows(folder)) for folder in saved] == [3, 3]
    lines = logged(saved[0], LOG)
    assert [line["id"] for line in lines] == ids
    assert [line["upstream_id"] for line in lines] == ["pwd_0", "pwd_0"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"rules": "/no/such.yaml"}, "/no/such.yaml: cannot be read"),
        ({"rewrite": "some"}, "moontap_rewrite: 'some' is not one of off, duplicates, all"),
    ],
)
def test_wrong_settings_are_said(
    settings: dict[str, str], said: str, taps: Taps, standin: Standin, tmp_path: Path
) -> None:
    with pytest.raises(TapError, match=said):
        taps.start(standin.base_url, tmp_path, **settings)
    tap = taps.start(standin.base_url, tmp_path)  # the process is good for another one
    assert len(use(tap)) == 2
    tap.close()


def test_what_the_upstream_refuses_is_told(taps: Taps, tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        tap = taps.start(f"http://127.0.0.1:{closed.getsockname()[1]}", tmp_path)
        with pytest.raises(OSError, match="502"):
            use(tap)
        trouble, found = sorted(tap.close().troubles)
    assert "stream-cut: " in found
    assert "POST /anthropic/v1/messages to 127.0.0.1 failed" in trouble


def test_a_process_that_dies_is_said(standin: Standin, tmp_path: Path) -> None:
    with Taps() as taps:
        tap = taps.start(standin.base_url, tmp_path)
        os.kill(taps._all[0]._process.pid, signal.SIGKILL)
        with pytest.raises(TapError, match="the tap's process has ended"):
            tap.close()


def test_nothing_is_left(standin: Standin, tmp_path: Path) -> None:
    with Taps() as taps:
        tap = taps.start(standin.base_url, tmp_path)
        process, folder = taps._all[0]._process, Path(taps._all[0]._folder.name)
        assert folder.exists()
    assert process.returncode == 0
    assert not folder.exists()
    assert not listens(tap.url)
