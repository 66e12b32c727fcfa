"""A conversation over Messages, streamed, as a test leads it turn by turn.

A base URL in, requests over HTTP and the calls of each reply out. It shares no code with the tap.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

import httpx

TOOLS = [{"name": "Bash", "input_schema": {"type": "object"}}]


class Talk:
    """headers, params: of every request. padding: text that makes every request larger."""

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        padding: str = "",
    ) -> None:
        self._client = httpx.Client(
            base_url=base_url, headers=headers, params=params, trust_env=False, timeout=20
        )
        self._padding = padding
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": "do it"}]
        self.text = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    @contextmanager
    def reply(self) -> Iterator[Iterator[dict[str, Any]]]:
        """Send the conversation as it stands; the events of the reply as they come."""
        body = {
            "model": "kimi-k3",
            "max_tokens": 100,
            "stream": True,
            "system": f"You help. {self._padding}",
            "tools": TOOLS,
            "messages": self.messages,
        }
        with self._client.stream("POST", "/anthropic/v1/messages", json=body) as response:
            assert response.status_code == 200, response.read()
            yield (
                json.loads(line.removeprefix("data:"))
                for line in response.iter_lines()
                if line.startswith("data:")
            )

    def turn(self, result: str = "") -> list[dict[str, Any]]:
        """One whole turn: the calls of the reply, each answered in the next request.

        result: what the tools give; by default a text that tells the turn and the command.
        """
        blocks: dict[int, dict[str, Any]] = {}
        with self.reply() as events:
            for event in events:
                _take(event, blocks)
        content = [blocks[index] for index in sorted(blocks)]
        self.text = "".join(block["text"] for block in content if block["type"] == "text")
        calls = [block for block in content if block["type"] == "tool_use"]
        self.messages.append({"role": "assistant", "content": content})
        number = len(self.messages) // 2
        answers = [
            {
                "type": "tool_result",
                "tool_use_id": call["id"],
                "content": result or f"result {number} of {call['input']['command']}",
            }
            for call in calls
        ]
        if answers:
            self.messages.append({"role": "user", "content": answers})
        return calls

    def to_the_end(self, result: str = "") -> int:
        """Turns until no call is left; how many there were."""
        for number in range(1, 20):
            if not self.turn(result):
                return number
        raise AssertionError("it does not end")


def _take(event: Mapping[str, Any], blocks: dict[int, dict[str, Any]]) -> None:
    match event["type"]:
        case "content_block_start":
            blocks[event["index"]] = {**event["content_block"], "fragments": []}
        case "content_block_delta":
            (fragment,) = (value for name, value in event["delta"].items() if name != "type")
            blocks[event["index"]]["fragments"].append(fragment)
        case "content_block_stop":
            block = blocks[event["index"]]
            whole = "".join(block.pop("fragments"))
            if block["type"] == "tool_use":
                block["input"] = json.loads(whole or "{}")
            else:
                block[block["type"]] += whole
