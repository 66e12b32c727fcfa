"""Asks a server for tool calls and says whether the id of one comes back for another.

Needs httpx, and a key in MOONSHOT_API_KEY unless the server is on loopback:

    python reproduce.py [--base-url https://api.moonshot.cn/anthropic]

MOONSHOT_BASE_URL names the server, too; one for Chat Completions ends in /v1. Two rounds, and a
third without any call in its history where two do not settle it. Exit code 1: an id came back; 0:
none did; 2: it could not be asked.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx

# Captured:
PROTOCOL = "anthropic-messages"
BASE_URL = "https://api.moonshot.cn/anthropic"
MODEL = "kimi-k3"
STREAM = True
TOOLS: list[Any] = [{"name": "pwd", "input_schema": {"type": "object", "properties": {}}}]
ASKED = "the pwd tool"
# End of what was captured.

RESULT = "done"


class Messages:
    """The Messages API. Here and in `Chat`: a reply is its id, the message that goes back into the
    history, and the ids of the calls in it."""

    path, suffix = "/v1/messages", "/messages"
    headers = (("anthropic-version", "2023-06-01"),)

    def reply(self, whole: dict[str, Any]) -> tuple[Any, dict[str, Any], list[Any]]:
        content = whole["content"]
        ids = [block["id"] for block in content if block["type"] == "tool_use"]
        return whole.get("id"), {"role": "assistant", "content": content}, ids

    def results(self, ids: list[Any], text: str) -> list[Any]:
        """The messages that answer calls, and say something more."""
        blocks = [{"type": "tool_result", "tool_use_id": id_, "content": RESULT} for id_ in ids]
        return [{"role": "user", "content": [*blocks, {"type": "text", "text": text}]}]

    def assembled(self, events: Iterator[dict[str, Any]]) -> dict[str, Any]:
        """What the events of a stream make."""
        message: dict[str, Any] = {}
        blocks: dict[int, dict[str, Any]] = {}
        partial: dict[int, str] = {}
        for event in events:
            if event["type"] == "message_start":
                message = event["message"]
            elif event["type"] == "content_block_start":
                blocks[event["index"]] = event["content_block"]
            elif event["type"] == "content_block_delta":
                number, delta = event["index"], event["delta"]
                partial[number] = partial.get(number, "") + delta.get("partial_json", "")
                for name in ("text", "thinking", "signature"):
                    if name in delta:
                        blocks[number][name] = blocks[number].get(name, "") + delta[name]
        for number, block in blocks.items():
            if block["type"] == "tool_use" and partial.get(number):
                block["input"] = json.loads(partial[number])
        return {**message, "content": list(blocks.values())}


class Chat:
    """Chat Completions."""

    path, suffix = "/v1/chat/completions", "/completions"
    headers = ()

    def reply(self, whole: dict[str, Any]) -> tuple[Any, dict[str, Any], list[Any]]:
        message = whole["choices"][0]["message"]
        return whole.get("id"), message, [call["id"] for call in message.get("tool_calls") or []]

    def results(self, ids: list[Any], text: str) -> list[Any]:
        said = [{"role": "tool", "tool_call_id": id_, "content": RESULT} for id_ in ids]
        return [*said, user(text)]

    def assembled(self, events: Iterator[dict[str, Any]]) -> dict[str, Any]:
        id_, message = None, {"role": "assistant", "content": "", "reasoning_content": ""}
        found: dict[int, dict[str, Any]] = {}
        for event in events:
            id_ = event.get("id") or id_
            for choice in event.get("choices") or []:
                delta = choice.get("delta") or {}
                for name in ("content", "reasoning_content"):
                    message[name] += delta.get(name) or ""
                for piece in delta.get("tool_calls") or []:
                    function = {"name": "", "arguments": ""}
                    empty = {"type": "function", "id": "", "function": function}
                    call = found.setdefault(piece.get("index", 0), empty)
                    call["id"] = call["id"] or piece.get("id") or ""
                    for name, value in (piece.get("function") or {}).items():
                        call["function"][name] += value or ""
        if not message["reasoning_content"]:
            del message["reasoning_content"]
        calls = {"tool_calls": list(found.values())} if found else {}
        return {"id": id_, "choices": [{"message": {**message, **calls}}]}


API = Messages() if PROTOCOL == "anthropic-messages" else Chat()


def main() -> int:
    parser = argparse.ArgumentParser(description="Does an id of a tool call come back?")
    parser.add_argument("--base-url", default=os.environ.get("MOONSHOT_BASE_URL", BASE_URL))
    url = url_of(parser.parse_args().base_url)
    local = urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")
    key = "made-up" if local else os.environ.get("MOONSHOT_API_KEY", "")
    if not key:
        return trouble(f"{urlsplit(url).hostname} takes a key: put it into MOONSHOT_API_KEY")
    headers = {"authorization": f"Bearer {key}", **dict(API.headers)}
    with httpx.Client(headers=headers, timeout=120, trust_env=not local) as client:
        try:
            return rounds(client, url)
        except Exception as error:  # whatever a server may say; never with the key
            return trouble(f"{type(error).__name__}: {error}".replace(key, "***"))


def rounds(client: httpx.Client, url: str) -> int:
    opening = user(f"Please call {ASKED} now. Any harmless arguments will do.")
    said, ids = ask(client, url, 1, [opening])
    results = API.results(ids, f"Now please call {ASKED} once more.")
    ids += ask(client, url, 2, [opening, said, *results])[1]
    if len(set(ids)) < len(ids):
        return verdict("reused: an id came again while its first call stands in the history")
    summary = f"Summary: you have called {ASKED}; it said {RESULT!r}. Please call {ASKED} again."
    ids += ask(client, url, 3, [user(summary)])[1]
    if len(set(ids)) < len(ids):
        return verdict("counted: an id came again once the history no longer showed its first call")
    print("  unique: no id came twice")
    return 0


def ask(
    client: httpx.Client, url: str, number: int, messages: list[Any]
) -> tuple[dict[str, Any], list[Any]]:
    """The message that comes back, and the ids of its calls."""
    body = {"model": MODEL, "max_tokens": 2048, "stream": STREAM, "messages": messages}
    with client.stream("POST", url, json={**body, "tools": TOOLS}) as reply:
        if reply.status_code != 200:
            raise RuntimeError(f"{reply.status_code} {reply.read().decode(errors='replace')[:300]}")
        streamed = "stream" in reply.headers.get("content-type", "")
        whole = API.assembled(events(reply)) if streamed else json.loads(reply.read())
    id_, message, ids = API.reply(whole)
    if not ids:
        raise RuntimeError("no tool was called; try again")
    print(f"  ROUND {number}  message {safe(id_)}  tool call {safe(', '.join(map(str, ids)))}")
    return message, ids


def events(reply: httpx.Response) -> Iterator[dict[str, Any]]:
    for line in reply.iter_lines():
        if line.startswith("data:") and line[5:].strip() != "[DONE]":
            event = json.loads(line[5:])
            if event.get("error") or event.get("type") == "error":
                raise RuntimeError(f"an error in the stream: {line[5:305]}")
            yield event


def url_of(base: str) -> str:
    base = base.rstrip("/")
    return base if base.endswith(API.suffix) else base.removesuffix("/v1") + API.path


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def verdict(text: str) -> int:
    print(f"  {text}")
    return 1


def trouble(text: str) -> int:
    print(f"reproduce.py: {safe(text)}", file=sys.stderr)
    return 2


def safe(text: object) -> str:
    """Nothing that a server says can move the cursor."""
    return "".join(one if one.isprintable() else "?" for one in str(text))


if __name__ == "__main__":
    sys.exit(main())
