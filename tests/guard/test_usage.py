"""What a session has used, and when that is too much."""

from __future__ import annotations

from typing import Any

import pytest

from moontap.guard.usage import Usage, tokens_of
from moontap.rules import Guard

TOKENS: list[tuple[dict[str, Any], int]] = [
    ({"input_tokens": 5, "output_tokens": 2}, 7),
    ({"input_tokens": 5, "cache_read_input_tokens": 90, "output_tokens": 2}, 97),
    ({"input_tokens": 5, "cache_creation_input_tokens": 10, "output_tokens": 2}, 17),
    ({"prompt_tokens": 5, "completion_tokens": 2}, 7),
    ({"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 9}, 9),
    ({"prompt_tokens": "5", "completion_tokens": None, "total_tokens": True}, 0),
    ({"input_tokens": -5, "output_tokens": 2.5}, 0),
    ({}, 0),
]


@pytest.mark.parametrize(("usage", "tokens"), TOKENS)
def test_tokens(usage: dict[str, Any], tokens: int) -> None:
    assert tokens_of(usage) == tokens


LIMITS: list[tuple[Guard, float | None, Any]] = [
    (Guard(), 9999.0, None),
    (Guard(calls=4), 0.0, None),
    (Guard(calls=3), 0.0, ("calls", 3, 3)),
    (Guard(tokens=21), 0.0, ("tokens", 21, 21)),
    (Guard(tokens=22), 0.0, None),
    (Guard(minutes=2), 119.0, None),
    (Guard(minutes=2), 120.0, ("minutes", 2.0, 2)),
    (Guard(minutes=2), None, None),
    (Guard(calls=3, minutes=1, tokens=1), 600.0, ("calls", 3, 3)),
]


@pytest.mark.parametrize(("rules", "after", "over"), LIMITS)
def test_limits(rules: Guard, after: float | None, over: Any) -> None:
    usage = Usage()
    usage.ask(1000.0)
    usage.ask(1500.0)
    for flow, calls in (("a", 2), ("b", 0), ("c", 1)):
        usage.add(flow, calls, {"input_tokens": 5, "output_tokens": 2})
    assert usage.over(rules, None if after is None else 1000.0 + after) == over
    assert (usage.first, usage.last) == ("a", "c")
