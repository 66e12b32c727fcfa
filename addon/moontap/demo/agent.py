"""A small agent on the Messages protocol that pairs calls and results by id, as Claude Code does.

A base URL, tools and a question in, its turns out. Like the agents it stands for it is no part of
the tap and shares no code with it.
"""

import json
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Tool = Callable[[Mapping[str, Any]], str]

_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_SECONDS = 10
_NOTHING = "(no content)"


@dataclass(frozen=True, slots=True)
class Done:
    """A call that was carried out. lost: its id was seen before, so the agent will drop it."""

    id: str
    tool: str
    arguments: dict[str, Any]
    result: str
    lost: bool


@dataclass(frozen=True, slots=True)
class Turn:
    """One reply of the model. No calls: it is done, and `text` is its answer."""

    number: int
    text: str
    calls: tuple[Done, ...]


def turns(
    base_url: str, tools: Mapping[str, Tool], question: str, limit: int, model: str = "kimi-k3"
) -> Iterator[Turn]:
    """Ask, carry out what the model calls for, and ask again, at most `limit` times.

    Raises OSError where the server cannot be reached or refuses.
    """
    history: list[dict[str, Any]] = [_message("user", [_text(question)])]
    seen: set[str] = set()
    for number in range(1, limit + 1):
        blocks = _ask(base_url, model, tools, _sendable(history))
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        calls: list[Done] = []
        for block in blocks:
            if block["type"] == "tool_use":
                id_, name, arguments = block["id"], block["name"], block["input"]
                result = tools[name](arguments)
                calls.append(Done(id_, name, arguments, result, id_ in seen))
                seen.add(id_)
        yield Turn(number, text, tuple(calls))
        if not calls:
            return
        history.append(_message("assistant", blocks))
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": call.result}
            for call in calls
        ]
        history.append(_message("user", results))


def _sendable(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The history as Claude Code 2.1 sends it: of the calls with one id, only the first.

    Measured: the later ones go with their results, and `(no content)` stands in their place.
    """
    seen: set[str] = set()
    kept: set[str] = set()  # the ids kept of the assistant message before
    sent = []
    for message in history:
        blocks = message["content"]
        if message["role"] == "assistant":
            kept = {block["id"] for block in blocks if block["type"] == "tool_use"} - seen
            seen |= kept
            blocks = [b for b in blocks if b["type"] != "tool_use" or b["id"] in kept]
        else:
            blocks = [b for b in blocks if b["type"] != "tool_result" or b["tool_use_id"] in kept]
        sent.append(_message(message["role"], blocks or [_text(_NOTHING)]))
    return sent


def _ask(
    base_url: str, model: str, tools: Mapping[str, Tool], messages: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The content blocks of the model's streamed reply."""
    body = {
        "model": model,
        "max_tokens": 1000,
        "stream": True,
        "messages": messages,
        "tools": [
            {"name": name, "description": tool.__doc__, "input_schema": {"type": "object"}}
            for name, tool in tools.items()
        ],
    }
    request = urllib.request.Request(
        base_url + "/v1/messages",
        json.dumps(body).encode(),
        {"content-type": "application/json", "anthropic-version": "2023-06-01"},
    )
    blocks: list[dict[str, Any]] = []
    arguments: dict[int, str] = {}
    with _OPENER.open(request, timeout=_SECONDS) as reply:
        for line in reply:
            if not line.startswith(b"data: "):
                continue
            event = json.loads(line[6:])
            match event["type"]:
                case "content_block_start":
                    blocks.append(event["content_block"])
                case "content_block_delta" if event["delta"]["type"] == "text_delta":
                    blocks[event["index"]]["text"] += event["delta"]["text"]
                case "content_block_delta" if event["delta"]["type"] == "input_json_delta":
                    at = event["index"]
                    arguments[at] = arguments.get(at, "") + event["delta"]["partial_json"]
    for at, text in arguments.items():
        blocks[at]["input"] = json.loads(text or "{}")
    return blocks


def _message(role: str, content: list[dict[str, Any]]) -> dict[str, Any]:
    return {"role": role, "content": content}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
