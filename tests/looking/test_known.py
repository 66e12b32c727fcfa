"""What is read of flows that nobody has recorded is what recording them would have told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mitmproxy import http

from moontap.capture.reader import FlowFile
from moontap.looking.comment import comment_of
from moontap.looking.facts import Facts
from moontap.looking.known import _around, read
from moontap.looking.labels import labels_of
from moontap.rules import Rules
from tests.looking.rig import Listed
from tests.saved import conversation

FLOWS = Path(__file__).parents[2] / "flows"


def said(facts: Facts) -> tuple[Any, ...]:
    lines = [(call.answer, bool(call.line)) for call in facts.calls]
    return comment_of(facts), labels_of(facts), facts.number, lines, facts.findings


@pytest.mark.parametrize(
    "name",
    [
        "chat-cut-stream",
        "claude-code-loses-pairs",
        "claude-code-rewritten",
        "claude-code-sub-agents",
        "messages-orphan-result",
        "messages-healing-stream",
        "messages-guard-reminded",
    ],
)
async def test_it_is_the_same(name: str) -> None:
    flows = list(FlowFile(FLOWS / f"{name}.flow"))
    await _compare(flows)


async def test_a_history_has_no_calls_of_these_flows() -> None:
    """A recording that begins in the middle."""
    made = await _compare(conversation(["pwd", "ls", "df"])[2:])
    assert [[call.answer for call in facts.calls] for facts in made] == [["ok"], []]
    assert not any(facts.orphans for facts in made)


@pytest.mark.parametrize(
    ("wanted", "most", "budget", "near"),
    [
        ({4}, 3, 10**9, [4, 5, 3]),
        ({4}, 99, 10**9, [4, 5, 3, 6, 2, 7, 1, 8, 0, 9]),
        ({0, 9}, 5, 10**9, [0, 9, 1, 8, 2]),
        ({9}, 3, 10**9, [9, 8, 7]),
        ({1, 3, 5}, 2, 10**9, [1, 3]),
        ({4}, 99, 0, [4]),
    ],
)
def test_what_stands_near_is_read_first(
    monkeypatch: pytest.MonkeyPatch, wanted: set[int], most: int, budget: int, near: list[int]
) -> None:
    monkeypatch.setattr("moontap.looking.known.MOST", most)
    monkeypatch.setattr("moontap.looking.known._AROUND", budget)
    flows = conversation([f"echo {number}" for number in range(9)])
    chosen = _around({flows[at].id for at in wanted}, flows[::-1])
    assert [flows.index(flow) for flow in chosen] == near


async def _compare(flows: list[http.HTTPFlow]) -> list[Facts]:
    made = read(flows, Rules())
    listed = Listed()
    listed.record(flows)
    listed.recorder.close()
    listed.board.settle()
    recorded = {flow.id: facts for flow in flows if (facts := listed.board.facts(flow))}
    assert recorded
    for id_, facts in recorded.items():
        assert said(made[id_]) == said(facts)
    return [made[flow.id] for flow in flows]
