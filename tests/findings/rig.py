"""Conversations for the tests of checks: a few words in, what the checks find out.

Every case runs through the real path: flows, the pair log, turns, the judge.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mitmproxy import http
from mitmproxy.test import tflow

from moontap.capture.diagnosis import Diagnosis
from moontap.findings.types import Finding
from moontap.rules import Rules
from tests.samples import CHAT, MESSAGES, dump

START = 1_764_000_000.0


@dataclass
class Ex:
    """One exchange. messages: of the request; ask: more of its members. reply: a dict (a whole
    reply), bytes (as they stand; `data:` makes it a stream), or None for no response.

    chunks: as in `moontap.chunks`. after: seconds since the one before; wait: to the headers.
    """

    messages: Sequence[Any]
    reply: dict[str, Any] | bytes | None = None
    ask: dict[str, Any] = field(default_factory=dict)
    chat: bool = False
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    request_headers: dict[str, str] = field(default_factory=dict)
    chunks: list[list[float]] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    after: float = 1.0
    wait: float = 0.1


def flows(*exchanges: Ex) -> list[http.HTTPFlow]:
    """As the tap would have saved them."""
    made, now = [], START
    for number, one in enumerate(exchanges, 1):
        now += one.after
        request = {"model": "kimi-k3", "messages": list(one.messages), **one.ask}
        flow = tflow.tflow(resp=one.reply is not None, err=one.error is not None)
        flow.id = f"flow-{number}"
        flow.request.method, flow.request.path = "POST", CHAT if one.chat else MESSAGES
        flow.request.host, flow.request.headers = "api.moonshot.cn", http.Headers()
        flow.request.headers.update(one.request_headers)
        flow.request.raw_content = dump(request)
        flow.request.timestamp_start = flow.request.timestamp_end = now
        if flow.error:
            flow.error.msg, flow.error.timestamp = one.error or "", now + one.wait
        if flow.response:
            body = one.reply if isinstance(one.reply, bytes) else dump(one.reply)
            kind = "application/json" if body.startswith(b"{") else "text/event-stream"
            flow.response.status_code = one.status
            flow.response.headers = http.Headers()
            flow.response.headers.update({"content-type": kind, **one.headers})
            flow.response.raw_content = body
            flow.response.timestamp_start = flow.response.timestamp_end = now + one.wait
        if one.chunks:
            flow.metadata["moontap.chunks"] = one.chunks
        flow.metadata.update(one.metadata)
        made.append(flow)
    return made


def found(code: str, *exchanges: Ex, rules: Rules | None = None) -> list[Finding]:
    """What one check finds in a conversation; any check that fails is an error."""
    diagnosis = Diagnosis(rules)
    findings = [
        finding for looked in diagnosis.flows(flows(*exchanges)) for finding in looked.findings
    ]
    assert not diagnosis.judge.faults, diagnosis.judge.faults
    return [finding for finding in findings if finding.code == code]


def user(*content: Any) -> dict[str, Any]:
    """A user message: a text, or blocks."""
    text = len(content) == 1 and isinstance(content[0], str)
    return {"role": "user", "content": content[0] if text else list(content)}


def said(*content: Any) -> dict[str, Any]:
    """An assistant message of Messages: blocks, or a text."""
    text = len(content) == 1 and isinstance(content[0], str)
    return {"role": "assistant", "content": content[0] if text else list(content)}


def use(id_: Any = "pwd_0", name: Any = "pwd", **input_: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": name, "input": input_}


def result(id_: Any = "pwd_0", content: Any = "/w", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id_, "content": content, **more}


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def message(*content: Any, stop: str | None = None, id_: str = "msg_1") -> dict[str, Any]:
    """A whole Messages reply."""
    calls = any(isinstance(block, dict) and block.get("type") == "tool_use" for block in content)
    return {
        "id": id_,
        "type": "message",
        "role": "assistant",
        "model": "kimi-k3",
        "content": list(content),
        "stop_reason": stop or ("tool_use" if calls else "end_turn"),
    }


def call(id_: Any = "pwd:0", name: Any = "pwd", arguments: Any = "{}") -> dict[str, Any]:
    """A tool call of Chat Completions."""
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def called(*calls: Any, content: Any = "", **more: Any) -> dict[str, Any]:
    """An assistant message of Chat Completions."""
    return {"role": "assistant", "content": content, "tool_calls": list(calls), **more}


def answered(id_: Any = "pwd:0", content: Any = "/w") -> dict[str, Any]:
    """A tool message of Chat Completions."""
    return {"role": "tool", "tool_call_id": id_, "content": content}


def completion(message_: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    """A whole Chat Completions reply."""
    finish = finish or ("tool_calls" if message_.get("tool_calls") else "stop")
    choice = {"index": 0, "message": message_, "finish_reason": finish}
    return {"id": "cmpl-1", "object": "chat.completion", "model": "kimi-k3", "choices": [choice]}


def stream(*events: dict[str, Any]) -> bytes:
    """A streamed Messages reply, of its events' data."""
    return b"".join(b"event: %s\ndata: %s\n\n" % (e["type"].encode(), dump(e)) for e in events)


def chunks(*datas: Any, done: bool = True) -> bytes:
    """A streamed Chat Completions reply, of its events' data."""
    body = b"".join(b"data: %s\n\n" % dump(data) for data in datas)
    return body + (b"data: [DONE]\n\n" if done else b"")
