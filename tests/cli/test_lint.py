"""`moontap lint`: what it prints, and how it ends."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from moontap import cli
from tests.evidence import documents
from tests.evidence.documents import flow_file, joined
from tests.samples import dump

KEY = "sk-made-up-7f3kq9z2m4x8c1v6b5n0"
LOST = joined(documents.noted_transcript(6))
CLEAN = joined(documents.noted_transcript(2, lost=False))
# The third result names no call: an error; nothing else is wrong.
ORPHAN = dump(
    [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "ok"},
        {"role": "tool", "tool_call_id": "a%b", "content": "x"},
    ]
)


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: str, **written: bytes) -> tuple[int, str, str]:
        paths = []
        for name, data in written.items():
            path = tmp_path / name
            path.write_bytes(data)
            paths.append(str(path))
        code = cli.main(["lint", *arguments, *paths])
        out, err = capsys.readouterr()
        return code, out.replace(str(tmp_path), "TMP"), err.replace(str(tmp_path), "TMP")

    return run


def test_the_report_says_what_it_took_the_file_for_and_the_worst_first(run: Any) -> None:
    code, out, err = run(lost=LOST)
    assert (code, err) == (1, "")
    head, *rest = out.splitlines()
    assert head == "TMP/lost: a transcript of Claude Code, 7 exchanges"
    causes = [line.split()[:2] for line in rest if line.startswith("  ") and line[2] != " "]
    levels = [level for level, _ in causes if level in ("error", "warning", "info")]
    assert levels == sorted(levels, key=["error", "warning", "info"].index)
    assert ["error", "pair-dropped-by-client"] in causes
    assert "see docs/findings.md#pair-dropped-by-client" in out
    assert "not checked (needs a reply as event stream): " in out


@pytest.mark.parametrize(
    ("level", "data", "expected"),
    [
        ([], LOST, 1),
        ([], CLEAN, 0),
        (["--fail-on", "never"], LOST, 0),
        (["--fail-on", "info"], LOST, 1),
        ([], CLEAN[:-20], 2),  # damage alone
        ([], LOST[:-20], 1),  # what was found counts for more
        (["--fail-on", "never"], LOST[:-20], 2),
        ([], b"nothing that is known", 2),
    ],
)
def test_exit_codes(run: Any, level: list[str], data: bytes, expected: int) -> None:
    code, _, err = run(*level, file=data)
    assert code == expected
    assert bool(err) is (data not in (LOST, CLEAN))


def test_a_warning_fails_only_where_it_is_asked_for(run: Any, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("findings: {severity: {result-orphan: warning}}\n")
    assert run("--rules", str(rules), body=ORPHAN)[0] == 0
    assert run("--rules", str(rules), "--fail-on", "warning", body=ORPHAN)[0] == 1


def test_one_json_object_for_all_inputs(run: Any) -> None:
    code, out, err = run("--json", a=LOST, b=CLEAN, c=b"?", d=LOST[:-20])
    assert code == 1
    whole = json.loads(out)
    assert [one["kind"] for one in whole["inputs"]] == ["claude-transcript"] * 3
    first, clean, cut = whole["inputs"]
    assert clean["findings"] == []
    assert [one["line"] for one in cut["damage"]] == [LOST.count(b"\n")]
    assert whole["unreadable"][0].startswith("TMP/c: not known")
    finding = first["findings"][0]
    assert list(finding)[:4] == ["v", "code", "severity", "party"]
    assert (finding["file"], finding["flow"], finding["v"]) == (first["file"], None, 1)
    assert isinstance(finding["line"], int)
    assert {"code", "why"} == set(first["not_run"][0])
    assert err.count("\n") == 2


def test_annotations_are_escaped(run: Any) -> None:
    _, out, _ = run("--github", **{"odd,na:me%": ORPHAN})
    [line] = [one for one in out.splitlines() if "result-orphan" in one]
    assert line.startswith("::error file=TMP/odd%2Cna%3Ame%25,line=1,title=result-orphan::")
    assert "a%25b" in line
    _, out, _ = run("--github", cut=ORPHAN[:-5])
    assert "::warning file=TMP/cut,line=1,title=damaged::" in out


def test_flows_are_named_by_their_exchange(run: Any) -> None:
    code, out, _ = run("--json", flows=flow_file(documents.flows(5)))
    assert code == 1
    [one] = json.loads(out)["inputs"]
    assert (one["kind"], one["exchanges"]) == ("flows", 6)
    assert {finding["line"] for finding in one["findings"]} == {None}
    assert all(finding["flow"] for finding in one["findings"])


@pytest.mark.parametrize("data", [LOST, flow_file(documents.flows(5)), ORPHAN])
def test_standard_input(run: Any, monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    code, out, _ = run("-")
    assert code == 1
    assert out.startswith("standard input: ")


def test_keys_are_masked_and_control_characters_harmless(run: Any) -> None:
    odd = ORPHAN.replace(b"a%b", b"\\u001b[2J\\u0020" + KEY.encode())
    for how in ([], ["--json"], ["--github"]):
        code, out, err = run(*how, body=odd)
        assert code == 1
        assert KEY not in out + err
        assert "\x1b" not in out


@pytest.mark.parametrize(
    "arguments",
    [["-", "-"], ["--rules", "no-such.yaml", "x"], ["no-such-file"]],
)
def test_wrong_usage(run: Any, arguments: list[str]) -> None:
    code, _, err = run(*arguments)
    assert code == 2
    assert err.startswith("moontap lint: ")
    assert err.count("\n") == 1


def test_paths_of_the_rules_are_masked(run: Any, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("redact: {json_paths: ['$..command']}\n")
    shown = r"{\"command\":\"ls\""
    assert shown in run("--json", file=LOST)[1]
    assert shown not in run("--json", "--rules", str(rules), file=LOST)[1]


def test_a_folder_may_hold_other_things(run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "session"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(CLEAN)
    (folder / "agent-a.meta.json").write_text('{"agentType": "x"}')
    code, out, err = run(str(folder))
    assert (code, err) == (0, "")
    assert out.startswith("TMP/session/a.jsonl: a transcript of Claude Code")
    (folder / "a.jsonl").write_text("{}")
    code, _, err = run(str(folder))
    assert code == 2
    assert "none of its 2 files" in err
