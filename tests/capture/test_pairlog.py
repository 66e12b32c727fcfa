"""The lines of `pairs.jsonl` from flows, field by field."""

import json
from typing import Any

import pytest
from mitmproxy import http
from mitmproxy.test import tflow

from moontap.capture import metadata
from moontap.capture.pairlog import PairLog

RESULT = {"type": "tool_result", "tool_use_id": "Bash_0", "content": "/w"}
USE = {"type": "tool_use", "id": "Bash_0", "name": "Bash", "input": {"command": "pwd"}}
GO = {"role": "user", "content": "go"}
FIELDS = [
    *("v", "status", "protocol", "session", "agent", "model", "tool", "id", "upstream_id"),
    *("rewritten", "duplicate", "arguments", "arguments_sha256", "result", "result_sha256"),
    *("message_id", "choice", "index", "request_id", "called_at", "answered_at", "latency_s"),
    *("call_flow", "result_flow", "source"),
]


def exchange(
    messages: list[Any],
    reply: dict[str, Any] | None,
    at: float = 1_800_000_000.0,
    headers: tuple[tuple[bytes, bytes], ...] = (),
) -> http.HTTPFlow:
    """A whole Messages exchange that took half a second."""
    flow = tflow.tflow(resp=True)
    body = json.dumps({"model": "kimi-k3", "messages": messages}).encode()
    url = "https://api.moonshot.cn/anthropic/v1/messages?beta=true"
    flow.request = http.Request.make("POST", url, body, headers)
    flow.request.timestamp_start = at
    assert flow.response
    flow.response.status_code = 200
    flow.response.headers = http.Headers(
        ((b"content-type", b"application/json"), (b"Msh-Request-Id", b"req-1"))
    )
    flow.response.raw_content = json.dumps(reply).encode() if reply else b""
    flow.response.timestamp_end = at + 0.5
    return flow


def reply(*content: dict[str, Any]) -> dict[str, Any]:
    return {"id": "msg_1", "type": "message", "model": "kimi-k3-0901", "content": list(content)}


def answered(result: dict[str, Any] = RESULT, use: dict[str, Any] = USE) -> list[Any]:
    return [GO, {"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]


def lines_of(*flows: http.HTTPFlow, limit: int = 65536) -> list[dict[str, Any]]:
    log = PairLog(limit)
    lines = [line for flow in flows for line in _lines(log, flow)]
    return [*lines, *log.close()]


def _lines(log: PairLog, flow: http.HTTPFlow) -> list[dict[str, Any]]:
    logged = log.exchange(flow)
    return list(logged.lines) if logged else []


def test_every_field() -> None:
    who = ((b"X-Claude-Code-Session-Id", b"s-1"), (b"X-Claude-Code-Agent-Id", b"a-1"))
    call = exchange([GO], reply(USE), headers=who)
    result = exchange(answered(), reply(), at=1_800_000_002.0, headers=who)
    (line,) = lines_of(call, result)
    assert list(line) == FIELDS
    sha = {key: line.pop(key) for key in ("arguments_sha256", "result_sha256")}
    assert line == {
        "v": 1,
        "status": "ok",
        "protocol": "anthropic-messages",
        "session": "s-1",
        "agent": "a-1",
        "model": "kimi-k3",
        "tool": "Bash",
        "id": "Bash_0",
        "upstream_id": "Bash_0",
        "rewritten": False,
        "duplicate": False,
        "arguments": {"command": "pwd"},
        "result": "/w",
        "message_id": "msg_1",
        "choice": 0,
        "index": 0,
        "request_id": "req-1",
        "called_at": "2027-01-15T08:00:00.500Z",
        "answered_at": "2027-01-15T08:00:02.000Z",
        "latency_s": 1.5,
        "call_flow": call.id,
        "result_flow": result.id,
        "source": "live",
    }
    # printf '%s' '{"command":"pwd"}' | sha256sum, and the same of '"/w"'
    assert sha == {
        "arguments_sha256": "d66a53fedbf412beeadb3868ece33ec9e7e20e9aa0224b75a70c5655b8ca2e2c",
        "result_sha256": "000b3d695a3c8c9bed44140c8f054f299d0a8e6863094b8b697784170b41c56b",
    }


def test_a_rewritten_call_names_both_ids() -> None:
    call = exchange([GO], reply({**USE, "id": "Bash_0_tnew"}))
    call.metadata[metadata.UPSTREAM_BODY] = json.dumps(reply(USE)).encode()
    mine = {**USE, "id": "Bash_0_tnew"}
    result = exchange(answered({**RESULT, "tool_use_id": "Bash_0_tnew"}, mine), reply(USE))
    first, second = lines_of(call, result)
    assert (first["id"], first["upstream_id"], first["rewritten"]) == (
        "Bash_0_tnew",
        "Bash_0",
        True,
    )
    # The second reply's Bash_0 was used before, under whatever id the client knows it.
    assert (second["status"], second["duplicate"], second["rewritten"]) == (
        "unanswered",
        True,
        False,
    )


def test_a_history_seen_for_the_first_time() -> None:
    (line,) = lines_of(exchange(answered(), reply()))
    unknown = ["message_id", "choice", "index", "request_id", "called_at", "answered_at"]
    assert {line[key] for key in [*unknown, "latency_s", "call_flow"]} == {None}
    assert (line["source"], line["status"], line["result"]) == ("history", "ok", "/w")


def test_an_orphan() -> None:
    (line,) = lines_of(exchange([GO, {"role": "user", "content": [RESULT]}], reply()))
    assert (line["status"], line["tool"], line["arguments"]) == ("orphan", None, None)
    assert (line["id"], line["result"]) == ("Bash_0", "/w")


@pytest.mark.parametrize(
    ("content", "limit", "shown", "truncated"),
    [
        ("x" * 10, 10, "x" * 10, False),
        ("x" * 11, 10, "x" * 10, True),
        ([{"type": "text", "text": "ab"}], 100, [{"type": "text", "text": "ab"}], False),
        ([{"type": "text", "text": "x" * 99}], 50, [{"type": "text", "text": "x" * 50}], True),
        ([], 10, [], False),
        (None, 10, None, False),
    ],
)
def test_results_past_the_limit_are_cut(
    content: Any, limit: int, shown: Any, truncated: bool
) -> None:
    whole = lines_of(exchange(answered({**RESULT, "content": content}), reply()))[0]
    (line,) = lines_of(exchange(answered({**RESULT, "content": content}), reply()), limit=limit)
    assert line["result"] == shown
    assert line.get("result_truncated", False) is truncated
    assert line["result_sha256"] == whole["result_sha256"]


def test_a_result_without_content() -> None:
    result = {"type": "tool_result", "tool_use_id": "Bash_0"}
    (line,) = lines_of(exchange(answered(result), reply()))
    assert (line["status"], line["result"]) == ("ok", None)


def test_arguments_that_do_not_parse_are_kept_as_they_are() -> None:
    flow = exchange([GO], None)
    assert flow.response
    flow.response.headers["content-type"] = "text/event-stream"
    events = [
        {"type": "message_start", "message": {"id": "m", "content": []}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "tool_use", "id": "Bash_0", "name": "Bash", "input": {}},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": '{"command": "pw'},
        },
    ]
    flow.response.raw_content = b"".join(b"data: %s\n\n" % json.dumps(e).encode() for e in events)
    (line,) = lines_of(flow)
    assert (line["status"], line["arguments"]) == ("unanswered", '{"command": "pw')


@pytest.mark.parametrize(
    ("path", "paired"),
    [
        ("/anthropic/v1/messages", True),
        ("/coding/v1/messages?beta=true", True),
        ("/anthropic/v1/messages/count_tokens", False),
        ("/v1/models", False),
    ],
)
def test_only_paired_paths_are_read(path: str, paired: bool) -> None:
    flow = exchange([GO], reply(USE))
    flow.request.path = path
    assert (PairLog().exchange(flow) is not None) is paired


def test_an_unreadable_request_is_said() -> None:
    flow = exchange([GO], reply(USE))
    flow.request.content = b"{"
    with pytest.raises(ValueError, match="not a Messages request"):
        PairLog().exchange(flow)


def test_a_result_that_no_value_holds_costs_no_other_line() -> None:
    uses = [{**USE, "id": f"Bash_{n}"} for n in range(3)]
    results = [{**RESULT, "tool_use_id": f"Bash_{n}", "content": f"r{n}"} for n in range(3)]
    messages = [GO, {"role": "assistant", "content": uses}, {"role": "user", "content": results}]
    flow = exchange(messages, reply())
    number = b"9" * 5000
    flow.request.content = (flow.request.content or b"").replace(b'"r1"', number)
    assert [line["result"] for line in lines_of(flow)] == ["r0", number.decode(), "r2"]
