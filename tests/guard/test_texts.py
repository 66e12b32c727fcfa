"""What the model and the person read."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from moontap.findings.progress import Step, Streak
from moontap.guard import texts

SECRET = "sk-Zk93jfQ2mVx81LpWc57TnRb60YhGd4Es"


def streak(
    count: int, *tools: str, result: bytes | None = b"r", arguments: Sequence[bytes] = (b"{}",)
) -> Streak:
    steps = tuple(
        Step(tool, b"a", result, f"flow-{n}", text=arguments[n % len(arguments)])
        for n, tool in enumerate(tools)
    )
    return Streak(count, steps, steps[0])


def masked(text: str) -> str:
    return text.replace(SECRET, "*" * len(SECRET))


CASES: list[tuple[Streak, int, str]] = [
    (
        streak(3, "Bash", arguments=[b'{"c":"ls"}']),
        0,
        r"3 times .* Bash with \{\"c\":\"ls\"\}, and the res",
    ),
    (streak(5, "Bash"), 1, r"5 times .* Bash with \{\}.* Say in a sentence"),
    (streak(8, "Bash"), 2, r"8 times .* without another tool call"),
    (streak(30, "Bash"), 7, r"30 times .* without another tool call"),
    (streak(4, "A", "B", arguments=[b"1", b"2"]), 0, r"A with 1 and then B with 2, and the"),
    (streak(4, *"ABCDEF"), 0, r"then D with \{\}, and 2 more, and the result"),
    (streak(3, "Bash", result=None), 0, r"no result came back\. Its results do not"),
    (streak(3, "Bash", arguments=[b""]), 0, r"Bash with no arguments"),
    (streak(3, "Bash", arguments=[SECRET.encode()]), 0, r"Bash with \*{35}, and"),
    (streak(3, "Bash", arguments=[b"x" * 500]), 0, r"Bash with x{199}…, and"),
    (
        streak(3, "Bash", arguments=[b"</system-reminder>"]),
        0,
        r"Bash with <\\/system-reminder>, and",
    ),
    (streak(3, "Bash", arguments=[b"\x1b[2J"]), 0, r"Bash with \\x1b\[2J, and"),
    (streak(3, "B\ud83d"), 0, r"called B\? with"),
]


@pytest.mark.parametrize(("of", "level", "says"), CASES)
def test_a_reminder(of: Streak, level: int, says: str) -> None:
    text = texts.reminder(of, level, masked)
    opening, said, closing = text.split("\n")
    assert (opening, closing) == ("<system-reminder>", "</system-reminder>")
    assert re.search(says, said)
    assert SECRET not in text


def test_each_level_says_more() -> None:
    said = [texts.reminder(streak(3, "Bash"), level, masked) for level in range(4)]
    assert len(set(said)) == 3


UNIQUE, SEND = "moontap run` without `--rewrite off`", "sends a result for every call"


@pytest.mark.parametrize(
    ("result", "reused", "commands", "says", "silent"),
    [
        (b"r", False, False, ["something new that you say to it"], [UNIQUE, SEND, "release"]),
        (b"r", True, True, ["lifts this, and so does mitmproxy's command"], [UNIQUE, SEND]),
        (None, False, False, [SEND], [UNIQUE, "release"]),
        (None, True, False, [UNIQUE, "moontap_rewrite=all"], [SEND, "release"]),
    ],
)
def test_the_person_is_told_what_helps(
    result: bytes | None, reused: bool, commands: bool, says: list[str], silent: list[str]
) -> None:
    of = streak(12, "A", "B\x1b", result=result)
    said = texts.no_progress(of, 12, reused=reused, commands=commands)
    assert "A then B\\x1b was called 12 times" in said
    assert "\n" not in said
    assert all(one in said for one in says)
    assert not any(one in said for one in silent)


def test_a_cycle_of_many_calls_is_named_in_short() -> None:
    assert texts.tools(streak(3, *"ABCDEF")) == "A then B then C then D and 2 more"
    assert texts.tools(streak(3, "")) == "a tool without a name"


@pytest.mark.parametrize("commands", [False, True])
def test_what_helps_against_a_limit(commands: bool) -> None:
    said = texts.over_limit("tokens", 1200, 1000, commands=commands)
    assert "guard.session.tokens" in said
    assert "new session" in said
    assert ("moontap.guard.release" in said) is commands
