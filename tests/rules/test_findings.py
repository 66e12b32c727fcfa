"""The section `findings`."""

from __future__ import annotations

from pathlib import Path

import pytest

from moontap.findings.types import Severity
from moontap.rules import FindingRules, RulesError, load_rules


def read(folder: Path, text: str) -> FindingRules:
    path = folder / "rules.yaml"
    path.write_text(f"findings:\n  {text}\n")
    return load_rules(str(path)).findings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # `off` is a boolean to YAML 1.1, as a key as well.
        (
            "off: [no-progress, stream-slow]",
            FindingRules(frozenset({"no-progress", "stream-slow"})),
        ),
        ("off: []", FindingRules()),
        ("off:", FindingRules()),
        ("severity: {stream-slow: error}", FindingRules(severity={"stream-slow": Severity.ERROR})),
        ("severity:", FindingRules()),
        ("first_byte_s: 5", FindingRules(first_byte_s=5.0)),
        ("silence_s: 0.5", FindingRules(silence_s=0.5)),
        ("{}", FindingRules()),
    ],
)
def test_what_may_be_said(tmp_path: Path, text: str, expected: FindingRules) -> None:
    assert read(tmp_path, text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("off: [no-progres]", ":2: 'no-progres' is no value for 'findings.off[0]'; known: "),
        ("off: no-progress", ":2: 'findings.off' must be a list, is text; start each entry with"),
        (
            "severity: {no-such: info}",
            ":2: unknown key 'no-such' under 'findings.severity'; known:",
        ),
        (
            "severity: {stream-slow: bad}",
            ":2: 'bad' is no value for 'findings.severity.stream-slow'",
        ),
        ("severity: {stream-slow: off}", ":2: 'findings.severity.stream-slow' must be text, is"),
        ("first_byte_s: soon", ":2: 'findings.first_byte_s' must be a number, is text; write a"),
        ("silence_s: -1", ":2: 'findings.silence_s' must be at least 0, is -1; give 0 or more"),
        ("on: []", ":2: a key under 'findings' must be text, is true or false; put it in single"),
    ],
)
def test_mistakes_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RulesError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'rules.yaml'}{message}")


def test_a_near_code_is_proposed(tmp_path: Path) -> None:
    with pytest.raises(RulesError, match="did you mean 'no-progress'\\?"):
        read(tmp_path, "off: [no-progres]")
