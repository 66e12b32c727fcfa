from __future__ import annotations

from typing import Any

import pytest

from moontap.findings.types import Severity
from tests.findings.rig import Ex, call, called, completion, found, message, text, use, user

CODE = "other-tool-announced"
GO = [user("go")]
NAMES = ["read_file", "write_file", "list_files", "Bash", "ls"]
TOOLS = [{"name": name} for name in NAMES]
ASK = {"tools": TOOLS}
FUNCTIONS = {"tools": [{"type": "function", "function": tool} for tool in TOOLS]}


def messages(words: str, *tools: str) -> Ex:
    calls = [use(f"x_{n}", tool) for n, tool in enumerate(tools)]
    return Ex(GO, message(text(words), *calls), ASK)


@pytest.mark.parametrize(
    "exchange",
    [
        messages("Let me use the read_file tool.", "write_file"),
        messages("I'll call `read_file` on it.", "list_files"),
        messages("I will now run read_file to see.", "write_file"),
        messages("There it is. Next, I use the **read_file** tool.", "write_file", "write_file"),
        Ex(
            GO,
            completion(called(call(name="write_file"), content="Let me use read_file.")),
            FUNCTIONS,
            chat=True,
        ),
    ],
)
def test_another_tool_is_called(exchange: Ex) -> None:
    (finding,) = found(CODE, exchange)
    assert finding.severity is Severity.INFO
    assert finding.evidence.facts["announced"] == "read_file"


@pytest.mark.parametrize(
    "exchange",
    [
        messages("Let me use the read_file tool.", "read_file"),
        messages("Let me use the read_file tool.", "read_file", "write_file"),
        messages("Let me use the read_file tool.", "write_file", "list_files"),
        messages("Let me use read_file and write_file.", "write_file"),
        messages("Let me use read_file, and list_files.", "write_file"),
        # With an if or a but.
        messages("I'll not use read_file.", "write_file"),
        messages("I can't use it. Let me use read_file.", "write_file"),
        messages("Let me use read_file later.", "write_file"),
        messages("After that I'll use read_file.", "write_file"),
        # Not an announcement, not a tool, or a name that is a word.
        messages("I used the read_file tool.", "write_file"),
        messages("The read_file tool is there.", "write_file"),
        messages("Let me look at read_file.py.", "write_file"),
        messages("Let me use read_file.py.", "write_file"),
        messages("Let me use the compiler.", "write_file"),
        messages("Let me run ls.", "Bash"),
        messages("Let me use the read_file tool.", "unknown"),
        messages("Let me use the read_file tool."),
        Ex(GO, message(text("Let me use the read_file tool."), use(name="write_file"))),
    ],
)
def test_near_misses(exchange: Ex) -> None:
    assert found(CODE, exchange) == []


def test_most_texts_are_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read(*_: Any) -> None:
        raise AssertionError("the text was read")

    monkeypatch.setattr("moontap.capture.turns._text", read)
    words = "Let me use the read_file tool."
    assert found(CODE, messages("I use the read_file tool.", "write_file")) == []
    assert found(CODE, messages("Let me look around.", "write_file")) == []
    assert found(CODE, messages(f"{words} {'x' * 20_000}", "write_file")) == []
    with pytest.raises(AssertionError, match="the text was read"):
        found(CODE, messages(words, "write_file"))
