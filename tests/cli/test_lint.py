"""`moontap lint`: what it prints, and how it ends."""

from __future__ import annotations

import gzip
import io
import json
import re
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from moontap import cli
from moontap.evidence import source, unpack
from moontap.evidence.examine import examine
from moontap.evidence.source import read
from moontap.report.lint import report
from moontap.rules import Rules
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


def test_the_report_says_what_it_took_the_file_for_and_causes_first(run: Any) -> None:
    code, out, err = run(lost=LOST)
    assert (code, err) == (1, "")
    head, *rest = out.splitlines()
    assert head == "TMP/lost: a transcript of Claude Code, 7 exchanges"
    causes = [line.split()[:2] for line in rest if line.startswith("  ") and line[2] != " "]
    codes = [code for level, code in causes if level in ("error", "warning", "info")]
    assert codes.index("id-reused") < codes.index("pair-dropped-by-client")
    assert codes.index("pair-dropped-by-client") < codes.index("no-progress")
    assert ["error", "pair-dropped-by-client"] in causes
    assert "see docs/findings.md#pair-dropped-by-client" in out
    assert out.count("The client dropped the call") == 3
    assert "    and 2 more (--all shows them)\n" in out
    [skipped] = [line for line in rest if "not checked" in line]
    assert re.search(r"^  not checked: \d+ checks, for want of .* \(--all names them\)$", skipped)


def test_all_is_all(run: Any) -> None:
    _, out, _ = run("--all", lost=LOST)
    assert out.count("The client dropped the call") == 5
    assert "more (--all" not in out
    assert "  not checked (needs a reply as event stream): " in out


def test_lines_are_whole_where_no_terminal_breaks_them(run: Any, tmp_path: Path) -> None:
    _, out, _ = run(**{"a" * 120: ORPHAN})
    assert f"TMP/{'a' * 120}: a messages array of Chat Completions\n" in out
    assert "    line 1, messages[2]: The result `a%b` in message 2 names a call that no" in out
    assert all(line[:1] != " " or line.rstrip() == line for line in out.splitlines())


def test_a_terminal_keeps_the_indent() -> None:
    examined = examine(read("body", ORPHAN), Rules())
    console = Console(width=60, force_terminal=True, color_system=None, file=io.StringIO())
    with console.capture() as captured:
        console.print(report(examined))
    _, *lines = captured.get().splitlines()
    assert max(map(len, lines)) <= 60
    assert all(line.startswith("  ") for line in lines)
    assert len([line for line in lines if line.startswith("    ")]) > 4


def test_rules_of_the_run_hold(run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "traffic.flow").write_bytes(flow_file(documents.flows(5)))
    (folder / "run.json").write_text('{"v": 1}')
    code, out, _ = run(str(folder))
    assert code == 1
    assert out.startswith("TMP/run/traffic.flow: a capture folder, 6 exchanges\n")
    _, out, _ = run(str(folder / "traffic.flow"))
    assert out.startswith("TMP/run/traffic.flow: a flow file, 6 exchanges\n")
    rules = tmp_path / "mine.yaml"
    rules.write_text("findings: {off: [id-reused, pair-dropped-by-client, no-progress]}\n")
    options = {"moontap_rules": str(rules)}
    (folder / "run.json").write_text(json.dumps({"v": 1, "options": options}))
    for given in (folder, folder / "traffic.flow"):
        _, out, _ = run(str(given))
        assert "mine.yaml, as in the run)" in out
        assert " pair-dropped-by-client  likely" not in out


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


def test_a_file_given_twice_counts_once(run: Any, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("lost")
    (tmp_path / "none.flow").touch()
    _, out, _ = run(str(tmp_path / "lost"), str(tmp_path / "link"), lost=LOST)
    assert out.count("a transcript of Claude Code") == 1
    gone, empty = str(tmp_path / "gone"), str(tmp_path / "none.flow")
    code, _, err = run(gone, gone, empty, empty)
    assert code == 2
    assert err.count("\n") == 2


def test_an_empty_capture_is_nothing_to_judge(run: Any, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    code, out, err = run(**{"traffic.flow": b""})
    assert (code, out, err) == (2, "", "moontap lint: TMP/traffic.flow: is empty\n")


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


NAME_TOO_LONG = "x" * 300


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (NAME_TOO_LONG, "file name too long"),
        (json.dumps([{"role": "user", "content": NAME_TOO_LONG}]), "`moontap lint -` reads it"),
        ('{"model":"kimi-k3"}', "`moontap lint -` reads it"),
        ("a\nb", "no such file or folder"),
    ],
)
@pytest.mark.parametrize("command", [["lint"], ["explain"], ["show", "x"], ["bundle"], ["replay"]])
def test_an_argument_that_is_no_path(
    capsys: pytest.CaptureFixture[str], command: list[str], name: str, words: str
) -> None:
    assert cli.main([*command, name]) == 2
    out, err = capsys.readouterr()
    assert (out, err.startswith(f"moontap {command[0]}: ")) == ("", True)
    assert words in err
    assert len(err) < 500


def test_what_unpacks_to_too_much_is_said(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "unpacked", partial(unpack.unpacked, most=1_000_000))
    code, out, err = run(bomb=gzip.compress(b" " * 9_000_000))
    assert (code, out) == (2, "")
    assert err.startswith("moontap lint: TMP/bomb: unpacks to more than 256 MB")
    assert err.count("\n") == 1


def test_no_line_of_a_report_is_a_command_to_a_workflow(run: Any) -> None:
    evil = "::error file=a::x ##[error]y"
    refused = {"type": "error", "error": {"type": "invalid_request_error", "message": evil}}
    leaked = ORPHAN.replace(b"a%b", evil.encode())
    for how in ([], ["--json"], ["--all"]):
        _, out, err = run(*how, a=dump(refused), b=leaked, c=leaked[:-5], d=evil.encode())
        assert "file=a" in out
        for line in (out + err).splitlines():
            assert not line.lstrip().startswith("::")
            assert "##[" not in line


def test_a_key_that_a_later_exchange_reveals_is_not_printed(run: Any) -> None:
    key = "Zq8vTfW3nB6yKpR1sXc9LmD4"
    first, *rest = documents.flows(5)
    said = f"no such key: {key}"
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": said}}
    assert first.response
    first.response.status_code = 401
    first.response.content = dump(error)
    first.response.headers["content-type"] = "application/json"
    for header in ("authorization", "x-api-key"):
        first.request.headers.pop(header, None)
    rest[-1].request.headers["x-api-key"] = key
    for data in (flow_file([first, *rest]), gzip.compress(flow_file([first, *rest]))):
        for how in ([], ["--json"], ["--github"]):
            _, out, err = run(*how, flows=data)
            assert "api-refused" in out
            assert ("no such key" in out) is (how != ["--github"])
            assert key not in out + err


def test_an_opaque_key_is_told_by_its_name_and_masked_everywhere(run: Any) -> None:
    key = "Zq8vTfW3nB6yKpR1sXc9LmD4"
    odd = [{"role": "user", "content": f"export MOONSHOT_API_KEY={key}"}, *json.loads(ORPHAN)]
    odd[-1] = {**odd[-1], "tool_call_id": key}
    for how in ([], ["--json"]):
        code, out, err = run(*how, body=dump(odd))
        assert code == 1
        assert key not in out + err


@pytest.mark.parametrize("orphans", [1000])
def test_many_findings_in_a_body_take_no_time_each(run: Any, orphans: int) -> None:
    said: list[dict[str, Any]] = []
    for n in range(orphans):
        block = {"type": "tool_result", "tool_use_id": f"o_{n}", "content": "x"}
        said += ({"role": "user", "content": [block]}, {"role": "assistant", "content": f"a{n}"})
    begun = time.process_time()
    _, out, _ = run("--json", body=dump({"max_tokens": 9, "messages": said}))
    took = time.process_time() - begun
    assert out.count('"code": "result-orphan",\n          "severity"') >= 100
    assert took < 4  # as it was: minutes
