"""What goes wrong in a run, with real processes: traffic goes on, finished exchanges are kept.

A `kill -9`, a disk that is full, a folder that cannot be, a client that leaves, an upstream that
breaks off.
"""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

import httpx
import pytest

from tests.e2e import rig
from tests.e2e.talk import Talk

CANNOT_WRITE = "CANNOT WRITE"


def script(calls: int = 8, **more: Any) -> dict[str, Any]:
    steps = [
        {"text": "Next.", "calls": [{"name": "Bash", "arguments": {"command": f"echo {n}"}}]}
        for n in range(calls)
    ]
    return {"steps": steps, "final": "The task is done.", **more}


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def start(
    stack: ExitStack, folder: Path, conf: Path, script: dict[str, Any], captures: Path | None = None
) -> rig.Tap:
    standin = stack.enter_context(rig.standin(folder, script))
    mode = [f"reverse:{standin.url}"]
    return stack.enter_context(
        rig.tap(folder, conf, mode, captures=captures, moontap_rewrite="all")
    )


def test_a_killed_process_loses_no_finished_exchange(
    stack: ExitStack, tmp_path: Path, conf: Path
) -> None:
    stall = {"at_request": 4, "kind": "stall", "ms": 60_000, "after_events": 4}
    tap = start(stack, tmp_path, conf, script(faults=[stall]))
    talk = stack.enter_context(Talk(tap.url))
    for _ in range(3):
        assert talk.turn()
    with talk.reply() as events:
        assert next(events)["type"] == "message_start"
        tap.process.kill()
        with pytest.raises(httpx.TransportError):
            list(events)

    flows = rig.saved_flows(tap.captures)
    assert len(flows) == 3
    assert not any("moontap.incomplete" in flow.metadata for flow in flows)
    live = (rig.run_folder(tap.captures) / "pairs.jsonl").read_bytes().splitlines()
    assert [line["result"] for line in rig.saved_pairs(tap.captures)] == [
        "result 1 of echo 0",
        "result 2 of echo 1",
    ]
    again = rig.replay(tmp_path, conf, rig.run_folder(tap.captures) / "traffic.flow")
    rebuilt = (again / "pairs.jsonl").read_bytes().splitlines()
    # The third call was delivered, and its result was on the way when the end came.
    assert rebuilt[:-1] == live
    assert b'"status":"unanswered"' in rebuilt[-1]


# A full disk


class Disk(Protocol):
    """A place for captures that can run full and be free again while the tap runs."""

    folder: Path

    def fill(self, tap: rig.Tap) -> None: ...
    def free(self, tap: rig.Tap) -> None: ...


class SizeLimit:
    """A limit on the size of the process's files: the write that passes it stops half-way, as on
    a disk that runs full, and the next one fails. Needs no rights."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, tap: rig.Tap) -> None:
        size = (rig.run_folder(tap.captures) / "traffic.flow").stat().st_size
        assert size > 10 * tap.process.log.stat().st_size  # the limit is for its log as well
        self._limit(tap, size + 5000)

    def free(self, tap: rig.Tap) -> None:
        self._limit(tap, resource.RLIM_INFINITY)

    def _limit(self, tap: rig.Tap, size: int) -> None:
        hard = resource.RLIM_INFINITY
        resource.prlimit(tap.process.pid, resource.RLIMIT_FSIZE, (size, hard))


class SmallDisk:
    """A file system in memory, of 1 MB, filled up by another file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self, tap: rig.Tap) -> None:
        # Unbuffered, to the last byte; then room for half a record.
        with self._filler.open("wb", buffering=0) as file:
            try:
                while file.write(b"x" * 4096):
                    pass
            except OSError:
                size = file.tell()
            file.truncate(size - 8192)

    def free(self, tap: rig.Tap) -> None:
        self._filler.unlink()


@contextmanager
def small_disk(folder: Path) -> Iterator[SmallDisk]:
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"no right to mount a file system: {mounted.stderr.strip()}")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.fixture(params=["size limit", "small disk"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    folder = tmp_path / "disk"
    if request.param == "small disk":
        if os.geteuid():
            pytest.skip("only root may mount a file system; the case with a size limit has run")
        with small_disk(folder) as disk:
            yield disk
    else:
        folder.mkdir()
        yield SizeLimit(folder)


def test_a_full_disk_stops_the_record_and_not_the_traffic(
    disk: Disk, tmp_path: Path, conf: Path
) -> None:
    captures = disk.folder / "captures"
    with ExitStack() as stack:
        tap = start(stack, tmp_path, conf, script(8), captures=captures)
        talk = stack.enter_context(Talk(tap.url, padding="p" * 50_000))
        assert all(talk.turn() for _ in range(2))
        disk.fill(tap)
        assert all(talk.turn() for _ in range(3))
        during = len(rig.saved_flows(captures))  # readable to its end, though the disk is full
        assert CANNOT_WRITE in tap.process.output
        disk.free(tap)
        assert talk.to_the_end() == 4
        assert talk.text == "The task is done."
        assert tap.process.stop() == 0

        said = tap.process.output
        assert said.count(CANNOT_WRITE) == 1
        flows = rig.saved_flows(captures)
        assert during == 2
        assert len(flows) == 2 + 4
        assert f"{9 - len(flows)} records could NOT be written" in said
        # No line names a flow that is not there.
        kept = {flow.id for flow in flows}
        lines = [*rig.saved_pairs(captures), *rig.saved_findings(captures)]
        named = {line.get(name) for line in lines for name in ("call_flow", "result_flow", "flow")}
        assert named - {None} <= kept


def test_a_folder_that_cannot_be_made_stops_nothing(
    stack: ExitStack, tmp_path: Path, conf: Path
) -> None:
    (tmp_path / "file").write_text("not a folder")
    tap = start(stack, tmp_path, conf, script(3), captures=tmp_path / "file" / "captures")
    talk = stack.enter_context(Talk(tap.url))
    assert talk.to_the_end() == 4
    assert talk.text == "The task is done."
    assert tap.process.stop() == 0
    said = tap.process.output
    assert said.count(CANNOT_WRITE) == 1
    assert "file/captures" in said
    assert "4 records could NOT be written" in said
    assert (tmp_path / "file").read_text() == "not a folder"


def test_what_breaks_off_is_kept_as_far_as_it_came(
    stack: ExitStack, tmp_path: Path, conf: Path
) -> None:
    faults = [
        {"at_request": 2, "kind": "cut", "after_events": 8},
        {"at_request": 4, "kind": "stall", "ms": 60_000, "after_events": 6},
    ]
    tap = start(stack, tmp_path, conf, script(3, faults=faults))
    talk = stack.enter_context(Talk(tap.url))
    assert talk.turn()
    got: list[str] = []
    with pytest.raises(httpx.RemoteProtocolError), talk.reply() as events:
        got.extend(event["type"] for event in events)  # upstream breaks off
    assert len(got) == 8
    assert talk.turn()
    with talk.reply() as events:
        got = [next(events)["type"] for _ in range(6)]  # this client leaves
    assert got[0] == "message_start"
    assert talk.to_the_end() == 2
    assert talk.text == "The task is done."
    assert tap.process.stop() == 0

    flows = rig.saved_flows(tap.captures)
    kept = [
        (flow.response.raw_content or b"").count(b"\n\n")
        for flow in flows
        if flow.response and flow.metadata.get("moontap.incomplete")
    ]
    assert kept == [8, 6]
    assert len(flows) == 6
    assert [(line["status"], line["result"]) for line in rig.saved_pairs(tap.captures)] == [
        ("ok", "result 1 of echo 0"),
        ("ok", "result 2 of echo 1"),
        ("ok", "result 3 of echo 2"),
    ]
    live = rig.run_folder(tap.captures)
    again = rig.replay(tmp_path, conf, live / "traffic.flow")
    assert (again / "pairs.jsonl").read_bytes() == (live / "pairs.jsonl").read_bytes()
