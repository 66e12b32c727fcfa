from __future__ import annotations

from typing import Any

import pytest

from moontap.standin import Call, Conversation, Script, Step
from moontap.standin.decide import Kind, decide
from moontap.standin.seen import Protocol, RequestError, read
from tests.standin.bodies import answered, called, chat_request, messages_request, result, used


def step(*commands: str) -> Step:
    return Step(calls=tuple(Call("Bash", {"command": c}) for c in commands))


SCRIPT = Script(
    default=Conversation(steps=(step("a"), step("b", "c"), step("a")), final="bye"),
    conversations=(Conversation(match="HELPER", steps=(step("h"),), final="helped"),),
)
LOST = [
    {"role": "assistant", "content": [{"type": "text", "text": "again"}]},
    {"role": "user", "content": "(no content)"},
]
BC = {"role": "assistant", "content": used("1", "b")["content"] + used("2", "c")["content"]}


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        pytest.param([], 0, id="start"),
        pytest.param([used("x", "a")], 0, id="called, no result"),
        pytest.param([used("x", "a"), result("x")], 1, id="one pair"),
        pytest.param([used("x", "other"), result("x")], 0, id="other arguments"),
        pytest.param([used("x", "a"), result("x"), *LOST], 1, id="a lost pair is played again"),
        pytest.param([used("x", "a"), result("x"), *LOST, *LOST, *LOST], 1, id="for ever"),
        pytest.param([used("x", "a"), result("x"), BC, result("1")], 1, id="half of a step"),
        pytest.param([used("x", "a"), result("x"), BC, result("2", "1")], 2, id="parallel calls"),
        pytest.param(
            [used("x", "a"), result("x"), BC, result("1", "2"), used("x", "a"), result("x")],
            3,
            id="the same call and id twice are two occurrences",
        ),
        pytest.param([BC, result("1", "2"), used("x", "a"), result("x")], 1, id="order counts"),
        pytest.param([used("x", "a"), used("x", "a"), result("x")], 1, id="latest open call"),
    ],
)
def test_the_step_follows_from_the_history_alone(history: list[Any], expected: int) -> None:
    decision = decide(read(Protocol.MESSAGES, messages_request(*history)), SCRIPT)
    assert decision.step == expected
    assert decision.kind is (Kind.FINAL if expected == 3 else Kind.STEP)


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([], 0),
        ([called("Bash:0", '{"command": "a"}'), answered("Bash:0")], 1),
        ([called("Bash:0", '{"command":"a"}'), answered("Bash:1")], 0),
        ([called(None, '{"command":"a"}'), answered(None)], 1),
        ([called("", '{"command":"a"}'), answered("")], 1),
        ([called("Bash:0", "{broken"), answered("Bash:0")], 0),
    ],
)
def test_chat_histories(history: list[Any], expected: int) -> None:
    assert decide(read(Protocol.CHAT, chat_request(*history)), SCRIPT).step == expected


def test_raw_arguments_are_compared_as_they_stand() -> None:
    script = Script(default=Conversation(steps=(Step(calls=(Call("Bash", "{broken"),)),)))
    history = chat_request(called("x", "{broken"), answered("x"))
    assert decide(read(Protocol.CHAT, history), script).kind is Kind.FINAL


@pytest.mark.parametrize(
    ("tools", "history", "kind"),
    [
        ([], [], Kind.ASIDE),
        ([{"name": "Read"}], [], Kind.ASIDE),
        ([{"name": "Read"}, {"name": "Bash"}], [], Kind.STEP),
        (None, [], Kind.ASIDE),
    ],
)
def test_side_requests_take_no_part(tools: Any, history: list[Any], kind: Kind) -> None:
    decision = decide(read(Protocol.MESSAGES, messages_request(tools=tools)), SCRIPT)
    assert decision.kind is kind
    assert decision.takes_part == (kind is not Kind.ASIDE)
    assert (decision.text == "ok") == (kind is Kind.ASIDE)


@pytest.mark.parametrize(
    "content",
    [
        "please, HELPER",
        [{"type": "text", "text": "reminder"}, {"type": "text", "text": "HELPER, go"}],
    ],
)
def test_a_conversation_is_known_by_its_opening(content: Any) -> None:
    request = messages_request()
    request["messages"] = [{"role": "user", "content": content}]
    decision = decide(read(Protocol.MESSAGES, request), SCRIPT)
    assert (decision.conversation, decision.calls[0].arguments) == (0, {"command": "h"})


def test_text_after_the_opening_does_not_change_the_conversation() -> None:
    later = {"role": "user", "content": "HELPER"}
    request = messages_request(used("x", "a"), result("x"), later)
    assert decide(read(Protocol.MESSAGES, request), SCRIPT).conversation == -1


@pytest.mark.parametrize("body", [None, [], {}, {"messages": "x"}, {"messages": None}, 3, "x"])
@pytest.mark.parametrize("protocol", list(Protocol))
def test_what_is_no_request(protocol: Protocol, body: Any) -> None:
    with pytest.raises(RequestError, match="messages"):
        read(protocol, body)


@pytest.mark.parametrize(
    "message",
    [
        None,
        3,
        {},
        {"role": "assistant"},
        {"role": "assistant", "content": None, "tool_calls": None},
        {"role": "assistant", "content": [None, {"type": "tool_use"}], "tool_calls": [None, {}]},
        {"role": "assistant", "content": "x", "tool_calls": [{"function": 3}]},
        {"role": "user", "content": [{"type": "tool_result"}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": ["x"]}]},
        {"role": "tool", "content": [{"type": "text", "text": None}]},
        {"role": "system", "content": [{"type": "text", "text": "in the middle"}]},
    ],
)
@pytest.mark.parametrize("protocol", list(Protocol))
def test_odd_messages_are_passed_over(protocol: Protocol, message: Any) -> None:
    make = messages_request if protocol is Protocol.MESSAGES else chat_request
    assert decide(read(protocol, make(message)), SCRIPT).step == 0
