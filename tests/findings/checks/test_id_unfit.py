from __future__ import annotations

from typing import Any

import pytest

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

GO = [user("go")]
LONG = "chatcmpl-tool-dbac1b68-251d-4882-9812-e3a1f58d4f7d"
COLON = [*GO, said(use("pwd:0")), user(result("pwd:0"))]
REFUSAL = {
    "type": "error",
    "error": {
        "type": "invalid_request_error",
        "message": "messages.1.content.0.tool_use.id: String should match pattern "
        "'^[a-zA-Z0-9_-]+$'",
    },
}


def error(message_: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": message_}}


@pytest.mark.parametrize(
    ("name", "exchanges", "severities"),
    [
        ("a colon on Messages", [Ex(GO, message(use("pwd:0")))], ["info"]),
        ("a dot in a history", [Ex([*GO, said(use("functions.pwd"))])], ["info"]),
        (
            "more than 40 characters on Chat",
            [Ex(GO, completion(called(call(LONG))), chat=True)],
            ["info"],
        ),
        ("the API refuses it", [Ex(COLON, REFUSAL, status=400)], ["error"]),
        (
            "later, elsewhere",
            [Ex(GO, message(use("pwd:0"))), Ex(COLON, REFUSAL, status=400)],
            ["info", "error"],
        ),
        (
            "refused for another reason",
            [Ex(COLON, error("tool call id pwd:0 is duplicated"), status=400)],
            ["info"],
        ),
        (
            "refused for the form of a tool's name",
            [Ex(COLON, error("tools.0.name: String should match pattern '^x$'"), status=400)],
            ["info"],
        ),
        (
            "too long for the API",
            [
                Ex(
                    [*GO, called(call(LONG)), answered(LONG)],
                    error("Invalid 'messages[1].tool_calls[0].id': string too long."),
                    chat=True,
                    status=400,
                )
            ],
            ["error"],
        ),
    ],
)
def test_ids_that_a_strict_api_refuses(
    name: str, exchanges: list[Ex], severities: list[str]
) -> None:
    assert [f.severity for f in found("id-unfit", *exchanges)] == severities


@pytest.mark.parametrize(
    ("name", "exchange"),
    [
        ("K3's own on Messages", Ex(GO, message(use("mcp__srv__tool-5_0")))),
        ("a colon on Chat", Ex(GO, completion(called(call("functions.pwd:0"))), chat=True)),
        ("40 characters on Chat", Ex(GO, completion(called(call("x" * 40))), chat=True)),
        ("long on Messages", Ex(GO, message(use("x" * 64)))),
        ("none at all", Ex(GO, message(use("")))),
        (
            "a 400 with fine ids",
            Ex([*GO, called(call("a")), answered("a")], REFUSAL, chat=True, status=400),
        ),
        ("text", Ex(GO, message(text("pwd:0")))),
    ],
)
def test_near_misses(name: str, exchange: Ex) -> None:
    assert found("id-unfit", exchange) == []
