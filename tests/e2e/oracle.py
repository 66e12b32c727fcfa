"""What a pair log must say, told by the stand-in's record alone.

The stand-in's log and script in, expected calls out. It shares no code with the tap, and matches
by position: with unique ids on the wire, the n-th call that a conversation's last request shows is
the n-th that the stand-in made there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

AGENT = "x-claude-code-agent-id"
SESSION = "x-claude-code-session-id"

type Record = Mapping[str, Any]


def made_calls(received: Sequence[Record], script: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every call that was sent, in the order in which the replies began."""
    calls = []
    for record in received:
        answer = record["answer"]
        if answer["kind"] != "step":
            continue
        step = _steps(script, answer["conversation"])[answer["step"]]
        before = ("thinking" in step) + ("text" in step)
        for number, (upstream_id, call) in enumerate(
            zip(answer["ids"], step["calls"], strict=True)
        ):
            calls.append(
                {
                    "session": record["headers"].get(SESSION),
                    "agent": record["headers"].get(AGENT),
                    "message_id": answer["message_id"],
                    "request_id": answer["request_id"],
                    "index": number + (before if "/messages" in record["path"] else 0),
                    "upstream_id": upstream_id,
                    "tool": call["name"],
                    "arguments": call["arguments"],
                }
            )
    return calls


def expected_pairs(received: Sequence[Record], script: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every call with the id and the result that the client sent back for it.

    For runs in which no id came twice and that went to their end: the last request of a
    conversation shows all of its calls.
    """
    last: dict[Any, Record] = {}
    for record in received:
        if record["answer"]["kind"] in ("step", "final"):
            last[record["headers"].get(AGENT)] = record
    shown = {agent: list(shown_pairs(record["body"])) for agent, record in last.items()}
    pairs = []
    for call in made_calls(received, script):
        seen = shown[call["agent"]].pop(0)
        assert (seen["tool"], seen["arguments"]) == (call["tool"], call["arguments"])
        pairs.append({**call, "id": seen["id"], "result": seen["result"]})
    assert not any(shown.values()), f"calls nobody made: {shown}"
    return pairs


def shown_pairs(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The calls of a request's history in order, each with the result of the same id.

    Fails where an id stands twice.
    """
    calls = list(_calls(body["messages"]))
    results = dict(_results(body["messages"]))
    ids = [call["id"] for call in calls]
    assert len(set(ids)) == len(ids), f"an id stands twice: {ids}"
    for call in calls:
        yield {**call, "result": results[call["id"]]}


def _calls(messages: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for message in messages:
        if message["role"] != "assistant":
            continue
        for call in message.get("tool_calls") or ():
            function = call["function"]
            arguments = json.loads(function["arguments"])
            yield {"id": call["id"], "tool": function["name"], "arguments": arguments}
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block["type"] == "tool_use":
                yield {"id": block["id"], "tool": block["name"], "arguments": block["input"]}


def _results(messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    for message in messages:
        if message["role"] == "tool":
            yield message["tool_call_id"], message["content"]
        elif isinstance(message["content"], list):
            for block in message["content"]:
                if block["type"] == "tool_result":
                    yield block["tool_use_id"], block["content"]


def _steps(script: Mapping[str, Any], conversation: int) -> Sequence[Mapping[str, Any]]:
    part = script if conversation < 0 else script["conversations"][conversation]
    steps: Sequence[Mapping[str, Any]] = part["steps"]
    return steps
