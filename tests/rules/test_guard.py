"""The section `guard`."""

from __future__ import annotations

from pathlib import Path

import pytest

from moontap.rules import Guard, RulesError, load_rules


def read(folder: Path, text: str) -> Guard:
    path = folder / "rules.yaml"
    path.write_text(f"guard:\n  {text}\ntools: {{shell: [Bash]}}\n")
    return load_rules(str(path)).guard


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", Guard()),
        ("remind: [2]", Guard(remind=(2,))),
        ("block: 20", Guard(block=20)),
        ("classes: {pay: 2}", Guard(classes={"write": 8, "pay": 2})),
        ("classes: {shell: 5}", Guard(classes={"write": 8, "pay": 3, "shell": 5})),
        ("classes:", Guard()),
        ("session: {calls: 500, minutes: 1.5}", Guard(calls=500, minutes=1.5)),
        ("session: {tokens: 1000000, calls: null}", Guard(tokens=1_000_000)),
        ("session:", Guard()),
    ],
)
def test_what_may_be_said(tmp_path: Path, text: str, expected: Guard) -> None:
    assert read(tmp_path, text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("block: 1", ":2: 'guard.block' must be at least 2, is 1; give 2 or more"),
        ("remind: [8, 5]", ":2: 5 does not rise; write them from the lowest on"),
        ("remind: []", ":2: 'guard.remind' is empty; name one count at least, or leave it out"),
        ("classes: {pay: often}", ":2: 'guard.classes.pay' must be a whole number, is text; write"),
        ("classes: {shel: 5}", ":2: no tool is of the class 'shel'; name its tools under 'tools'"),
        ("session: {hours: 1}", ":2: unknown key 'hours' under 'guard.session'; known: calls, "),
        (
            "session: {calls: 0}",
            ":2: 'guard.session.calls' must be at least 1, is 0; give 1 or more",
        ),
        ("session: {minutes: x}", ":2: 'guard.session.minutes' must be a number, is text; write a"),
        ("mode: block", ":2: unknown key 'mode' under 'guard'; known: block, classes, remind, "),
    ],
)
def test_mistakes_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RulesError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'rules.yaml'}{message}")
