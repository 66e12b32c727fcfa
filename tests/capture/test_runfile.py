"""run.json: which rules a run had, found again from any folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moontap.capture import runfile


def test_a_rules_file_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rules.yaml").write_text("tools: {}\n")
    monkeypatch.chdir(tmp_path)
    noted = runfile.noted("rules.yaml")
    assert noted
    assert noted["file"] == str(tmp_path / "rules.yaml")
    monkeypatch.chdir("/")
    (tmp_path / "run.json").write_text(
        json.dumps({"rules": noted, "options": {"moontap_rules": "rules.yaml"}})
    )
    file = runfile.rules_file(runfile.read(tmp_path))
    assert file
    assert (file.path, file.is_changed) == (tmp_path / "rules.yaml", False)
    file.path.write_text("tools: {pay: [x]}\n")
    assert file.is_changed


@pytest.mark.parametrize(
    ("run", "path"),
    [
        ({}, None),
        ({"rules": None, "options": {"moontap_rules": None}}, None),
        ({"options": {"moontap_rules": "rules.yaml"}}, "rules.yaml"),  # of an older moontap
        ({"rules": {"file": 7}, "options": [1]}, None),
        ({"rules": {"file": "/r.yaml", "sha256": None}}, "/r.yaml"),
    ],
)
def test_what_it_may_hold(run: dict[str, Any], path: str | None) -> None:
    file = runfile.rules_file(run)
    assert (str(file.path) if file else None) == path
    assert not (file and file.is_changed)


@pytest.mark.parametrize("text", ["", "[1]", "{", "[" * 100_000])
def test_no_file_of_ours_says_nothing(tmp_path: Path, text: str) -> None:
    assert runfile.read(tmp_path) == {}
    (tmp_path / "run.json").write_text(text)
    assert runfile.read(tmp_path) == {}


def test_without_rules_there_is_nothing_to_note() -> None:
    assert runfile.noted(None) is None
    assert runfile.noted("") is None
