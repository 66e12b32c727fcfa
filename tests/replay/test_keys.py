"""What counts of a request, and what does not: two requests, and whether they have one key."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moontap.jsonpaths import compile_path
from moontap.replay.keys import Keys, without
from moontap.rules import Rules
from moontap.wire.types import Protocol
from tests.replay.recording import rules_of
from tests.samples import CHAT, MESSAGES, chat_request, dump, messages_request

REMINDER = "<system-reminder>Todo: nothing</system-reminder>"


def messages(*said: tuple[str, Any], **more: Any) -> bytes:
    return dump(
        {"model": "kimi-k3", "messages": [{"role": r, "content": c} for r, c in said], **more}
    )


def use(id_: str, command: str = "pwd", **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": "Bash", "input": {"command": command}, **more}


def result(id_: str, content: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id_, "content": content, **more}


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **more}


def one(*content: dict[str, Any]) -> bytes:
    """A user message after a turn with the calls a, b and a again."""
    calls = ("assistant", [use("a"), use("b", "ls"), use("a", "date")])
    return messages(("user", "go"), calls, ("user", list(content)))


def chat(*said: dict[str, Any], **more: Any) -> bytes:
    return dump({"model": "kimi-k3", "messages": list(said), **more})


def call(id_: str, arguments: str = '{"command": "pwd"}', **more: Any) -> dict[str, Any]:
    function = {"name": "Bash", "arguments": arguments}
    return {"id": id_, "type": "function", "function": function, **more}


def asks(*calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **more}


def answers(id_: str, content: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id_, "content": content, **more}


GO = {"role": "user", "content": "go"}
TOOL = {"name": "Bash", "input_schema": {"type": "object"}}
READ = {"name": "Read", "input_schema": {"type": "object"}}
LATER = {"role": "system", "content": "one"}
CACHED = {"cache_control": {"type": "ephemeral"}}

SAME = {
    "ids of calls": (
        MESSAGES,
        messages_request([("Bash_0", "pwd", "/w"), ("Bash_0", "ls", "a")]),
        messages_request([("Bash_0_tq4k2xw7m3a", "pwd", "/w"), ("Bash_0_tb", "ls", "a")]),
    ),
    "ids of calls in chat": (
        CHAT,
        chat_request([("Bash:0", "pwd", "/w"), ("Bash:0", "ls", "a")]),
        chat_request([("x", "pwd", "/w"), ("y", "ls", "a")]),
    ),
    "a string and one text block": (
        MESSAGES,
        messages(("user", "go")),
        messages(("user", [text("go")])),
    ),
    "is_error false and absent": (
        MESSAGES,
        one(result("a", is_error=False)),
        one(result("a")),
    ),
    "a result's string and text block": (
        MESSAGES,
        one(result("a", "ok")),
        one(result("a", [text("ok", **CACHED)])),
    ),
    "cache marks": (
        MESSAGES,
        one(result("a", **CACHED), text("go", **CACHED)),
        one(result("a"), text("go")),
    ),
    "a thinking signature": (
        MESSAGES,
        messages(("assistant", [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}])),
        messages(("assistant", [{"type": "thinking", "thinking": "hm", "signature": ""}])),
    ),
    "reminders, as a block, in a text and as a message": (
        MESSAGES,
        messages(
            ("user", [text(REMINDER), text(f"go\n{REMINDER}\n")]),
            ("user", REMINDER),
            ("assistant", "x"),
        ),
        messages(("user", "go"), ("assistant", "x")),
    ),
    "a reminder in a result": (
        MESSAGES,
        one(result("a", f"ok\n\n{REMINDER}")),
        one(result("a", "ok")),
    ),
    "dates and ids in texts, results and arguments": (
        MESSAGES,
        messages(
            ("user", "It is 2026-11-29."),
            ("assistant", [use("a", "touch 927d3e36-6ca2-4fcb-93c8-ebedc68d5c53")]),
            ("user", [result("a", "Sun Nov 29 16:41:30 UTC 2026")]),
        ),
        messages(
            ("user", "It is 2026-12-01."),
            ("assistant", [use("a", "touch 00000000-6ca2-4fcb-93c8-ebedc68d5c53")]),
            ("user", [result("a", "Tue Dec  1 09:00:00 UTC 2026")]),
        ),
    ),
    "the system prompt": (
        MESSAGES,
        messages(("user", "go"), system="one"),
        messages(("user", "go"), system=[text("two", **CACHED)]),
    ),
    "Claude Code's system message behind the first": (
        MESSAGES,
        messages(("user", "go"), ("system", "Working directory: /a")),
        messages(("user", "go"), ("system", [text("Working directory: /b")])),
    ),
    "leading system and developer messages": (
        CHAT,
        chat({"role": "system", "content": "one"}, GO),
        chat({"role": "developer", "content": "two"}, {"role": "system", "content": "three"}, GO),
    ),
    "the order of tools, and their cache marks": (
        MESSAGES,
        messages(("user", "go"), tools=[TOOL, {**READ, **CACHED}]),
        messages(("user", "go"), tools=[READ, TOOL]),
    ),
    "no tools": (MESSAGES, messages(("user", "go"), tools=[]), messages(("user", "go"))),
    "limits, metadata and the order of members": (
        MESSAGES,
        messages(("user", "go"), max_tokens=9, metadata={"user_id": "a"}),
        dump({"temperature": 1, "messages": [GO], "model": "kimi-k3"}),
    ),
    "spaces and escapes": (
        MESSAGES,
        b'{ "model" : "kimi-k3", "messages":[{"content":"\\u0067o","role":"user"}] }',
        messages(("user", "go")),
    ),
    "the order of parallel results": (
        MESSAGES,
        one(result("a", "1"), result("b", "2"), result("a", "3")),
        one(result("b", "2"), result("a", "1"), result("a", "3")),
    ),
    "the order of parallel results in chat": (
        CHAT,
        chat(GO, asks(call("a"), call("b")), answers("a", "1"), answers("b", "2"), GO),
        chat(GO, asks(call("a"), call("b")), answers("b", "2"), answers("a", "1"), GO),
    ),
    "nulls, empty members and indexes of a streamed call": (
        CHAT,
        chat(GO, asks(call("a", index=0), refusal=None, annotations=[], audio=None)),
        chat(GO, {**asks(call("a")), "content": ""}),
    ),
    "how arguments are written": (
        CHAT,
        chat(GO, asks(call("a", '{"a":1,"b":[2]}'))),
        chat(GO, asks(call("a", '{ "b": [2], "a": 1 }'))),
    ),
    "the path's prefix and the query": (
        "/coding/v1/messages?beta=true",
        messages(("user", "go")),
        messages(("user", "go")),
    ),
    "citations of a text": (
        MESSAGES,
        messages(("assistant", [text("x", citations=[{"cited_text": "a"}])])),
        messages(("assistant", [text("x")])),
    ),
    "who called a tool": (
        MESSAGES,
        messages(("assistant", [use("a", caller={"type": "direct"}, index=1)])),
        messages(("assistant", [use("a")])),
    ),
    "a byte order mark": (
        CHAT,
        b"\xef\xbb\xbf" + chat(GO),
        chat(GO),
    ),
    "masks of two lengths": (
        MESSAGES,
        one(result("a", "key=*********")),
        one(result("a", "key=**************")),
    ),
}

OTHER = {
    "the model": (MESSAGES, messages(("user", "go")), messages(("user", "go"), model="kimi-k2")),
    "streamed and whole": (
        MESSAGES,
        messages_request(stream=True),
        messages_request(stream=False),
    ),
    "a text": (MESSAGES, messages(("user", "go")), messages(("user", "go on"))),
    "a role": (MESSAGES, messages(("user", "go")), messages(("assistant", "go"))),
    "an argument": (
        MESSAGES,
        messages_request([("a", "pwd", "x")]),
        messages_request([("a", "ls", "x")]),
    ),
    "a result": (
        CHAT,
        chat_request([("a", "pwd", "x")]),
        chat_request([("a", "pwd", "y")]),
    ),
    "a failed result": (MESSAGES, one(result("a", is_error=True)), one(result("a"))),
    "which call a result answers": (
        MESSAGES,
        one(result("a", "1"), result("b", "2")),
        one(result("b", "1"), result("a", "2")),
    ),
    "which call a result answers in chat": (
        CHAT,
        chat(GO, asks(call("a"), call("b")), answers("a", "1"), answers("b", "2")),
        chat(GO, asks(call("a"), call("b")), answers("a", "2"), answers("b", "1")),
    ),
    "a result that no call waits for": (MESSAGES, one(result("a")), one(result("nobody"))),
    "a call's arguments that do not parse": (
        CHAT,
        chat(GO, asks(call("a", '{"a":'))),
        chat(GO, asks(call("a", '{"b":'))),
    ),
    "one text in two blocks": (
        MESSAGES,
        messages(("user", [text("a"), text("b")])),
        messages(("user", "a\nb")),
    ),
    "a text in a result and beside it": (
        MESSAGES,
        one(result("a", ""), text("x")),
        one(result("a", "x")),
    ),
    "a tool more": (
        MESSAGES,
        messages(("user", "go"), tools=[TOOL]),
        messages(("user", "go"), tools=[TOOL, READ]),
    ),
    "a tool's schema": (
        CHAT,
        chat(GO, tools=[{"type": "function", "function": {"name": "a", "parameters": {}}}]),
        chat(GO, tools=[{"type": "function", "function": {"name": "a", "parameters": {"x": 1}}}]),
    ),
    "thinking": (
        MESSAGES,
        messages(("assistant", [{"type": "thinking", "thinking": "a", "signature": ""}])),
        messages(("assistant", [{"type": "thinking", "thinking": "b", "signature": ""}])),
    ),
    "reasoning": (
        CHAT,
        chat(GO, asks(call("a"), reasoning_content="a")),
        chat(GO, asks(call("a"), reasoning_content="b")),
    ),
    "a system message within a chat": (
        CHAT,
        chat(GO, LATER),
        chat(GO, {**LATER, "content": "two"}),
    ),
    "an image": (
        MESSAGES,
        messages(("user", [{"type": "image", "source": {"data": "aGE="}}])),
        messages(("user", [{"type": "image", "source": {"data": "aGI="}}])),
    ),
    "a message more": (MESSAGES, messages(("user", "go")), messages(("user", "go"), ("user", "x"))),
    "a content that no protocol knows": (
        CHAT,
        chat({"role": "user", "content": {"type": "text", "text": "A"}}),
        chat({"role": "user", "content": {"type": "text", "text": "delete all"}}),
    ),
    "a content that is a number": (
        MESSAGES,
        messages(("user", 1)),
        messages(("user", 2)),
    ),
    "a content that is false, and none": (
        MESSAGES,
        messages(("user", False)),
        messages(("user", None)),
    ),
    "a result's content that no protocol knows": (
        MESSAGES,
        one(result("a", {"a": 1})),
        one(result("a", {"a": 2})),
    ),
    "calls that are no list": (
        CHAT,
        chat(GO, {"role": "assistant", "tool_calls": {"a": 1}}),
        chat(GO, {"role": "assistant", "tool_calls": {"a": 2}}),
    ),
    "an index in a text": (
        CHAT,
        chat({"role": "user", "content": [text("x", index=1)]}),
        chat({"role": "user", "content": [text("x", index=2)]}),
    ),
    "whether a document is cited": (
        MESSAGES,
        messages(("user", [{"type": "document", "citations": {"enabled": True}}])),
        messages(("user", [{"type": "document", "citations": {"enabled": False}}])),
    ),
    "a signature of a block that is no thinking": (
        MESSAGES,
        messages(("user", [{"type": "signed", "signature": "a"}])),
        messages(("user", [{"type": "signed", "signature": "b"}])),
    ),
    "a member of a tool": (
        MESSAGES,
        messages(("user", "go"), tools=[{**TOOL, "index": 1}]),
        messages(("user", "go"), tools=[{**TOOL, "index": 2}]),
    ),
    "a caller among a tool's members": (
        MESSAGES,
        messages(("user", "go"), tools=[{**TOOL, "caller": "a"}]),
        messages(("user", "go"), tools=[{**TOOL, "caller": "b"}]),
    ),
    "an image and a text that says the same": (
        MESSAGES,
        one(result("a", [{"type": "image", "source": "x"}])),
        one(result("a", '["image",{"source":"x"}]')),
    ),
}


def keys_of(path: str, *bodies: bytes, rules: Rules | None = None) -> list[bytes]:
    """Their keys; each by a reader that has seen nothing else."""
    return [Keys(rules or Rules()).key("POST", path, body).whole for body in bodies]


@pytest.mark.parametrize("case", SAME)
def test_these_ask_for_the_same(case: str) -> None:
    path, first, second = SAME[case]
    assert len({*keys_of(path, first), *keys_of(path.replace("/coding", ""), second)}) == 1


@pytest.mark.parametrize("case", OTHER)
def test_these_do_not(case: str) -> None:
    path, first, second = OTHER[case]
    assert len({*keys_of(path, first, second)}) == 2


def test_the_protocols_are_apart() -> None:
    body = messages(("user", "go"))
    assert keys_of(MESSAGES, body) != keys_of(CHAT, body)
    assert keys_of(MESSAGES, body) != keys_of(f"{MESSAGES}/count_tokens", body)


@pytest.mark.parametrize(
    ("path", "first", "second"),
    [
        (MESSAGES, messages(("user", "go"), system="a"), messages(("user", "go"), system="b")),
        (CHAT, chat(LATER, GO), chat({**LATER, "content": "two"}, GO)),
    ],
)
def test_the_system_prompt_is_context_or_by_rule_counts(
    path: str, first: bytes, second: bytes, tmp_path: Any
) -> None:
    made = [Keys(Rules()).key("POST", path, body) for body in (first, second)]
    assert made[0].whole == made[1].whole
    assert made[0].context != made[1].context
    rules = rules_of(tmp_path, "replay: {system: true}")
    assert len({*keys_of(path, first, second, rules=rules)}) == 2
    assert len({*keys_of(path, first, first, rules=rules)}) == 1


RULES = """
replay:
  ignore: ["$.messages[*].content[?@.type == 'note']", "$.tools[?@.name == 'Read']"]
  replace: [{pattern: '/tmp/run-\\d+', with: /run}]
"""


def test_rules_leave_out_and_replace(tmp_path: Any) -> None:
    note = {"type": "note", "text": "any"}
    rules = rules_of(tmp_path, RULES)
    first = messages(("user", [note, text("in /tmp/run-1"), note]), tools=[TOOL, READ])
    second = messages(("user", "in /tmp/run-22"), tools=[TOOL])
    assert len({*keys_of(MESSAGES, first, second)}) == 2
    assert len({*keys_of(MESSAGES, first, second, rules=rules)}) == 1


@pytest.mark.parametrize(
    ("path", "left"),
    [
        ("$.a", {"b": [1, {"a": 2}]}),
        ("$..a", {"b": [1, {}]}),
        ("$['a', 'a']", {"b": [1, {"a": 2}]}),
        ("$.b[*]", {"a": {"a": 1}, "b": []}),
        ("$.b[0, 1]", {"a": {"a": 1}, "b": []}),
        ("$.x", {"a": {"a": 1}, "b": [1, {"a": 2}]}),
    ],
)
def test_what_a_path_leaves(path: str, left: object) -> None:
    body = dump({"a": {"a": 1}, "b": [1, {"a": 2}]})
    assert json.loads(without(body, [compile_path(path)])) == left


@pytest.mark.parametrize(
    ("method", "path", "first", "second", "same"),
    [
        ("GET", "/v1/models?b=2&a=1", b"", b"", True),
        ("POST", "/v1/files", b'{"a":1,"b":"2026-11-29"}', b'{ "b":"2026-11-30","a":1}', True),
        ("POST", "/v1/files", b'{"a":1}', b'{"a":2}', False),
        ("POST", "/v1/files", b"\x00a", b"\x00b", False),
        ("POST", "/v1/messages/count_tokens", one(result("a")), one(result("a", **CACHED)), True),
        ("POST", MESSAGES, b"not JSON", b"nor this", False),
        ("POST", MESSAGES, b"[]", b"[]", True),
        ("POST", MESSAGES, b'{"messages":[1,null]}', b'{"messages":[1,null]}', True),
        ("POST", MESSAGES, b"[" * 9999, b"[" * 9998, False),
    ],
)
def test_other_requests_by_method_path_and_body(
    method: str, path: str, first: bytes, second: bytes, same: bool
) -> None:
    made = {Keys(Rules()).key(method, path, body).whole for body in (first, second)}
    assert (len(made) == 1) == same


@pytest.mark.parametrize("second", [b"[]", b"[1]", b"null", b"{}", b'[{"role":"user"}]'])
@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_where_messages_stand_twice_the_second_count(path: str, second: bytes) -> None:
    body = dump({"messages": [{"role": "user", "content": str(n) * 300} for n in range(60)]})
    twice = body[:-1] + b',"messages":' + second + b"}"
    keys = Keys(Rules())
    known = keys.key("POST", path, body)
    assert keys.key("POST", path, twice) == Keys(Rules()).key("POST", path, twice) != known


@pytest.mark.parametrize(
    ("one_path", "other_path", "same"),
    [
        ("/v1/models?a=1&b=2", "/v1/models?b=2&a=1", True),
        ("/v1/models?at=2026-11-29", "/v1/models?at=2026-11-30", True),
        ("/v1/models?a=1", "/v1/models?a=2", False),
        ("/v1/models", "/v1/files", False),
    ],
)
def test_a_query_counts_there(one_path: str, other_path: str, same: bool) -> None:
    made = {Keys(Rules()).key("GET", path, b"").whole for path in (one_path, other_path)}
    assert (len(made) == 1) == same


JANUARY, JUNE = "on 2026-01-01?", "on 2026-06-01?"
BOTH = ("assistant", [use("a"), use("b")])


@pytest.mark.parametrize(
    ("path", "first", "second", "unlike"),
    [
        (MESSAGES, messages(("user", JANUARY)), messages(("user", JUNE)), 1),
        (MESSAGES, messages(("user", JANUARY)), messages(("user", [text(JANUARY, **CACHED)])), 0),
        (
            CHAT,
            chat(GO, asks(call("a")), answers("a", JANUARY), {"role": "user", "content": JUNE}),
            chat(GO, asks(call("b")), answers("b", JUNE), {"role": "user", "content": JUNE}),
            1,
        ),
        # parallel results in the order in which the tools ended, and to other calls
        (
            CHAT,
            chat(asks(call("a"), call("b")), answers("a", JANUARY), answers("b", JUNE)),
            chat(asks(call("x"), call("y")), answers("y", JUNE), answers("x", JANUARY)),
            0,
        ),
        (
            MESSAGES,
            messages(BOTH, ("user", [result("a", JANUARY), result("b", JUNE)])),
            messages(BOTH, ("user", [result("b", JUNE), result("a", JANUARY)])),
            0,
        ),
        (
            MESSAGES,
            messages(BOTH, ("user", [result("a", JANUARY), result("b", JUNE)])),
            messages(BOTH, ("user", [result("a", JUNE), result("b", JANUARY)])),
            1,
        ),
        ("/v1/files", b'{"a": "2026-01-01"}', b'{"a":"2026-01-01"}', 0),
        ("/v1/files", b'{"a": "2026-01-01"}', b'{"a":"2026-06-01"}', 1),
    ],
)
def test_to_the_letter(path: str, first: bytes, second: bytes, unlike: int) -> None:
    """Of requests with one key, how many messages are other ones."""
    assert len({*keys_of(path, first, second)}) == 1
    keys = Keys(Rules(), changing=False)
    exact, other = (keys.exact("POST", path, body) for body in (first, second))
    assert exact.unlike(other) == other.unlike(exact) == unlike


def test_the_system_prompt_to_the_letter() -> None:
    keys = Keys(Rules(), changing=False)
    asides = [
        keys.exact("POST", MESSAGES, messages(("user", "go"), system=said, metadata=more)).aside
        for said, more in ((JANUARY, {}), (JANUARY, {"user_id": "a"}), (JUNE, {}))
    ]
    assert asides[0] == asides[1] != asides[2]


def test_turns_and_links() -> None:
    history = [("a", "pwd", "x"), ("a", "ls", "y")]
    first, second = (
        Keys(Rules()).key("POST", MESSAGES, messages_request(history[:count])) for count in (1, 2)
    )
    assert (first.turn, second.turn) == (2, 3)
    assert second.chain[:3] == first.chain
    assert len(second.chain) == 5


# Reading on behind what is known gives what reading afresh gives.

_CALLS = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from(["pwd", "ls" * 300]), st.text(max_size=9)),
    max_size=24,
)


def _body(protocol: Protocol, history: list[Any], padding: int, last: bool) -> bytes:
    make = messages_request if protocol is Protocol.ANTHROPIC else chat_request
    body = json.loads(make(history))
    head = {"model": body.pop("model"), "system": "x" * padding}
    if protocol is Protocol.ANTHROPIC and body["messages"][-1]["role"] == "user":
        content = body["messages"][-1]["content"]
        if isinstance(content, list):
            content[-1]["cache_control"] = {"type": "ephemeral"}
    return dump({**body, **head} if last else {**head, **body})


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(Protocol),
    st.lists(st.tuples(_CALLS, st.integers(0, 2), st.booleans()), min_size=1, max_size=3),
)
def test_in_any_order_the_keys_are_those_of_a_fresh_reader(
    protocol: Protocol, conversations: list[tuple[list[Any], int, bool]]
) -> None:
    path = MESSAGES if protocol is Protocol.ANTHROPIC else CHAT
    keys = Keys(Rules())
    for history, padding, last in conversations:
        for count in (*range(len(history) + 1), len(history) // 2):
            body = _body(protocol, history[:count], padding * 3000, last)
            assert keys.key("POST", path, body) == Keys(Rules()).key("POST", path, body)
