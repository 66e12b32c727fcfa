"""The table of pairs, as it stands on a screen."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from moontap.report.pairs import WIDE, pairs_table
from moontap.report.text import lasted, latency, plain, short

LINE: dict[str, Any] = {
    "status": "ok",
    "tool": "Bash",
    "id": "Bash_0_tabcdefgh",
    "upstream_id": "Bash_0",
    "rewritten": True,
    "duplicate": False,
    "arguments": {"command": "pwd"},
    "result": "/w",
    "latency_s": 0.012,
}


def screen(width: int, **changed: Any) -> list[str]:
    """The screen's lines."""
    file = io.StringIO()
    table = pairs_table([LINE | changed], width=width)
    Console(file=file, width=width, force_terminal=False).print(table)
    return file.getvalue().splitlines()


def cells(**changed: Any) -> list[str]:
    """The cells of the only row of a wide table."""
    row = next(line for line in screen(150, **changed) if line.startswith("│  1"))
    return [cell.strip() for cell in row.strip("│").split("│")]


def test_a_row() -> None:
    assert cells() == [
        *("1", "Bash", '{"command":"pwd"}', "/w", "Bash_0", "Bash_0_tabcdefgh", "ok", "12 ms")
    ]


@pytest.mark.parametrize(
    ("changed", "at", "cell"),
    [
        ({"duplicate": True}, 4, "Bash_0 *"),
        ({"status": "unanswered", "result": None, "latency_s": None}, 3, ""),
        ({"status": "unanswered", "result": None, "latency_s": None}, 7, ""),
        ({"status": "orphan", "tool": None, "upstream_id": None}, 1, ""),
        ({"arguments": "{broken"}, 2, "{broken"),
        ({"result": "[bold]x[/bold]"}, 3, "[bold]x[/bold]"),
        ({"result": "\x1b[2Jgone"}, 3, r"\x1b[2Jgone"),
        ({"tool": "\x1b]0;t\x07"}, 1, r"\x1b]0;t\x07"),
        ({"id": "a\u202eb"}, 5, r"a\u202eb"),
        ({"result": [{"type": "text", "text": "one"}]}, 3, "one"),
        ({"result": "x" * 1_000_000}, 3, "x" * 31 + "…"),
        ({"latency_s": 2.345}, 7, "2.3 s"),
    ],
)
def test_a_cell(changed: dict[str, Any], at: int, cell: str) -> None:
    assert cells(**changed)[at] == cell


@pytest.mark.parametrize("width", [80, 100, WIDE - 1])
def test_on_a_narrow_screen_a_pair_takes_two_lines_and_ids_are_whole(width: int) -> None:
    longest = "mcp__server__tool_name_t12345678abcdefgh"
    first, second = screen(width, upstream_id="get_weather_0", id=longest)[-3:-1]
    assert all(len(line) <= width for line in (first, second))
    number, tool, arguments, *rest = first.split()
    assert (number, tool, rest) == ("1", "Bash", ["get_weather_0", "ok", "12", "ms"])
    assert arguments.startswith('{"comm')
    assert second.split() == ["/w", longest]


def test_no_lines_make_an_empty_table() -> None:
    assert pairs_table([]).row_count == 0


@pytest.mark.parametrize(
    ("value", "limit", "expected"),
    [
        (None, 9, ""),
        ("", 9, ""),
        ("a\nb", 9, r"a\nb"),
        ("12345", 5, "12345"),
        ("123456", 5, "1234…"),
        ({"a": "ü"}, 99, '{"a":"ü"}'),
        ([], 9, "[]"),
        ([{"type": "image"}], 99, '[{"type":"image"}]'),
        (False, 9, "false"),
    ],
)
def test_a_value_in_short(value: Any, limit: int, expected: str) -> None:
    assert short(value, limit) == expected


def test_only_what_is_printable_reaches_the_terminal() -> None:
    everything = "".join(map(chr, range(0x3000)))
    assert plain(everything).isprintable()


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, ""), (0.0, "0 ms"), (0.9994, "999 ms"), (1.0, "1.0 s")]
)
def test_a_latency(seconds: float | None, text: str) -> None:
    assert latency(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0 ms"), (0.004, "4 ms"), (0.0949, "95 ms"), (0.1, "0.1 s"), (9.94, "9.9 s"),
        (11.4, "11 s"), (119, "119 s"), (600, "10 min"), (9000, "2 h"),
    ],
)  # fmt: skip
def test_how_long_it_lasted(seconds: float, text: str) -> None:
    assert lasted(seconds) == text
