"""The demo's agent: what it sends of its history, and its turns before a real stand-in."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moontap.demo import agent, task
from moontap.standin import Standin


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def use(id_: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": "Bash", "input": {}}


def result(id_: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id_, "content": id_}


NOTHING = text("(no content)")
FIRST = [user(text("go")), assistant(text("one"), use("a")), user(result("a"))]


@pytest.mark.parametrize(
    ("history", "sent"),
    [
        (FIRST, FIRST),
        (
            [*FIRST, assistant(text("two"), use("b")), user(result("b"))],
            [*FIRST, assistant(text("two"), use("b")), user(result("b"))],
        ),
        # Measured with Claude Code: the text of the message stays, call and result go.
        (
            [*FIRST, assistant(text("two"), use("a")), user(result("a"))],
            [*FIRST, assistant(text("two")), user(NOTHING)],
        ),
        (
            [*FIRST, assistant(use("a")), user(result("a"))],
            [*FIRST, assistant(NOTHING), user(NOTHING)],
        ),
        (
            [*FIRST, assistant(use("a"), use("b")), user(result("a"), result("b"))],
            [*FIRST, assistant(use("b")), user(result("b"))],
        ),
    ],
)
def test_of_an_id_only_the_first_call_is_sent(
    history: list[dict[str, Any]], sent: list[dict[str, Any]]
) -> None:
    assert agent._sendable(history) == sent


@pytest.mark.parametrize(("mint", "done"), [("response", False), ("unique", True)])
async def test_it_loops_where_ids_come_back_and_is_done_where_not(mint: str, done: bool) -> None:
    async with Standin(task.SCRIPT, mint=mint) as standin:
        turns = await asyncio.to_thread(
            lambda: [
                *agent.turns(standin.base_url + "/anthropic", task.TOOLS, task.QUESTION, limit=6)
            ]
        )
    assert (turns[-1].text == task.ANSWER) is done
    assert any(call.lost for turn in turns for call in turn.calls) is not done
    assert len(turns) == (5 if done else 6)
