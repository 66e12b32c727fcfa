from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moontap.capture.recorder import Recorder
from moontap.rules import Rules
from moontap.testing import assert_no_findings, findings_of
from moontap.testing.findings import LOG
from moontap.testing.sources import logged
from tests.findings.rig import Ex, flows, message, result, said, use, user
from tests.saved import write


def line(severity: str = "warning", code: str = "no-progress", **more: Any) -> dict[str, Any]:
    return {
        "code": code,
        "severity": severity,
        "message": "pwd was called 5 times.",
        "remedy": "Stop it.",
        "evidence": {"exchange": 7},
    } | more


class Tap:
    """What is needed of one: its findings are complete once it is closed."""

    def __init__(self, *lines: dict[str, Any], folder: Path | None = Path("x")) -> None:
        self._lines = list(lines)
        self.closed = False
        self.folder = folder

    @property
    def findings(self) -> list[dict[str, Any]]:
        return self._lines if self.closed else []

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("lines", "more", "wrong"),
    [
        ([], {}, 0),
        ([line("info")], {}, 0),
        ([line("info")], {"at_least": "info"}, 1),
        ([line(), line("error")], {}, 2),
        ([line(), line("error")], {"at_least": "error"}, 1),
        ([line(), line("error")], {"ignore": ["no-progress"]}, 0),
    ],
)
def test_no_findings(lines: list[dict[str, Any]], more: dict[str, Any], wrong: int) -> None:
    for source in (lines, Tap(*lines)):
        if wrong:
            with pytest.raises(AssertionError, match=rf"^{wrong} findings? of \w+ or above\n"):
                assert_no_findings(source, **more)
        else:
            assert_no_findings(source, **more)


def test_what_was_found_is_shown_by_code() -> None:
    other = line("error", "id-reused", message="\x1b[2J" + "x" * 500, remedy="")
    lines = [line(), other, *[line("error")] * 9]
    with pytest.raises(AssertionError) as error:
        assert_no_findings(lines)
    said = str(error.value).splitlines()
    assert said[:7] == [
        "11 findings of warning or above",
        "error no-progress (10 times)",
        *["    exchange 7: pwd was called 5 times."] * 3,
        "    and 7 more",
        "    do: Stop it.",
    ]
    assert said[7] == "error id-reused"
    assert said[8].startswith(r"    exchange 7: \x1b[2Jxxx")
    assert len(said) == 9
    assert max(map(len, said)) < 260


def test_a_tap_that_nothing_came_through_proves_nothing() -> None:
    with pytest.raises(AssertionError, match="no request came through the tap"):
        assert_no_findings(Tap(folder=None))


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ({"at_least": "fatal"}, "at_least is one of info, warning, error, not 'fatal'"),
        ({"ignore": "no-progress"}, r"ignore is a list of codes: \['no-progress'\]"),
        ({"ignore": ["no-progres"]}, "ignore: no finding is called no-progres"),
    ],
)
def test_a_slip_of_the_pen_does_not_pass(more: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        assert_no_findings([], **more)


def test_a_capture_and_its_flows_say_the_same(tmp_path: Path) -> None:
    history: list[Any] = [user("go")]
    exchanges = []
    for number in range(6):
        exchanges.append(Ex(list(history), message(use(f"pwd_{number}"))))
        history += [said(use(f"pwd_{number}")), user(result(f"pwd_{number}"))]
    saved = flows(*exchanges)
    file = write(tmp_path / "x.flow", saved)
    recorder = Recorder(tmp_path / "captures", Rules(), dict)
    for flow in saved:
        recorder.keep(flow)
        recorder.log()
    recorder.close()
    assert recorder.path
    made = findings_of(recorder.path)
    assert [one["evidence"]["count"] for one in made if one["code"] == "no-progress"] == [3, 5]
    assert made == logged(recorder.path, LOG)
    assert made == json.loads(json.dumps(findings_of(file)))
    with pytest.raises(AssertionError, match="no-progress"):
        assert_no_findings(file)
    with pytest.raises(FileNotFoundError):
        findings_of(tmp_path / "nothing")
