from __future__ import annotations

from typing import Any

import pytest

from moontap.findings.types import Severity
from tests.findings.rig import Ex, call, called, completion, found, message, result, said, use, user

CODE = "tool-undeclared"
GO = [user("go")]
TOOLS = [{"name": "Bash", "input_schema": {"type": "object"}}, {"name": "mcp__srv__find_file"}]
FUNCTIONS = [{"type": "function", "function": tool} for tool in TOOLS]
SEARCH = {"type": "builtin_function", "function": {"name": "$web_search"}}


def messages(name: Any, tools: Any = TOOLS) -> Ex:
    return Ex(GO, message(use(name=name)), {} if tools is None else {"tools": tools})


def chat(name: Any, tools: Any = FUNCTIONS) -> Ex:
    ask = {} if tools is None else {"tools": tools}
    return Ex(GO, completion(called(call(name=name))), ask, chat=True)


@pytest.mark.parametrize("make", [messages, chat])
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("ls", "called ls, which the request does not declare."),
        ("bash", "; it declares Bash."),
        ("functions.Bash", "; it declares Bash."),
        ("mcp__srv__findFile", "; it declares mcp__srv__find_file."),
        ("Bash_0", "called Bash_0, which the request does not declare."),
        ("", "without naming it"),
        (None, "without naming it"),
    ],
)
def test_a_tool_that_is_not_there(make: Any, name: str | None, says: str) -> None:
    (finding,) = found(CODE, make(name))
    assert finding.severity is Severity.WARNING
    assert says in finding.message


@pytest.mark.parametrize(
    "exchange",
    [
        messages("Bash"),
        chat("mcp__srv__find_file"),
        # Without any tools the program knows of them in some other way.
        messages("ls", None),
        messages("ls", []),
        messages("ls", "not a list"),
        chat("ls", None),
        # Tools that the server runs.
        chat("$web_search"),
        chat("$web_search", [SEARCH]),
        messages("web_search", [{"type": "web_search_20250305", "name": "web_search"}]),
        Ex(GO, completion(called(call(name="Bash"))), {"functions": TOOLS}, chat=True),
        chat("grammar", [{"type": "custom", "custom": {"name": "grammar"}}]),
        Ex(GO, message(), {"tools": TOOLS}),
        Ex([*GO, said(use(name="ls")), user(result())], message(), {"tools": TOOLS}),
    ],
)
def test_near_misses(exchange: Ex) -> None:
    assert found(CODE, exchange) == []


def test_a_tool_is_told_once() -> None:
    findings = found(CODE, messages("ls"), messages("ls"), messages("cat"))
    assert [f.exchange for f in findings] == [1, 3]
