"""The section `tools`."""

from __future__ import annotations

from pathlib import Path

import pytest

from moontap.rules import RulesError, ToolRules, load_rules


def read(folder: Path, text: str) -> ToolRules:
    path = folder / "rules.yaml"
    path.write_text(f"tools:\n  {text}\n")
    return load_rules(str(path)).tools


@pytest.mark.parametrize(
    ("tool", "expected"),
    [("Read", "read"), ("mcp__shop__buy", "pay"), ("Edit", "write"), ("x", None), ("read", None)],
)
def test_the_class_of_a_tool(tmp_path: Path, tool: str, expected: str | None) -> None:
    text = "{read: [Read], pay: ['mcp__shop__*'], write: [Edit, 'mcp__*'], none: }"
    assert read(tmp_path, text).of(tool) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("write: Edit", ":2: 'tools.write' must be a list, is text; start each entry with '- '"),
        ("write: [1]", ":2: 'tools.write[0]' must be text, is a whole number; put it in single"),
        ("- write", ":2: 'tools' must be keys with values, is a list; write 'key: value'"),
    ],
)
def test_mistakes_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RulesError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'rules.yaml'}{message}")
