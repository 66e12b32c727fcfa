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

GO = user("go")
RAW_CALL = {"id": "a", "type": "function"}


def without(value: dict[str, Any], *names: str, **more: Any) -> dict[str, Any]:
    """The value with some members left out and others put in."""
    return {name: one for name, one in value.items() if name not in names} | more


@pytest.mark.parametrize(
    ("chat", "messages", "says"),
    [
        (0, [{"role": "assistnat", "content": "x"}], "`messages[1].role` is `assistnat`, which"),
        (0, [{"role": "assistnat", "content": "x"}], "Did you mean `assistant`?"),
        (1, [{"role": "User", "content": "x"}], "Did you mean `user`?"),
        (1, [{"role": "human", "content": "x"}], "Did you mean `user`?"),
        (1, [{"role": "narrator", "content": "x"}], "Chat Completions does not know."),
        (0, [{"role": "tool", "content": "x"}], "`tool`, which the Messages API does not know."),
        (1, [{"content": "x"}], "`messages[1].role` is missing."),
        (1, [{"rol": "user", "content": "x"}], "role` is missing; `rol` stands there instead."),
        (1, [{"role": 7, "content": "x"}], "role` is a number where a string belongs."),
        (1, [{"role": "user", "contnet": "x"}], "content` is missing; `contnet` stands there ins"),
        (0, [{"role": "user", "contnet": "x"}], "content` is missing; `contnet` stands there ins"),
        (1, [{"role": "user"}], "`messages[1].content` is missing."),
        (0, [{"role": "assistant"}], "`messages[1].content` is missing."),
        (0, [{"role": "user", "content": None}], "is null where a string or a list of blocks"),
        (1, [{"role": "user", "content": {"a": 1}}], "is an object where a string or a list of p"),
        (0, [user("a", "b")], "`messages[1].content[0]` is a string where a block, such as a te"),
        (1, ["hello"], "`messages[1]` is a string where an object belongs."),
        (0, [said(use("a")), user(without(result("a"), type="tool_resutl"))], "`tool_result`?"),
        (0, [user({"type": "txt", "text": "x"})], "`messages[1].content[0].type` is `txt`"),
        (0, [user({"text": "x"})], "`messages[1].content[0].type` is missing."),
        (0, [user({"type": "text", "content": "x"})], "text` is missing; `content` stands there"),
        (0, [said(without(use("a"), "name")), user(result("a"))], "content[0].name` is missing."),
        (0, [said(without(use("a"), "input", arguments={}))], "`arguments` stands there instead"),
        (
            0,
            [said(use("a")), user(without(result("a"), "tool_use_id", tool_call_id="a"))],
            "content[0].tool_use_id` is missing; `tool_call_id` stands there instead.",
        ),
        (0, [said(use("a")), user(without(result("a"), "content", contnet=1))], "`contnet` stan"),
        (1, [called(call("a", arguments={"p": 1}))], "an object where a string of JSON belongs."),
        (1, [called(call("a", name=None))], "`messages[1].tool_calls[0].function.name` is missi"),
        (1, [called(call("a", name=""))], "`messages[1].tool_calls[0].function.name` is missing."),
        (1, [called(RAW_CALL | {"name": "ls"})], "`messages[1].tool_calls[0].function` is missi"),
        (1, [{"role": "assistant", "content": "", "tool_cals": []}], "`tool_cals` stands there"),
        (1, [{"role": "assistant", "content": "", "tool_calls": {}}], "an object where a list bel"),
        (1, [called(call()), without(answered(), "tool_call_id", id="pwd:0")], "`id` stands there"),
        (1, [called(call()), without(answered(), "content", contents="")], "`contents` stands th"),
        (1, [user({"type": "image_ulr", "image_url": {}})], "Did you mean `image_url`?"),
        (1, [user(result("a"))], "is `tool_result`, a block of the Messages API, in a request of"),
    ],
)
def test_what_is_not_of_the_form(chat: int, messages: list[Any], says: str) -> None:
    findings = found("message-malformed", Ex([GO, *messages], chat=bool(chat), status=0))
    assert len(findings) == 1, [one.message for one in findings]
    assert says in findings[0].message
    assert (findings[0].severity, findings[0].party) == ("error", "client")


@pytest.mark.parametrize(
    ("chat", "messages"),
    [
        (0, [{"role": "system", "content": "Be brief."}, user("x")]),
        (1, [{"role": "developer", "content": "x"}, {"role": "cache", "content": "cache_id=1"}]),
        (1, [{"role": "function", "name": "ls", "content": "x"}]),
        (1, [without(called(call("a")), "content"), answered("a")]),
        (1, [called(call("a"), content=None), answered("a", None)]),
        (1, [{"role": "assistant", "content": None, "function_call": {"name": "ls"}}]),
        (1, [{"role": "assistant", "reasoning_content": "hm"}]),
        (1, [{"role": "assistant", "refusal": "no"}, {"role": "assistant", "content": ""}]),
        (1, [called({"id": "a", "type": "custom", "custom": {"name": "x", "input": "y"}})]),
        (1, [called(call("a", arguments="")), called(call("b", arguments=None))]),
        (1, [user({"type": "image_url", "image_url": {"url": "x"}}, text("y"))]),
        (1, [user({"type": "input_image", "x": 1}, {"type": "hologram", "x": 1})]),
        (1, [called(call("a"), content=[{"type": "think", "think": "hm"}]), answered("a")]),
        # What newer versions may have: like no known word, or a known one with a version.
        (0, [user({"type": "mcp_tool_result", "tool_use_id": "m"}, {"type": "container_upload"})]),
        (0, [said({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}})]),
        (0, [user({"type": "tool_result_v2", "x": 1}, {"type": "web_search_tool_result2"})]),
        (0, [user({"type": "image"}, {"type": "document"}, {"type": "fallback"})]),
        (0, [said({"type": "redacted_thinking", "data": "x"}, use("a")), user(result("a"))]),
        # No id, no content, no input or an odd one is what other checks tell.
        (0, [said(without(use("a"), input='{"p":1}'))]),
        (0, [said(without(use("a"), "id"), without(use("b"), "input"))]),
        (0, [said(use("a")), user(without(result("a"), "content"))]),
        (1, [called(without(call("a"), "id")), without(answered("a"), "tool_call_id")]),
    ],
)
def test_near_misses(chat: int, messages: list[Any]) -> None:
    assert found("message-malformed", Ex([GO, *messages], chat=bool(chat))) == []


TYPO = {"role": "assistnat", "content": "x"}


@pytest.mark.parametrize(
    ("status", "messages", "expected"),
    [
        (400, [TYPO], ["error"]),
        (200, [TYPO], ["warning"]),
        (200, [{"role": "narrator", "content": "x"}], []),
        (200, [called(call("a", arguments={"p": 1}))], ["info"]),
        (200, [TYPO, TYPO | {"content": "y"}], ["warning"]),
    ],
)
def test_what_the_api_answered_is_less(
    status: int, messages: list[Any], expected: list[str]
) -> None:
    reply = completion(called(content="ok")) if status == 200 else {"error": {"message": "no"}}
    findings = found("message-malformed", Ex([GO, *messages], reply, chat=True, status=status))
    assert [finding.severity for finding in findings] == expected
    if len(messages) > 1:
        assert "(and 1 place like it)" in findings[0].message


def test_it_is_said_once_and_not_of_what_a_reply_delivered() -> None:
    first = [GO, TYPO]
    grown = [*first, user("more"), TYPO]
    assert len(found("message-malformed", Ex(first, chat=True), Ex(grown, chat=True))) == 1
    nameless = without(use("a"), "name")
    history = [GO, said(nameless), user(result("a"))]
    assert found("message-malformed", Ex([GO], message(nameless)), Ex(history)) == []


@pytest.mark.parametrize("arguments", [{"p": 1}, ["p"]])
def test_arguments_in_another_form_are_not_the_models(arguments: Any) -> None:
    function = {"name": "pwd", "parameters": {"type": "object", "additionalProperties": False}}
    tools = [{"type": "function", "function": function}]
    history = [GO, called(call("a", arguments=arguments)), answered("a")]
    ask = Ex(history, ask={"tools": tools}, chat=True)
    assert {one.party for one in found("arguments-off-schema", ask)} <= {"client"}
    assert found("arguments-invalid", ask) == []
    assert len(found("message-malformed", ask)) == 1
