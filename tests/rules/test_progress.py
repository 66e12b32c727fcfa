"""The section `progress`: what may be said, and what then counts as equal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moontap.rules import ProgressRules, RulesError, load_rules


def read(folder: Path, text: str) -> ProgressRules:
    path = folder / "rules.yaml"
    path.write_text(f"progress:\n  {text}\n")
    return load_rules(str(path)).progress


@pytest.mark.parametrize(
    ("text", "thresholds", "exempt"),
    [
        ("{}", (3, 5, 8, 12), {"$web_search"}),
        ("thresholds: [2, 20]", (2, 20), {"$web_search"}),
        ("exempt: []", (3, 5, 8, 12), set()),
        ("exempt: [wait, 'mcp__*']", (3, 5, 8, 12), {"wait", "mcp__*"}),
    ],
)
def test_what_may_be_said(
    tmp_path: Path, text: str, thresholds: tuple[int, ...], exempt: set[str]
) -> None:
    rules = read(tmp_path, text)
    assert (rules.thresholds, set(rules.exempt)) == (thresholds, exempt)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("thresholds: [3, 3]", ":2: 3 does not rise; write them from the lowest on"),
        ("thresholds: [5, 3]", ":2: 3 does not rise; write them from the lowest on"),
        (
            "thresholds: [1]",
            ":2: 'progress.thresholds[0]' must be at least 2, is 1; give 2 or more",
        ),
        ("thresholds: []", ":2: 'progress.thresholds' is empty; name one count at least, or leave"),
        (
            "thresholds: 3",
            ":2: 'progress.thresholds' must be a list, is a whole number; start each",
        ),
        (
            "ignore: {tool: Bash}",
            ":2: 'progress.ignore' must be a list, is keys with values; start",
        ),
        ("ignore: [{tools: Bash}]", ":2: unknown key 'tools' under 'progress.ignore[0]'; known: "),
        (
            "ignore: [{results: [at]}]",
            ":2: 'at' is not a JSON path: a path starts with '$'; correct",
        ),
        (
            "ignore: [{tool: x}]",
            ":2: this entry ignores nothing; say what with 'arguments', 'resul",
        ),
        ("ignore: [{tool: x, results: []}]", ":2: this entry ignores nothing; say what with"),
        ("ignore: [{patterns: ['(']}]", ":2: '(' is not a regular expression: "),
        (
            "exempt: [1]",
            ":2: 'progress.exempt[0]' must be text, is a whole number; put it in single",
        ),
    ],
)
def test_mistakes_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RulesError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'rules.yaml'}{message}")


@pytest.mark.parametrize(
    ("tool", "exempt"), [("$web_search", True), ("wait_1", True), ("wait", False), ("Bash", False)]
)
def test_exempt_tools(tool: str, exempt: bool) -> None:
    assert ProgressRules(exempt=frozenset({"$web_search", "wait_*"})).is_exempt(tool) is exempt


@pytest.mark.parametrize(
    ("rule", "one", "other", "equal"),
    [
        # Without a rule: arguments as JSON, however it is spelled.
        (None, {"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        (None, {"a": 1}, {"a": 2}, False),
        ("arguments: [$.at]", {"at": 1, "b": 1}, {"at": 2, "b": 1}, True),
        ("arguments: [$.at]", {"at": 1, "b": 1}, {"b": 1}, True),
        # By place: what stands elsewhere with the same value still counts.
        ("arguments: [$.at]", {"at": 1, "b": 1}, {"at": 2, "b": 2}, False),
        ("arguments: [$.at]", {"at": 7, "b": 7}, {"at": 8}, False),
        ("arguments: ['$..at']", {"x": [{"at": 1}]}, {"x": [{"at": 2}]}, True),
        ("arguments: ['$.x[0]']", {"x": [1, 5]}, {"x": [2, 5]}, True),
        ("arguments: [$]", {"x": 1}, {"y": 2}, True),
        ("results: [$.at]", {"at": 1}, {"at": 2}, False),
        ("tool: Read, arguments: [$.at]", {"at": 1}, {"at": 2}, False),
        ("tool: 'B*', arguments: [$.at]", {"at": 1}, {"at": 2}, True),
        ("patterns: ['\\d+ms']", {"x": "took 10ms"}, {"x": "took 7ms"}, True),
        ("patterns: ['\\d+ms']", {"x": "took 10ms"}, {"x": "took 7s"}, False),
    ],
)
def test_which_arguments_are_equal(
    tmp_path: Path, rule: str | None, one: Any, other: Any, equal: bool
) -> None:
    rules = read(tmp_path, f"ignore: [{{{rule}}}]" if rule else "{}")
    digests = [rules.arguments("Bash", json.dumps(value).encode()) for value in (one, other)]
    assert (digests[0] == digests[1]) is equal


def blocks(*texts: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text} for text in texts]


@pytest.mark.parametrize(
    ("rule", "one", "other", "equal"),
    [
        (None, "a", "a", True),
        (None, "a", "b", False),
        (None, '{"a": 1}', '{"a":1}', False),
        # A text that holds JSON is read as that, as the one block of a list as well.
        ("results: [$.at]", '{"at": 1, "ok": 1}', '{"at": 2, "ok": 1}', True),
        ("results: [$.at]", '{"at": 1, "ok": 1}', '{"at": 2, "ok": 0}', False),
        ("results: [$.at]", blocks('{"at": 1}'), blocks('{"at": 2}'), True),
        ("results: [$.at]", blocks('{"at": 1}', "x"), blocks('{"at": 2}', "x"), False),
        ("results: [$]", "a", "b", True),
        ("results: ['$[1]']", blocks("a", "1"), blocks("a", "2"), True),
        ("arguments: [$.at]", '{"at": 1}', '{"at": 2}', False),
        ("patterns: ['\\d+:\\d+']", "at 12:01 ok", "at 12:02 ok", True),
        ("patterns: ['\\d+:\\d+']", blocks("at 12:01", "ok"), blocks("at 12:02", "ok"), True),
        ("patterns: ['\\d+:\\d+']", "at 12:01 ok", "at 12:02 no", False),
    ],
)
def test_which_results_are_equal(
    tmp_path: Path, rule: str | None, one: Any, other: Any, equal: bool
) -> None:
    rules = read(tmp_path, f"ignore: [{{{rule}}}]" if rule else "{}")
    digests = [rules.result("Bash", json.dumps(value).encode()) for value in (one, other)]
    assert (digests[0] == digests[1]) is equal


@pytest.mark.parametrize("text", [b"", b"{", b"[" * 5000, b'"\\ud800"', b"[" * 900 + b"]" * 900])
def test_whatever_somebody_sends(tmp_path: Path, text: bytes) -> None:
    rules = read(tmp_path, "ignore: [{arguments: ['$..a'], results: ['$..a'], patterns: [x]}]")
    assert rules.arguments("Bash", text) == rules.arguments("Bash", text)
    assert rules.result("Bash", text) == rules.result("Bash", text)
