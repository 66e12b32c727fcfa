"""Small evidence of each kind, as it should be: a loop with one id that comes back, where it fits.

Made up: no line of it was recorded. `kinds` makes the odd and damaged ones of these.
"""

from __future__ import annotations

import io
import json
from typing import Any

from mitmproxy import http
from mitmproxy.addons.savehar import SaveHar
from mitmproxy.io import FlowWriter

from moontap.evidence.kinds import Kind
from tests.samples import (
    CHAT,
    chat_events,
    chat_request,
    dump,
    messages_events,
    messages_request,
)
from tests.saved import conversation, exchange

PAIRS = [("Bash_0", "pwd", "/w"), ("Bash_0", "ls", "a.py"), ("Bash_0", "date", "Sunday")]
SESSION = "6f1d2a0e-0000-4000-8000-000000000001"
WHEN = "2026-11-29T12:00:{:02}.000Z"


def use(id_: str, command: str, n: int = 0) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": "Bash", "input": {"command": command, "n": n}}


def called(id_: str, command: str) -> dict[str, Any]:
    function = {"name": "Bash", "arguments": json.dumps({"command": command})}
    return {"id": id_, "type": "function", "function": function}


MESSAGES_REQUEST = json.loads(messages_request(PAIRS, max_tokens=99, system="You help."))
CHAT_REQUEST = json.loads(chat_request(PAIRS, stream_options={"include_usage": True}))
MESSAGES_REPLY = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "kimi-k3",
    "content": [{"type": "text", "text": "I look."}, use("Bash_0", "pwd"), use("Bash_0", "ls")],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 9, "output_tokens": 5},
}
CHAT_REPLY = {
    "id": "cmpl-1",
    "object": "chat.completion",
    "model": "kimi-k3",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "",
                "tool_calls": [called("Bash:0", "pwd"), called("Bash:0", "ls")],
            },
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {"prompt_tokens": 9, "completion_tokens": 5},
}
ERROR = {
    "type": "error",
    "error": {"type": "invalid_request_error", "message": "tool call id Bash:0 is duplicated"},
}

DOCUMENTS: dict[Kind, Any] = {
    Kind.MESSAGES_REQUEST: MESSAGES_REQUEST,
    Kind.CHAT_REQUEST: CHAT_REQUEST,
    Kind.MESSAGES_REPLY: MESSAGES_REPLY,
    Kind.CHAT_REPLY: CHAT_REPLY,
    Kind.MESSAGES_HISTORY: MESSAGES_REQUEST["messages"],
    Kind.CHAT_HISTORY: CHAT_REQUEST["messages"],
    Kind.ERROR: ERROR,
}
"""Of each kind that is one JSON document."""

STREAMS = {
    Kind.MESSAGES_STREAM: messages_events("Bash_0"),
    Kind.CHAT_STREAM: chat_events("Bash:0"),
}
"""Of each kind that is an event stream: its events."""


def _record(kind: str, n: int, message: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "parentUuid": f"u{n - 1}" if n else None,
        "isSidechain": False,
        "type": kind,
        "message": message,
        "uuid": f"u{n}",
        "timestamp": WHEN.format(n % 60),
        "sessionId": SESSION,
        "version": "2.1.328",
        **more,
    }


def _said(n: int, id_: str, command: str, **more: Any) -> dict[str, Any]:
    message = {
        "id": f"msg_{n}",
        "type": "message",
        "role": "assistant",
        "model": "kimi-k3",
        "content": [use(id_, command)],
        "stop_reason": "tool_use",
    }
    return _record("assistant", n, message, **more)


def _heard(n: int, id_: str, result: str) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": id_, "content": result}
    return _record("user", n, {"role": "user", "content": [block]})


def transcript(turns: int = 6, id_: str = "Bash_0") -> list[dict[str, Any]]:
    """As older versions of Claude Code write it: what was said, and no requests."""
    records = [
        {"type": "summary", "summary": "A task", "leafUuid": "u9"},
        _record("user", 0, {"role": "user", "content": "go"}),
    ]
    for turn in range(turns):
        records.append(_said(2 * turn + 1, id_.format(turn), "ls"))
        records.append(_heard(2 * turn + 2, id_.format(turn), "a.py"))
    return records


def noted_transcript(turns: int = 6, *, lost: bool = True) -> list[dict[str, Any]]:
    """As 2.1.328 writes it, requests included. lost: from the second call on the client drops each
    call with its result, as it does with an id that it has seen."""

    def request(n: int, keep: int, *tail: str) -> dict[str, Any]:
        base = {"base": f"r{n - 1}"} if n else {}
        params = {"model": "kimi-k3", "max_tokens": 32000, "thinking": {"type": "adaptive"}}
        return {
            "type": "api-request",
            "sessionId": SESSION,
            "id": f"r{n}",
            "timestamp": WHEN.format(n % 60),
            "shapeHash": "s",
            "params": params,
            **base,
            "keep": keep,
            "tail": list(tail),
        }

    def blob(hash_: str, role: str, text: str) -> dict[str, Any]:
        message = {"role": role, "content": [{"type": "text", "text": text}]}
        return {"type": "api-request-blob", "sessionId": SESSION, "hash": hash_, "message": message}

    tools = [{"name": "Bash", "input_schema": {"type": "object"}}]
    shape = {"type": "api-request-shape", "sessionId": SESSION, "shapeHash": "s"}
    records = [
        {"type": "queue-operation", "operation": "enqueue", "sessionId": SESSION},
        _record("user", 0, {"role": "user", "content": "go"}),
        {**shape, "shape": {"system": [], "tools": tools}},
        blob("h0", "user", "go"),
        request(0, 0, "h0"),
        _said(1, "Bash_0", "pwd", requestRef="r0"),
        _heard(2, "Bash_0", "/w"),
        request(1, 1, "a1", "u1"),
    ]
    for turn in range(1, turns):
        id_ = "Bash_0" if lost else f"Bash_{turn}"
        records.append(_said(2 * turn + 1, id_, "ls", requestRef=f"r{turn}"))
        records.append(_heard(2 * turn + 2, id_, "a.py"))
        tail = (f"a{turn + 1}", f"u{turn + 1}")
        if lost:
            tail = ("gone", "nothing")
            if turn == 1:
                records.append(blob("gone", "assistant", "[Tool use interrupted]"))
                records.append(blob("nothing", "user", "(no content)"))
        records.append(request(turn + 1, 2 * turn + 1, *tail))
    return records


def context(turns: int = 6, id_: str = "Bash:0") -> list[dict[str, Any]]:
    """Kimi CLI's context.jsonl."""
    records: list[dict[str, Any]] = [
        {"role": "_system_prompt", "content": "You help."},
        {"role": "_checkpoint", "id": 0},
        {"role": "user", "content": "go"},
    ]
    for turn in range(turns):
        call = called(id_.format(turn), "ls")
        thought = [{"type": "think", "think": "hm", "encrypted": None}]
        records += [
            {"role": "assistant", "content": thought, "tool_calls": [call]},
            {"role": "_usage", "token_count": 100 + turn},
            {"role": "tool", "content": "a.py", "tool_call_id": call["id"]},
        ]
    return records


def wired(turns: int = 6, id_: str = "Bash:0") -> list[dict[str, Any]]:
    """Kimi CLI's wire.jsonl, arguments in parts, with a sub-agent that does one thing."""

    def event(kind: str, **payload: Any) -> dict[str, Any]:
        return {"timestamp": 1_764_000_000.5, "message": {"type": kind, "payload": payload}}

    def result(name: str) -> dict[str, Any]:
        value = {"is_error": False, "output": "a.py", "message": "", "display": []}
        return event("ToolResult", tool_call_id=name, return_value=value)

    records = [{"type": "metadata", "protocol_version": "1.4"}, event("TurnBegin", user_input="go")]
    for turn in range(turns):
        name = id_.format(turn)
        begun = {"name": "Bash", "arguments": '{"command":'}
        records += [
            event("StepBegin", n=turn + 1),
            event("ContentPart", type="think", think="hm"),
            event("ToolCall", type="function", id=name, function=begun, extras=None),
            event("ToolCallPart", arguments_part='"ls"}'),
            event("StatusUpdate", message_id=f"cmpl-{turn}", context_usage=0.1),
            result(name),
        ]
    inner = [
        ("TurnBegin", {"user_input": "look"}),
        ("StepBegin", {"n": 1}),
        ("ToolCall", {"id": "Bash:9", "function": {"name": "Bash", "arguments": "{}"}}),
        ("ToolResult", {"tool_call_id": "Bash:9", "return_value": {"output": "ok"}}),
        ("StepBegin", {"n": 2}),
        ("ContentPart", {"type": "text", "text": "done"}),
    ]
    for kind, payload in inner:
        nested = {"type": kind, "payload": payload}
        records.append(event("SubagentEvent", agent_id="a-1", event=nested))
    return [*records, event("StepBegin", n=turns + 1), event("ContentPart", type="text", text="ok")]


LINES: dict[Kind, list[dict[str, Any]]] = {
    Kind.TRANSCRIPT: transcript(),
    Kind.KIMI_CONTEXT: context(),
    Kind.KIMI_WIRE: wired(),
}
"""Of each kind that is an object a line."""


def debug_log(repairs: int = 4) -> list[str]:
    """Claude Code's debug log: a history that grows, repaired before each request."""
    lines = ["2026-11-29T12:00:00.000Z [DEBUG] Error log sink initialized"]
    structure = ["[0] user", "[1] api_system"]
    for n in range(repairs + 1):
        at = len(structure)
        structure.append(f"[{at}] assistant(id=chatcmpl-{n}, tool_uses=[Bash_0])")
        structure.append(f"[{at + 1}] user(tool_results=[Bash_0])")
        stamp = WHEN.format(n % 60)
        if n:
            count = len(structure)
            lines.append(
                f"{stamp} [ERROR] ensureToolResultPairing: repaired missing tool_result blocks "
                f"({count} -> {count} messages). Message structure: {'; '.join(structure)}"
            )
        lines.append(f"{stamp} [DEBUG] [API REQUEST] /anthropic/v1/messages source=sdk")
    return lines


def flows(count: int = 3) -> list[http.HTTPFlow]:
    """A conversation that a tap has saved."""
    commands = ["ls", *["pwd"] * count][:count]
    return conversation(commands, lost=frozenset(range(1, count)))


def chatted() -> list[http.HTTPFlow]:
    body = b"".join(chat_events("Bash:0"))
    return [exchange(chat_request(), body, path=CHAT, session="t-1")]


def flow_file(saved: list[Any]) -> bytes:
    out = io.BytesIO()
    for flow in saved:
        FlowWriter(out).add(flow)
    return out.getvalue()


def har(saved: list[Any], indent: int | None = None) -> bytes:
    made = SaveHar().make_har(saved)
    return json.dumps(made, indent=indent).encode()


def joined(lines: list[Any]) -> bytes:
    """An object or a text a line."""
    return b"".join((one.encode() if isinstance(one, str) else dump(one)) + b"\n" for one in lines)
