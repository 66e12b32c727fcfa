"""What a run keeps of exchanges that cannot be written."""

import json
from pathlib import Path
from typing import Any

from moontap.capture.recorder import Recorder
from moontap.rules import Rules
from tests.capture.test_folder import file_size_limit, flows_in
from tests.findings.rig import Ex, flows, message, result, said, text, use, user


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
