"""Which known word somebody meant."""

import pytest

from moontap.wire.near import distance, near

KNOWN = ("tool_result", "tool_use", "text", "assistant", "user", "web_search_tool_result")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("tool_resutl", "tool_result"),
        ("tool_results", "tool_result"),
        ("toolresult", "tool_result"),
        ("TEXT", "text"),
        ("txt", "text"),
        ("assistnat", "assistant"),
        ("usr", "user"),
        ("text2", None),
        ("tool_result_v2", None),
        ("web_search_tool_result_20260209", None),
        ("mcp_tool_result", None),
        ("tool", None),
        ("id", None),
        ("", None),
        ("x" * 100_000, None),
    ],
)
def test_a_slip_or_two(word: str, meant: str | None) -> None:
    assert near(word, KNOWN) == meant


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("abc", "abc", 0), ("abc", "acb", 1), ("abc", "ab", 1), ("abc", "xbz", 2), ("abc", "xyz", 3)],
)
def test_distance(one: str, other: str, expected: int) -> None:
    assert distance(one, other, 2) == distance(other, one, 2) == expected
