"""The folder of a run: what is in it, who may read it, and what happens where it cannot be."""

import json
import logging
import os
import resource
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from mitmproxy import io
from mitmproxy.test import tflow

from moontap.capture.folder import CaptureFolder


def folder_in(root: Path) -> CaptureFolder:
    return CaptureFolder(root, lambda: {"moontap": "test"})


def flows_in(path: Path) -> list[str]:
    with (path / "traffic.flow").open("rb") as file:
        return [flow.id for flow in io.FlowReader(file).stream()]


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Writes past this size fail, as on a full disk (EFBIG instead of ENOSPC)."""
    import signal

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)


def test_nothing_is_made_before_there_is_something_to_keep(tmp_path: Path) -> None:
    folder = folder_in(tmp_path / "captures")
    folder.close()
    assert folder.path is None
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_was_asked_for_is_the_runs_own(tmp_path: Path) -> None:
    folder = folder_in(tmp_path / "captures")
    place = folder.place()
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    folder.write_flow(tflow.tflow(resp=True))
    assert folder.place() == folder.path == place
    assert sorted(file.name for file in place.iterdir()) == ["run.json", "traffic.flow"]
    folder.close()

    shutil.rmtree(place)
    again = folder.place()
    assert again.is_dir()
    folder.write_flow(tflow.tflow(resp=True))
    assert (again / "run.json").exists()


def test_only_the_owner_may_read(tmp_path: Path) -> None:
    os.umask(old := os.umask(0))
    assert old is not None
    folder = folder_in(tmp_path / "captures")
    flow = tflow.tflow(resp=True)
    folder.write_flow(flow)
    folder.write_lines("pairs.jsonl", [{"a": "é"}])
    assert folder.path
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in folder.path.iterdir()}
    assert modes == {"run.json": 0o600, "traffic.flow": 0o600, "pairs.jsonl": 0o600}
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert json.loads((folder.path / "run.json").read_text()) == {"v": 1, "moontap": "test"}
    assert (folder.path / "pairs.jsonl").read_text("utf-8") == '{"a":"é"}\n'
    # On the disk before it is closed: a killed process loses nothing that was written.
    assert flows_in(folder.path) == [flow.id]


def test_git_and_searches_leave_captures_alone(tmp_path: Path) -> None:
    root = tmp_path / "captures"
    folder_in(root).write_lines("pairs.jsonl", [{}])
    assert (root / ".gitignore").read_text() == "*\n"
    (tmp_path / "mine").mkdir()
    folder_in(tmp_path / "mine").write_lines("pairs.jsonl", [{}])
    assert not (tmp_path / "mine" / ".gitignore").exists()  # a folder of the person's own


def test_two_runs_never_share_a_folder(tmp_path: Path) -> None:
    folders = [folder_in(tmp_path) for _ in range(3)]
    for folder in folders:
        folder.write_lines("pairs.jsonl", [{}])
    assert len({folder.path for folder in folders}) == 3


def test_a_failed_write_is_said_once_counted_and_taken_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = folder_in(tmp_path)
    first, big, last = (tflow.tflow(resp=True) for _ in range(3))
    big.request.content = b"x" * 200_000
    folder.write_flow(first)
    with caplog.at_level(logging.ERROR), file_size_limit(50_000):
        folder.write_flow(big)
        folder.write_flow(big)
    assert folder.lost == 2
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "CANNOT WRITE traffic.flow" in caplog.text
    folder.write_flow(last)  # there is room again
    assert folder.path
    assert flows_in(folder.path) == [first.id, last.id]


@pytest.mark.parametrize("kind", ["below a file", "a file"])
def test_a_root_that_cannot_be_a_folder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    (tmp_path / "taken").write_text("x")
    folder = folder_in(tmp_path / "taken" / "captures" if "below" in kind else tmp_path / "taken")
    folder.write_flow(tflow.tflow())
    folder.write_lines("pairs.jsonl", [{}, {}])
    assert folder.lost == 3
    assert len(caplog.records) == 1
    assert "moontap_dir" in caplog.text


def test_a_folder_removed_while_the_run_goes_on(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    folder.write_flow(tflow.tflow())
    assert folder.path
    shutil.rmtree(folder.path)
    later = tflow.tflow()
    folder.write_flow(later)
    assert folder.lost == 0
    assert flows_in(folder.path) == [later.id]
    assert (folder.path / "run.json").exists()


def test_where_the_folder_was_made_again_already_there_is_no_third(tmp_path: Path) -> None:
    """A command asks for a place after somebody has removed the folder."""
    folder = folder_in(tmp_path)
    folder.write_flow(tflow.tflow())
    assert folder.path
    shutil.rmtree(folder.path)
    again = folder.place()
    (again / "cut.flow").write_bytes(b"")
    folder.write_flow(later := tflow.tflow())
    assert folder.path == again
    assert list(tmp_path.iterdir()) == [again]
    assert flows_in(again) == [later.id]
    assert (again / "run.json").exists()


def test_files_removed_from_the_folder_are_made_again_there(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    folder.write_flow(tflow.tflow())
    assert folder.path
    for file in folder.path.iterdir():
        file.unlink()
    folder.write_flow(later := tflow.tflow())
    assert list(tmp_path.iterdir()) == [folder.path]
    assert flows_in(folder.path) == [later.id]
    assert json.loads((folder.path / "run.json").read_text())["v"] == 1


def test_a_disk_full_before_the_first_record_makes_one_folder(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    with file_size_limit(0):
        for _ in range(5):
            folder.write_flow(tflow.tflow())
    assert folder.lost == 5
    folder.write_flow(tflow.tflow())
    assert len(list(tmp_path.iterdir())) == 1
    assert folder.path
    assert json.loads((folder.path / "run.json").read_text())["v"] == 1


def test_lines_are_utf_8_whatever_they_hold(tmp_path: Path) -> None:
    folder = folder_in(tmp_path)
    folder.write_lines("pairs.jsonl", [{"a": "cut \ud83d"}, {"a": "é"}])
    assert folder.path
    lines = (folder.path / "pairs.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["a"] for line in lines] == ["cut \ud83d", "é"]
