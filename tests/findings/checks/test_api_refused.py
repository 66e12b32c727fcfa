from __future__ import annotations

from typing import Any

import pytest

from moontap.findings.checks.api_refused import CHECK
from tests.findings.rig import (
    Ex,
    answered,
    call,
    called,
    completion,
    found,
    message,
    result,
    said,
    text,
    use,
    user,
)

HTML = b"<html>\n<head><title>504 Gateway Time-out</title></head>\n<body></body></html>"

# A Messages history and a Chat Completions one, each with every fault that is looked for.
MESSAGES: list[Any] = [
    user("go"),
    said(use("a"), use("b")),
    user(result("a"), result("b")),
    said(text("so"), use("a")),
    user(result("a"), result("z")),
    said(use("lost")),
    user(text(" ")),
    said({"type": "thinking", "thinking": "hm", "signature": "s"}, use("c")),
    user(result("c")),
]
CHAT: list[Any] = [
    user("go"),
    called(call("a"), call("b"), reasoning_content="hm"),
    answered("a"),
    answered("b"),
    called(call("a")),
    answered("a"),
    answered("z"),
    answered(""),
    {"role": "assistant", "content": ""},
    called(call("lost"), reasoning_content="hm"),
    user("go on"),
]


def error(text: str, kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"error": {"message": text, "type": kind}}


GUARD = (
    "blocked_no_progress: moontap stopped this agent: rate limit was called 12 times in a row with "
    "the same arguments, and the result was the same each time (the limit is 12)."
)
LIMIT = "blocked_limit: moontap stopped this session: it has used 9 calls, and its limit is 9."
REPLAY = "moontap replay: no recorded request matches. Nearest: exchange 1. It differs: model"


@pytest.mark.parametrize("status", [423, 0])
@pytest.mark.parametrize(
    ("said", "reason", "begins"),
    [
        (GUARD, "guard", "moontap's guard refused the request"),
        (LIMIT, "guard", "moontap's guard refused the request"),
        (REPLAY, "replay", "moontap replay refused the request"),
        # In the mouth of others.
        ("the tool blocked_no_progress is not known", "bad-request", "The API refused"),
        ("see moontap replay: it helps", "bad-request", "The API refused"),
    ],
)
def test_what_moontap_itself_refused(said: str, reason: str, begins: str, status: int) -> None:
    """As debug logs and a second tap have it."""
    reply = {"type": "error", **error(said)}
    (finding,) = found(CHECK.code, Ex([user("go")], reply, status=status))
    assert finding.evidence.facts["reason"] == reason
    assert finding.message.startswith(begins)
    assert said[:100] in finding.message


@pytest.mark.parametrize(
    ("history", "said", "reason", "place", "party"),
    [
        (CHAT, "tool_call_id z is not found", "call-missing", (6, 0, "z"), "client"),
        (CHAT, "tool_call_id z not found", "call-missing", (6, 0, "z"), "client"),
        (CHAT, "tool_call_id  is not found", "id-empty", (7, 0, ""), "client"),
        (
            CHAT,
            "messages with role 'tool' must be a response to a preceeding message with calls.",
            "call-missing",
            (6, 0, "z"),
            "client",
        ),
        (CHAT, "tool call id a is duplicated", "id-duplicated", (4, 0, "a"), "api"),
        (
            CHAT,
            "An assistant message with 'tool_calls' must be followed by tool messages. The "
            "following tool_call_ids did not have response messages: lost",
            "result-missing",
            (9, 0, "lost"),
            "client",
        ),
        (
            CHAT,
            "Invalid request: the message at position 8 with role 'assistant' must not be empty",
            "message-empty",
            (8, None, None),
            "client",
        ),
        (
            CHAT,
            "message at position 9 must not be empty",
            "message-empty",
            (8, None, None),
            "client",
        ),
        (
            CHAT,
            "thinking is enabled but reasoning_content is missing in assistant tool call message "
            "at index 4",
            "reasoning-missing",
            (4, None, "a"),
            "client",
        ),
        (
            CHAT,
            "tool_choice 'specified' is incompatible with thinking enabled",
            "tool-choice",
            None,
            "client",
        ),
        (
            MESSAGES,
            "messages.3.content.1: `tool_use` ids must be unique",
            "id-duplicated",
            (3, 1, "a"),
            "api",
        ),
        (MESSAGES, "`tool_use` ids must be unique", "id-duplicated", (3, 1, "a"), "api"),
        (
            MESSAGES,
            "messages.4.content.1: unexpected `tool_use_id` found in `tool_result` blocks: z",
            "call-missing",
            (4, 1, "z"),
            "client",
        ),
        (
            MESSAGES,
            "`tool_use` ids were found without `tool_result` blocks immediately after: lost",
            "result-missing",
            (5, 0, "lost"),
            "client",
        ),
        (
            MESSAGES,
            "messages.6.content.0: text content blocks must be non-empty",
            "text-empty",
            (6, 0, None),
            "client",
        ),
        (
            MESSAGES,
            "text content blocks must be non-empty",
            "text-empty",
            (6, None, None),
            "client",
        ),
        (MESSAGES, "messages.99: no such thing", "bad-request", None, "client"),
        (MESSAGES, "exceeded model token limit: 262144", "context-too-long", None, "client"),
    ],
)
def test_what_a_400_points_at(
    history: list[Any],
    said: str,
    reason: str,
    place: tuple[int, int | None, str | None] | None,
    party: str,
) -> None:
    one = Ex(history, error(said), chat=history is CHAT, status=400)
    [finding] = found("api-refused", one)
    evidence = finding.evidence
    assert evidence.facts["reason"] == reason
    assert (finding.severity.value, finding.party.value) == ("error", party)
    where = (evidence.message, evidence.block, evidence.ids[0] if evidence.ids else None)
    assert where == (place or (None, None, None))
    assert f"with 400: {finding.message.partition(': ')[2]}" in finding.message
    assert finding.remedy.endswith(".")


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize(
    ("status", "body", "reason", "severity", "party"),
    [
        (401, error("Invalid Authentication"), "key-refused", "error", "client"),
        (403, error("access terminated"), "not-allowed", "error", "client"),
        (404, error("not found the model kimi-x"), "model-unknown", "error", "client"),
        (404, error("url.not_found"), "not-there", "error", "client"),
        (413, b"too large", "too-large", "error", "client"),
        (429, error("max RPM: 3", "rate_limit_reached_error"), "rate-limit", "warning", "client"),
        (429, error("check your plan", "exceeded_current_quota_error"), "quota", "error", "client"),
        (429, error("busy", "engine_overloaded_error"), "overloaded", "warning", "api"),
        (429, b"", "rate-limit", "warning", "client"),
        (500, error("?"), "server-error", "warning", "api"),
        (502, b"<html></html>", "server-error", "warning", "api"),
        (504, HTML, "gateway-timeout", "warning", "api"),
        (529, error("Overloaded", "overloaded_error"), "overloaded", "warning", "api"),
        (400, error("?"), "bad-request", "error", "client"),
        (418, b"\xff\x00", "bad-request", "error", "client"),
        (400, {"error": "Bad thing"}, "bad-request", "error", "client"),
        (400, {"detail": [{"loc": ["body"]}]}, "bad-request", "error", "client"),
    ],
)
def test_what_a_status_means(
    chat: bool, status: int, body: Any, reason: str, severity: str, party: str
) -> None:
    one = Ex([user("go")], body, chat=chat, status=status)
    [finding] = found("api-refused", one)
    assert finding.evidence.facts["reason"] == reason
    assert (finding.severity.value, finding.party.value) == (severity, party)
    assert f"`{reason}`" in CHECK.explained


@pytest.mark.parametrize(
    ("body", "form"),
    [
        (error("Invalid Authentication"), "openai-chat"),
        ({"type": "error", **error("Invalid Authentication")}, "anthropic-messages"),
        (HTML, "html"),
        (b"no", "text"),
    ],
)
def test_the_form_of_the_error(body: Any, form: str) -> None:
    [finding] = found("api-refused", Ex([user("go")], body, status=401))
    assert finding.evidence.facts["form"] == form


@pytest.mark.parametrize(
    ("reply", "chat", "status"),
    [
        (message(text("tool call id a is duplicated")), False, 200),
        (completion({"role": "assistant", "content": "429"}), True, 200),
        (None, False, 200),
        (error("in place of a reply"), True, 200),  # stream-error
    ],
)
def test_no_refusal(reply: Any, chat: bool, status: int) -> None:
    assert found("api-refused", Ex([user("go")], reply, chat=chat, status=status)) == []


def test_the_same_refusal_is_said_once() -> None:
    ids, overload = error("tool call id a is duplicated"), error("overloaded")
    exchanges = [
        Ex(CHAT, ids, chat=True, status=400),
        Ex([*CHAT, said("?"), user("go on")], ids, chat=True, status=400),
        Ex([*CHAT, said("?"), user("go on")], overload, chat=True, status=503),
    ]
    assert [f.exchange for f in found("api-refused", *exchanges)] == [1, 3]
