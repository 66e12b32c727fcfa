"""What a run keeps of exchanges that cannot be written."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from mitmproxy import http

from moontap.capture import metadata
from moontap.capture.pairlog import Line, Logged
from moontap.capture.recorder import Recorder, copy_to_save
from moontap.findings.types import Finding
from moontap.rules import Rules
from tests.capture.test_folder import file_size_limit, flows_in
from tests.findings.rig import Ex, flows, message, result, said, text, use, user
from tests.saved import conversation


def lines(path: Path, name: str) -> list[dict[str, Any]]:
    file = path / name
    return [json.loads(one) for one in file.read_text().splitlines()] if file.exists() else []


def test_no_line_names_a_flow_that_is_not_there(tmp_path: Path) -> None:
    big = "x" * 200_000
    exchanges = flows(
        Ex([user("a"), said("hm"), user(result("o1"))], message(text("ok"))),
        Ex([user("b"), said("hm"), user(result("o2", big))], message(use("lost"))),
        Ex(
            [
                user("b"),
                said("hm"),
                user(result("o2", "y")),
                said(use("lost")),
                user(result("lost")),
            ],
            message(text("ok")),
        ),
    )
    recorder = Recorder(tmp_path, Rules(), dict)
    with file_size_limit(50_000):
        for flow in exchanges:
            recorder.keep(flow)
            recorder.log()
    recorder.close()
    assert recorder.path
    kept = flows_in(recorder.path)
    assert kept == ["flow-1", "flow-3"]
    assert recorder.counts.lost == 1
    pairs, findings = lines(recorder.path, "pairs.jsonl"), lines(recorder.path, "findings.jsonl")
    named = {one[key] for one in pairs for key in ("call_flow", "result_flow")}
    assert named | {one["flow"] for one in findings} <= {None, *kept}
    assert pairs[0]["status"] == "orphan"
    assert findings[0]["code"] == "result-orphan"
    assert recorder.counts.findings["result-orphan"] >= 2  # warned of and counted all the same


class Heard:
    """Writes down what it is told, and breaks where it is asked to."""

    def __init__(self, *, broken: bool = False) -> None:
        self.told: list[tuple[str, object]] = []
        self._broken = broken

    def _tell(self, what: str, which: object) -> None:
        self.told.append((what, which))
        if self._broken:
            raise RuntimeError("no list")

    def exchange(self, logged: Logged, number: int, flow: http.HTTPFlow) -> None:
        assert logged.exchange.flow.id == flow.id
        assert logged.exchange.flow is not flow
        self._tell("exchange", number)

    def line(self, line: Line) -> None:
        self._tell("line", line["status"])

    def finding(self, finding: Finding) -> None:
        self._tell("finding", finding.code)


def test_an_observer_hears_in_the_order_of_the_record() -> None:
    recorder = Recorder(None, Rules(), dict)
    recorder.observer = heard = Heard()
    for flow in conversation(["pwd", "ls"]):
        recorder.keep(flow)
        recorder.log()
    recorder.close()
    assert heard.told == [
        ("exchange", 1),
        ("exchange", 2),
        ("line", "ok"),
        ("finding", "id-reused"),
        ("exchange", 3),
        ("line", "ok"),
    ]


def test_a_comment_is_never_copied_without_whose_it_is() -> None:
    """`moontap_notes` is switched while another thread saves exchanges."""
    flow = conversation(["pwd"])[0]
    with metadata.NOTING, ThreadPoolExecutor(1) as saves:
        flow.comment = "Bash"
        saved = saves.submit(copy_to_save, flow)
        with pytest.raises(TimeoutError):
            saved.result(0.05)
        flow.metadata[metadata.NOTED] = [["Bash", ""]]
        metadata.NOTING.release()
        assert saved.result(5).comment == ""
        metadata.NOTING.acquire()


def test_an_observer_that_breaks_costs_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    written = []
    for name, observer in (("with", Heard(broken=True)), ("without", None)):
        recorder = Recorder(tmp_path / name, Rules(), dict)
        recorder.observer = observer
        for flow in conversation(["pwd", "ls"]):
            recorder.keep(flow)
            recorder.log()
        recorder.close()
        assert recorder.counts.lost == 0
        assert recorder.path
        names = ("pairs.jsonl", "findings.jsonl")
        written.append([lines(recorder.path, one) for one in names])
        assert len(flows_in(recorder.path)) == 3
    assert written[0] == written[1]
    assert caplog.text.count("the flow list could not be written to") == 1
