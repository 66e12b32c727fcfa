"""Asks a server for tool calls and says whether the id of one comes back for another.

Chat Completions. Needs httpx, and a key in MOONSHOT_API_KEY unless the server is on loopback:

    python reproduce.py [--base-url https://api.moonshot.cn/v1]

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
BASE_URL = "https://api.moonshot.cn/v1"
MODEL = "kimi-k3"
STREAM = True
TOOLS: list[Any] = [{"type": "function", "function": {"name": "pwd", "parameters": {}}}]
ASKED = "the pwd tool"
# End of what was captured.

RESULT = "done"
PATH = "/v1/chat/completions"


def main() -> int:
    parser = argparse.ArgumentParser(description="Does an id of a tool call come back?")
    parser.add_argument("--base-url", default=os.environ.get("MOONSHOT_BASE_URL", BASE_URL))
    url = url_of(parser.parse_args().base_url)
    local = urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")
    key = "made-up" if local else os.environ.get("MOONSHOT_API_KEY", "")
    if not key:
        return trouble(f"{urlsplit(url).hostname} takes a key: put it into MOONSHOT_API_KEY")
    headers = {"authorization": f"Bearer {key}"}
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
        {"role": "tool", "tool_call_id": call["id"], "content": RESULT} for call in calls(first)
    ]
    again = user(f"Now please call {ASKED} once more.")
    second = ask(client, url, [opening, first["message"], *results, again])
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
        said = assembled(reply.iter_lines()) if "stream" in kind else whole(reply.read())
    if not calls(said):
        raise RuntimeError("no tool was called; try again")
    return said


def whole(body: bytes) -> dict[str, Any]:
    reply = json.loads(body)
    return {"id": reply.get("id"), "message": reply["choices"][0]["message"]}


def assembled(lines: Iterable[str]) -> dict[str, Any]:
    """The reply's id and the message that the events of a stream make."""
    id_, message = None, {"role": "assistant", "content": "", "reasoning_content": ""}
    found: dict[int, dict[str, Any]] = {}
    for line in lines:
        if not line.startswith("data:") or line[5:].strip() == "[DONE]":
            continue
        event = json.loads(line[5:])
        if event.get("error"):
            raise RuntimeError(f"an error in the stream: {line[5:305]}")
        id_ = event.get("id") or id_
        for choice in event.get("choices") or []:
            delta = choice.get("delta") or {}
            for name in ("content", "reasoning_content"):
                message[name] += delta.get(name) or ""
            for piece in delta.get("tool_calls") or []:
                empty = {"type": "function", "id": "", "function": {"name": "", "arguments": ""}}
                call = found.setdefault(piece.get("index", 0), empty)
                call["id"] = call["id"] or piece.get("id") or ""
                for name, value in (piece.get("function") or {}).items():
                    call["function"][name] += value or ""
    if not message["reasoning_content"]:
        del message["reasoning_content"]
    return {"id": id_, "message": {**message, "tool_calls": list(found.values())}}


def url_of(base: str) -> str:
    base = base.rstrip("/")
    return base if base.endswith("/completions") else base.removesuffix("/v1") + PATH


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def calls(said: dict[str, Any]) -> list[dict[str, Any]]:
    return said["message"].get("tool_calls") or []


def reused(ids: list[list[str]]) -> bool:
    every = [id_ for some in ids for id_ in some]
    return len(set(every)) < len(every)


def show(number: int, said: dict[str, Any]) -> list[str]:
    ids = [str(call["id"]) for call in calls(said)]
    print(f"  ROUND {number}  message {safe(said['id'])}  tool call {safe(', '.join(ids))}")
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
