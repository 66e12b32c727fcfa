from __future__ import annotations

from typing import Any

import pytest

from moontap.looking.views.page import Page
from moontap.looking.views.tools import put_settings, put_system, put_tools, tools_of
from tests.samples import dump


def _schema(*names: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}}


@pytest.mark.parametrize(
    ("key", "tool", "shown"),
    [
        ("tools", {"name": "Bash", "input_schema": _schema("command", "timeout")}, "Bash (2)"),
        ("tools", {"name": "List", "input_schema": _schema()}, "List (0)"),
        ("tools", {"name": "List", "input_schema": {"type": "object"}}, "List"),
        ("tools", {"type": "web_search_20250305", "name": "web_search"}, "web_search"),
        (
            "tools",
            {"type": "function", "function": {"name": "Bash", "parameters": _schema("command")}},
            "Bash (1)",
        ),
        ("tools", {"type": "custom", "custom": {"name": "free"}}, "free"),
        ("tools", {"type": "builtin_function"}, "builtin_function"),
        ("functions", {"name": "old", "parameters": _schema("a")}, "old (1)"),
        ("tools", {}, "(no name)"),
        ("tools", 5, "(no name)"),
        ("tools", {"name": "a\x1b[2J"}, r"a\x1b[2J"),
    ],
)
def test_a_tool_in_short(key: str, tool: Any, shown: str) -> None:
    page = Page()
    put_tools(page, tools_of({key: dump([tool])}))
    assert str(page) == f"tools: 1  # name (number of parameters)\n  {shown}\n"


@pytest.mark.parametrize("body", [{}, {"tools": b"[]"}, {"tools": b"5"}, {"tools": b"null"}])
def test_no_tools(body: dict[str, bytes]) -> None:
    page = Page()
    put_tools(page, tools_of(body))
    assert str(page) == "tools: none\n"


def test_many_tools_take_several_lines() -> None:
    page = Page()
    tools = [{"name": f"tool_number_{n}", "input_schema": _schema("a")} for n in range(6)]
    put_tools(page, tools_of({"tools": dump(tools)}))
    assert str(page).splitlines() == [
        "tools: 6  # name (number of parameters)",
        "  tool_number_0 (1), tool_number_1 (1), tool_number_2 (1),",
        "  tool_number_3 (1), tool_number_4 (1), tool_number_5 (1)",
    ]


def test_in_full_each_tool_as_it_is_declared() -> None:
    page = Page(None)
    put_tools(page, tools_of({"tools": dump([{"name": "Bash", "description": "runs it"}])}))
    assert str(page).splitlines()[1:] == ['  Bash: {"name": "Bash", "description": "runs it"}']


def test_settings() -> None:
    page = Page()
    body = {
        "model": b'"kimi-k3"',
        "messages": b"[]",
        "metadata": b"{}",
        "max_tokens": b"32000",
        "tool_choice": b'{"type":"auto"}',
        "stop": dump(["x" * 200]),
    }
    put_settings(page, body)
    shown = str(page).splitlines()
    assert shown[:2] == ["max_tokens: 32000", 'tool_choice: {"type":"auto"}']
    assert shown[2].startswith('stop: ["xxx')
    assert (len(shown), len(shown[2])) == (3, 76)


@pytest.mark.parametrize(
    ("system", "fold", "shown"),
    [
        ("You help.", 600, "system: 9 characters: You help.\n"),
        ("You\nhelp.", 600, "system: 9 characters: You help.\n"),
        # Claude Code's first text is a line for billing.
        (
            [
                {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1"},
                {"type": "text", "text": "You are an agent."},
                {"type": "text", "text": "Help."},
            ],
            600,
            "system: 64 characters: You are an agent.\n",
        ),
        ("You\nhelp.", None, "system: |\n  You\n  help.\n"),
        ([], 600, "system: 0 characters:\n"),
    ],
)
def test_system(system: Any, fold: int | None, shown: str) -> None:
    page = Page(fold)
    put_system(page, dump(system))
    assert str(page) == shown


def test_no_system() -> None:
    page = Page()
    put_system(page, b"")
    assert not str(page)
