"""The rules that saved flows are judged by: those given, else those of the run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moontap.capture import runfile
from moontap.commands import UsageError
from moontap.commands.inforce import rules_for

OFF = "findings: {off: [no-progress]}\n"


def capture(folder: Path, rules: Path | None) -> Path:
    folder.mkdir()
    noted = runfile.noted(str(rules) if rules else None)
    (folder / "run.json").write_text(json.dumps({"v": 1, "rules": noted}))
    return folder / "traffic.flow"


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "rules.yaml"
    path.write_text(OFF)
    return path


def test_those_of_the_run(tmp_path: Path, rules: Path) -> None:
    file = capture(tmp_path / "run", rules)
    for path in (file, file.parent):
        found, note = rules_for([path], None)
        assert found.findings.off == {"no-progress"}
        assert note == "rules: rules.yaml, as in the run"


def test_those_given_win_and_a_bad_one_is_an_error(tmp_path: Path, rules: Path) -> None:
    file = capture(tmp_path / "run", rules)
    other = tmp_path / "other.yaml"
    other.write_text("findings: {off: [id-reused]}\n")
    found, note = rules_for([file], str(other))
    assert found.findings.off == {"id-reused"}
    assert note is None
    other.write_text("findings: {of: []}\n")
    with pytest.raises(UsageError, match=r"--rules: .*other\.yaml:1"):
        rules_for([], str(other))


@pytest.mark.parametrize(
    ("text", "off", "note"),
    [
        (None, set(), "rules: the run had rules.yaml, which is not here: results may differ"),
        ("findings: {of: []}", set(), "rules: the run had rules.yaml, which cannot be used ("),
        ("findings: {off: [id-empty]}", {"id-empty"}, "rules: rules.yaml, which has changed since"),
    ],
)
def test_what_has_become_of_them(
    tmp_path: Path, rules: Path, text: str | None, off: set[str], note: str
) -> None:
    file = capture(tmp_path / "run", rules)
    rules.unlink()
    if text is not None:
        rules.write_text(text)
    found, said = rules_for([file], None)
    assert found.findings.off == off
    assert (said or "").startswith(note)


def test_runs_that_had_none_or_different_ones(tmp_path: Path, rules: Path) -> None:
    one, none = capture(tmp_path / "one", rules), capture(tmp_path / "none", None)
    assert rules_for([none, tmp_path / "a.flow"], None)[1] is None
    found, note = rules_for([one, none], None)
    assert found.findings.off == frozenset()
    assert (note or "").startswith("rules: the runs had different ones (rules.yaml, none), none")
