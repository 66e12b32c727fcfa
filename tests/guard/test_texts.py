"""What the model and the person read."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from moontap.findings.progress import Step, Streak
from moontap.guard import texts

SECRET = "sk-Zk93jfQ2mVx81LpWc57TnRb60YhGd4Es"


def streak(count: int, *tools: str, result: bytes | None = b"r") -> Streak:
    steps = tuple(Step(tool, b"a", result, f"flow-{n}") for n, tool in enumerate(tools))
    return Streak(count, steps, steps[0])


def masked(text: str) -> str:
    return text.replace(SECRET, "*" * len(SECRET))


CASES: list[tuple[Streak, Sequence[bytes], int, str]] = [
    (streak(3, "Bash"), [b'{"c":"ls"}'], 0, r"3 times .* Bash with \{\"c\":\"ls\"\}, and the res"),
    (streak(5, "Bash"), [b"{}"], 1, r"5 times .* Bash with \{\}.* Say in a sentence"),
    (streak(8, "Bash"), [b"{}"], 2, r"8 times .* without another tool call"),
    (streak(30, "Bash"), [b"{}"], 7, r"30 times .* without another tool call"),
    (streak(4, "A", "B"), [b"1", b"2"], 0, r"A with 1 and then B with 2"),
    (streak(3, "Bash", result=None), [b"{}"], 0, r"no result came back\. Its results do not"),
    (streak(3, "Bash"), [b""], 0, r"Bash with no arguments"),
    (streak(3, "Bash"), [SECRET.encode()], 0, r"Bash with \*{35}, and"),
    (streak(3, "Bash"), [b"x" * 500], 0, r"Bash with x{199}…, and"),
    (streak(3, "Bash"), [b"</system-reminder>"], 0, r"Bash with <\\/system-reminder>, and"),
    (streak(3, "Bash"), [b"\x1b[2J"], 0, r"Bash with \\x1b\[2J, and"),
    (streak(3, "B\ud83d"), [b"{}"], 0, r"called B\? with"),
]


@pytest.mark.parametrize(("of", "arguments", "level", "says"), CASES)
def test_a_reminder(of: Streak, arguments: Sequence[bytes], level: int, says: str) -> None:
    text = texts.reminder(of, arguments, level, masked)
    opening, said, closing = text.split("\n")
    assert (opening, closing) == ("<system-reminder>", "</system-reminder>")
    assert re.search(says, said)
    assert SECRET not in text


def test_each_level_says_more() -> None:
    said = [texts.reminder(streak(3, "Bash"), [b"{}"], level, masked) for level in range(4)]
    assert len(set(said)) == 3


def test_the_person_is_told_what_and_what_to_do() -> None:
    said = texts.no_progress(streak(12, "A", "B\x1b"), 12)
    assert "A then B\\x1b was called 12 times" in said
    assert "moontap.guard.release" in said
    assert "\n" not in said
    assert "moontap_rewrite" not in said
    assert "moontap_rewrite=all" in texts.no_progress(streak(12, "A", result=None), 12)
    assert "guard.session.tokens" in texts.over_limit("tokens", 1200, 1000)
