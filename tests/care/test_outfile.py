"""A new flow file: where it may be put, and that nothing else is ever replaced."""

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from moontap.capture.reader import FlowFile
from moontap.care.outfile import Refused, check, write_flows
from tests.saved import conversation, write

FLOWS = conversation(["pwd", "ls"])


def ids(path: Path) -> list[str]:
    return [flow.id for flow in FlowFile(path)]


WRITTEN = [flow.id for flow in FLOWS]


def test_a_new_file_in_a_new_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "out.flow"
    assert write_flows(path, FLOWS, force=False) == path.stat().st_size
    assert ids(path) == WRITTEN
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == ["out.flow"]


def test_a_file_is_replaced_only_by_force(tmp_path: Path) -> None:
    path = write(tmp_path / "out.flow", FLOWS[:1])
    with pytest.raises(Refused, match=r"out\.flow exists: --force replaces it"):
        write_flows(path, FLOWS, force=False)
    assert len(ids(path)) == 1
    write_flows(path, FlowFile(path), force=True)
    assert len(ids(path)) == 1
    write_flows(path, FLOWS, force=True)
    assert ids(path) == WRITTEN


def fifo(path: Path) -> None:
    os.mkfifo(path)


def unix_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # its name may be 108 bytes long at most
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    finally:
        os.chdir(here)


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("linked", [False, True], ids=["itself", "by a link"])
@pytest.mark.parametrize("make", [fifo, unix_socket])
def test_what_is_no_file_is_never_replaced(
    tmp_path: Path, make: Callable[[Path], None], linked: bool, force: bool
) -> None:
    path = there = tmp_path / "there"
    make(there)
    if linked:
        path = tmp_path / "link"
        path.symlink_to(there)
    before = there.stat()
    for act in (check, lambda path, force: write_flows(path, FLOWS, force=force)):
        with pytest.raises(Refused, match="is a pipe or device: name a file"):
            act(path, force=force)
    assert (there.stat().st_ino, there.stat().st_mode) == (before.st_ino, before.st_mode)
    assert path.is_symlink() is linked


def test_a_link_stays_and_its_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    target, link = write(tmp_path / "far" / "kept.flow", FLOWS[:1]), tmp_path / "out.flow"
    link.symlink_to(Path("far") / "kept.flow")
    with pytest.raises(Refused, match=r"out\.flow exists: --force replaces it"):
        write_flows(link, FLOWS, force=False)
    write_flows(link, FLOWS, force=True)
    assert link.is_symlink()
    assert ids(target) == WRITTEN
    assert os.listdir(target.parent) == ["kept.flow"]


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("below", [False, True], ids=["itself", "below it"])
def test_a_link_to_nothing_is_not_followed(tmp_path: Path, below: bool, force: bool) -> None:
    link = tmp_path / "out.flow"
    link.symlink_to(tmp_path / "new.flow")
    with pytest.raises(Refused, match=r"out\.flow is a link to nothing: name"):
        write_flows(link / "x.flow" if below else link, FLOWS, force=force)
    assert os.listdir(tmp_path) == ["out.flow"]


@pytest.mark.parametrize("name", ["it.flow", "folder/../it.flow", "soft.flow", "hard.flow"])
def test_no_input_is_replaced(tmp_path: Path, name: str) -> None:
    there = write(tmp_path / "it.flow", FLOWS[:1])
    (tmp_path / "folder").mkdir()
    (tmp_path / "soft.flow").symlink_to("it.flow")
    os.link(there, tmp_path / "hard.flow")
    other = write(tmp_path / "other.flow", FLOWS[:1])
    given = [None, tmp_path / "gone", str(there)]
    for force in (False, True):
        with pytest.raises(Refused, match="is an input: name another file to write"):
            check(tmp_path / name, force=force, given=given)
    check(other, force=True, given=given)


def test_standard_output_is_no_file_to_write() -> None:
    with pytest.raises(Refused, match=r"^- would be standard output: name a file$"):
        check(Path("-"), force=True)


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b", "a\0b/c.flow"])
def test_what_is_no_name_is_refused(tmp_path: Path, name: str) -> None:
    for force in (False, True):
        with pytest.raises(Refused, match="cannot be written: no name holds such a character"):
            write_flows(tmp_path / name, FLOWS, force=force)
    assert not list(tmp_path.iterdir())


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "out.flow"
    link.symlink_to(link)
    with pytest.raises(Refused):
        write_flows(link, FLOWS, force=False)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("folder", "is a folder: name a file in it"),
        ("file/out.flow", "file is a file: name a folder for it"),
        ("x" * 300, "cannot be written: File name too long"),
    ],
    ids=["a folder", "below a file", "a name too long"],
)
def test_what_stands_in_the_way_is_said(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    for force in (False, True):
        with pytest.raises(Refused, match=said):
            check(tmp_path / name, force=force)
