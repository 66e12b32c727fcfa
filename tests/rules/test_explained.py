"""Every rule with its source; and the text is itself a file that says the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from moontap.rules import Rules, load_rules
from moontap.rules.explained import explained, sections_of

EVERYTHING = r"""redact:
  headers: [X-Team]
  patterns:
    - 'customer-\d{6}'
    - "tab\there"
  json_paths: ['$.a[?@.secret == true]']
limits: {result_bytes: 0}
replay:
  ignore: ['$.messages[0]']
  replace:
    - {pattern: 'in \d+s', with: "# 'soon': {}"}
    - pattern: 't: \d+'
  system: true
scrub:
  names: [张伟, 'on', "it's"]
  paths: ['C:\Users\al']
findings:
  off:
    - stream-slow
    - no-progress
  severity: {api-refused: info}
  first_byte_s: 90
  silence_s: 1.5
progress:
  thresholds: [2, 4]
  ignore:
    - tool: Bash
      arguments: [$.description]
    - patterns: ['\d+ms']
  exempt: [wait]
tools:
  pay: ['mcp__shop__*']
  'no': [x]
guard:
  classes: {pay: 2, 'no': 9}
  session: {minutes: 2.5}
"""


@pytest.mark.parametrize(
    "text",
    ["", EVERYTHING, "tools:\n", "guard: {session: {calls: null}}\n", "findings: {off: }\n"],
)
def test_it_is_a_file_that_says_the_same(tmp_path: Path, text: str) -> None:
    one, other = tmp_path / "one.yaml", tmp_path / "other.yaml"
    one.write_text(text)
    other.write_text(explained(str(one)))
    assert load_rules(str(other)) == load_rules(str(one))


def test_the_defaults_all_come_from_nowhere(tmp_path: Path) -> None:
    lines = explained(None).splitlines()
    assert lines[0].startswith("# The rules in force: the defaults.")
    assert all(line.endswith((":", "  # default")) for line in lines[1:])
    path = tmp_path / "rules.yaml"
    path.write_text("\n".join(lines))
    assert load_rules(str(path)) == Rules()


@pytest.mark.parametrize(
    ("line", "at"),
    [
        ("    - x-team", 2),
        (r"    - 'customer-\d{6}'", 4),
        (r'    - "tab\there"', 5),
        ("  result_bytes: 0", 7),
        (r"    - pattern: in \d+s", 11),
        ("      with: '# ''soon'': {}'", 11),
        ("      with: ''", None),
        ("  system: true", 13),
        ("    - 张伟", 15),
        ("    - 'on'", 15),
        # A set has no order of its own; each keeps its line.
        ("    - no-progress", 20),
        ("    - stream-slow", 19),
        ("    api-refused: info", 21),
        ("  first_byte_s: 90", 22),
        ("  silence_s: 1.5", 23),
        ("  thresholds: [2, 4]", 25),
        ("    - tool: Bash", 27),
        ("        - $.description", 28),
        ("    - tool: '*'", None),
        ("    - mcp__shop__*", 32),
        ("  remind: [3, 5, 8]", None),
        ("    pay: 2", 35),
        ("    write: 8", None),
        ("    minutes: 2.5", 36),
        ("    calls: null", None),
        ("  texts: []", None),
    ],
)
def test_where_each_comes_from(tmp_path: Path, line: str, at: int | None) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(EVERYTHING)
    source = f"{path}:{at}" if at else "default"
    assert f"{line}  # {source}" in explained(str(path)).splitlines()


@pytest.mark.parametrize(
    ("text", "expected"), [("", []), ("# x\n", []), ("guard:\nredact: {}\n", ["guard", "redact"])]
)
def test_the_sections_of_a_file(tmp_path: Path, text: str, expected: list[str]) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(text)
    assert sections_of(str(path)) == expected
