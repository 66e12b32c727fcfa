"""Saved flows opened for a command: what is read, what is said of the rest, and the bar."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from moontap.commands import UsageError
from moontap.commands.saved import Saved
from tests.cli.commands import Moontap
from tests.saved import conversation, record, write

FLOWS = conversation(["pwd", "ls"])
IDS = [flow.id for flow in FLOWS]

READ = """
import sys
from moontap.commands.saved import Saved
saved = Saved("pairs", sys.argv[2:], patience=float(sys.argv[1]))
print(sum(1 for _ in saved))
"""


def test_the_files_one_after_the_other(tmp_path: Path) -> None:
    paths = [write(tmp_path / name, FLOWS) for name in ("a.flow", "b.flow")]
    saved = Saved("pairs", paths)
    assert [flow.id for flow in saved] == IDS * 2
    assert [(path, len(list(flows))) for path, flows in saved.each()] == [(p, 3) for p in paths]
    assert saved.close() == 0


def test_what_is_lost_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "a.flow", FLOWS)
    with path.open("ab") as file:
        file.write(record(FLOWS[0])[:100])
    size = path.stat().st_size - 100
    other = tmp_path / "notes.txt"
    other.write_text("hello")
    saved = Saved("pairs", [path, other])
    assert len(list(saved)) == saved.count == 3
    assert saved.close() == 2
    assert capsys.readouterr().err.splitlines() == [
        f"moontap pairs: {path}: left out 1 damaged record (100 bytes, from byte {size:,} on); "
        "3 readable exchanges were used",
        f"moontap pairs: {other} is not a flow file: give mitmproxy's format (traffic.flow), "
        "a capture folder, or a HAR",
    ]


def test_nothing_readable_is_wrong_usage(tmp_path: Path) -> None:
    for name in ("notes.txt", "more.txt"):
        (tmp_path / name).write_text("hello")
    with pytest.raises(UsageError, match=r"notes\.txt is not a flow file"):
        list(Saved("pairs", [tmp_path / "notes.txt"]))
    with pytest.raises(UsageError, match=r"HAR \(and 1 more like it\)"):
        list(Saved("pairs", [tmp_path / "notes.txt", tmp_path / "more.txt"]))
    with pytest.raises(UsageError, match="no such file or folder"):
        Saved("pairs", [tmp_path / "none"])
    with pytest.raises(UsageError, match="holds no flow file"):
        Saved("pairs", [tmp_path])


def test_what_could_not_be_made_sense_of_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "a.flow", FLOWS)
    saved = Saved("pairs", [path])
    list(saved)
    saved.unread(path, [])
    assert saved.close() == 0
    saved.unread(path, ["one", "two\x1b[2J", "three", "four", "five"])
    assert saved.close() == 2
    assert capsys.readouterr().err.splitlines() == [
        f"moontap pairs: {path}: not read: one",
        f"moontap pairs: {path}: not read: two\\x1b[2J",
        f"moontap pairs: {path}: not read: three",
        f"moontap pairs: {path}: and 2 more that were not read",
    ]


def test_an_empty_file_will_do_or_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, empty = write(tmp_path / "a.flow", FLOWS), write(tmp_path / "none.flow", [])
    for will_do in (True, False):
        saved = Saved("show", [path, empty], empty=will_do)
        assert len(list(saved)) == 3
        assert saved.close() == (0 if will_do else 2)
    assert capsys.readouterr().err == f"moontap show: {empty}: is empty\n"
    with pytest.raises(UsageError, match=r"none\.flow: is empty"):
        list(Saved("show", [empty], empty=False))


@pytest.mark.parametrize(("patience", "shown"), [(0, True), (60, False)])
def test_a_bar_where_it_takes_long_and_a_person_looks_on(
    moontap_command: Moontap, tmp_path: Path, patience: int, shown: bool
) -> None:
    path = write(tmp_path / "a.flow", FLOWS * 400)
    person, screen = pty.openpty()
    command = [sys.executable, "-c", READ, str(patience), str(path)]
    environment = moontap_command.environment | {"TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=screen, text=True
    ) as process:
        os.close(screen)
        seen = _all(person)
        assert process.stdout
        assert process.stdout.read() == "1200\n"
    assert process.returncode == 0
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen)
    assert bool(re.search(r"reading .*/[\d.]+ [KM]iB", text)) is shown
    if shown:
        assert seen.rstrip("\r\n").endswith("\x1b[2K")  # and is gone at the end
    else:
        assert text == ""


def _all(terminal: int) -> str:
    """What is written to it until nobody writes any more."""
    seen = b""
    try:
        while data := os.read(terminal, 65536):
            seen += data
    except OSError:  # Linux says so that the other side is closed
        pass
    finally:
        os.close(terminal)
    return seen.decode()


def test_no_bar_where_nobody_looks_on(moontap_command: Moontap, tmp_path: Path) -> None:
    path = write(tmp_path / "a.flow", FLOWS)
    done = subprocess.run(
        [sys.executable, "-c", READ, "0", str(path)],
        env=moontap_command.environment,
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("3\n", "")
