"""Asks a server for tool calls and says whether the id of one comes back for another.

Messages API. Needs httpx, and a key in MOONSHOT_API_KEY unless the server is on loopback:

    python reproduce.py [--base-url https://api.moonshot.cn/anthropic]

MOONSHOT_BASE_URL names the server, too. Two rounds, and a third without any call in its history
where two do not settle it. Exit code 1: an id came back; 0: none did; 2: it could not be asked.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

import httpx

# Captured:
BASE_URL = "https://api.moonshot.cn/anthropic"
MODEL = "kimi-k3"
STREAM = True
TOOLS: list[Any] = [{"name": "pwd", "input_schema": {"type": "object", "properties": {}}}]
ASKED = "the pwd tool"
# End of what was captured.

RESULT = "done"


def main() -> int:
    parser = argparse.ArgumentParser(description="Does an id of a tool call come back?")
    parser.add_argument("--base-url", default=os.environ.get("MOONSHOT_BASE_URL", BASE_URL))
    url = url_of(parser.parse_args().base_url)
    local = urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")
    key = "made-up" if local else os.environ.get("MOONSHOT_API_KEY", "")
    if not key:
        return trouble(f"{urlsplit(url).hostname} takes a key: put it into MOONSHOT_API_KEY")
    headers = {"authorization": f"Bearer {key}", "anthropic-version": "2023-06-01"}
    with httpx.Client(headers=headers, timeout=120, trust_env=not local) as client:
        try:
            return rounds(client, url)
        except Exception as error:  # whatever a server may say; never with the key
            return trouble(f"{type(error).__name__}: {error}".replace(key, "***"))


def rounds(client: httpx.Client, url: str) -> int:
    opening = user(f"Please call {ASKED} now. Any harmless arguments will do.")
    first = ask(client, url, [opening])
    ids = [show(1, first)]
    results = [
        {"type": "tool_result", "tool_use_id": call["id"], "content": RESULT}
        for call in calls(first)
    ]
    again = {"type": "text", "text": f"Now please call {ASKED} once more."}
    said = {"role": "assistant", "content": first["content"]}
    second = ask(client, url, [opening, said, {"role": "user", "content": [*results, again]}])
    ids.append(show(2, second))
    if reused(ids):
        return verdict("reused: an id came again while its first call stands in the history")
    summary = f"Summary: you have called {ASKED}; it said {RESULT!r}. Please call {ASKED} again."
    ids.append(show(3, ask(client, url, [user(summary)])))
    if reused(ids):
        return verdict("counted: an id came again once the history no longer showed its first call")
    print("  unique: no id came twice")
    return 0


def ask(client: httpx.Client, url: str, messages: list[Any]) -> dict[str, Any]:
    body = {"model": MODEL, "max_tokens": 2048, "stream": STREAM, "messages": messages}
    with client.stream("POST", url, json={**body, "tools": TOOLS}) as reply:
        if reply.status_code != 200:
            raise RuntimeError(f"{reply.status_code} {reply.read().decode(errors='replace')[:300]}")
        kind = reply.headers.get("content-type", "")
        message = assembled(reply.iter_lines()) if "stream" in kind else json.loads(reply.read())
    if not calls(message):
        raise RuntimeError("no tool was called; try again")
    return message


def assembled(lines: Iterable[str]) -> dict[str, Any]:
    """The message that the events of a stream make."""
    message: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    partial: dict[int, str] = {}
    for line in lines:
        if not line.startswith("data:") or line[5:].strip() == "[DONE]":
            continue
        event = json.loads(line[5:])
        if event["type"] == "error":
            raise RuntimeError(f"an error in the stream: {line[5:305]}")
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


def url_of(base: str) -> str:
    base = base.rstrip("/")
    return base if base.endswith("/messages") else base.removesuffix("/v1") + "/v1/messages"


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def calls(message: dict[str, Any]) -> list[dict[str, Any]]:
    return [block for block in message["content"] if block["type"] == "tool_use"]


def reused(ids: list[list[str]]) -> bool:
    every = [id_ for some in ids for id_ in some]
    return len(set(every)) < len(every)


def show(number: int, message: dict[str, Any]) -> list[str]:
    ids = [str(call["id"]) for call in calls(message)]
    print(f"  ROUND {number}  message {safe(message.get('id'))}  tool call {safe(', '.join(ids))}")
    return ids


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
