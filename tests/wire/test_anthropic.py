from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moontap.wire import anthropic
from moontap.wire.protocol import ANTHROPIC, read_stream
from moontap.wire.types import Asked, Call, Choice, Message, Reply, ReplyCall, Result
from tests.wire.streams import END, MESSAGES, block, event, named, start, starts

PWD = ReplyCall("pwd_0", "pwd", 0, 1, ['{"a":1}'], ended=True)


def delta(index: int, kind: str, field: str, text: str) -> bytes:
    data = {"type": "content_block_delta", "index": index, "delta": {"type": kind, field: text}}
    return event("content_block_delta", json.dumps(data).encode())


def stop(index: int) -> bytes:
    return event("content_block_stop", b'{"type":"content_block_stop","index":%d}' % index)


def read(stream: bytes) -> Reply:
    return read_stream(ANTHROPIC, stream)


# streamed replies


def test_the_documented_stream() -> None:
    message = b'"id":"msg_a1","model":"kimi-k3","usage":{"input_tokens":9,"output_tokens":0}'
    assert read(start(message) + block(1, b"pwd_0") + END) == Reply(
        message_id="msg_a1",
        model="kimi-k3",
        calls=[PWD],
        choices={0: Choice(stop_reason="tool_use")},
        usage={"input_tokens": 9, "output_tokens": 5},
        complete=True,
    )


@pytest.mark.parametrize(
    "name",
    [
        "plain",
        "no space after the colon",
        "crlf",
        "cr",
        "newlines of all kinds",
        "comments",
        "no event line",
        "event line last",
        "byte order mark",
        "separators with spaces",
        "no blank line at the end",
        "two stops for a block",
    ],
)
def test_oddities_that_change_nothing(name: str) -> None:
    reply = read(named(MESSAGES, name).body)
    assert reply.calls == [PWD]
    assert (reply.message_id, reply.complete, reply.unreadable) == ("msg_a1", True, 0)


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("parallel calls with one id", [("Bash_0", 0, '{"a":1}'), ("Bash_0", 1, '{"a":1}')]),
        ("restarts", [("pwd_0", 0, '{"a":1}'), ("pwd_0", 0, '{"a":1}')]),
        ("starts at one index", [("a_0", 0, '{"a":1}'), ("b_0", 0, '{"a":1}')]),
        ("text delta in a tool block", [("pwd_0", 1, "{}")]),
        ("whole input in the start", [("pwd_0", 0, '{"type":"tool_use","id":"pwd_0"}')]),
        ("several data lines", [("pwd_0", 0, "")]),
        ("no newline at the end", [("pwd_0", 0, "")]),
        ("cut within an id", []),
        ("no index", [("pwd_0", 0, ""), ("pwd_0", 0, "")]),
        ("events without a separator", [("a_0", 0, ""), ("a_0", 1, "")]),
        ("message start with content", [("pwd_0", 1, ""), ("pwd_0", 2, "")]),
        ("a key twice", [("pwd_0", 0, "")]),
        ("escapes", [("pwd_0", 0, ""), ('a"b\\/\n', 1, "")]),
        ("an escaped type is not seen", [("pwd_0", 0, "")]),
        ("lone surrogates", [("pwd_0", 0, "")]),
        ("invalid UTF-8", [("pwd_0", 0, "")]),
        ("id null", [(None, 0, "")]),
        ("id empty", [("", 0, "")]),
        ("id a number", [(None, 0, "")]),
        ("no id", [(None, 0, "")]),
        ("not a call", []),
        ("HTML", []),
        ("empty", []),
    ],
)
def test_calls(name: str, calls: list[tuple[str | None, int, str]]) -> None:
    reply = read(named(MESSAGES, name).body)
    assert [(call.id, call.index, call.arguments) for call in reply.calls] == calls


def test_text_thinking_and_fragments_are_put_together() -> None:
    stream = (
        start()
        + event(
            "content_block_start",
            b'{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"h"}}',
        )
        + delta(0, "thinking_delta", "thinking", "m")
        + delta(0, "signature_delta", "signature", "x")
        + starts(b'"type":"text","text":"I "', b'"index":1,')
        + delta(1, "text_delta", "text", "look")
        + starts(b'"type":"tool_use","id":"a","name":"f","input":{}', b'"index":2,')
        + starts(b'"type":"tool_use","id":"b","name":"g","input":{"x":1}', b'"index":3,')
        + delta(2, "input_json_delta", "partial_json", "")
        + delta(2, "input_json_delta", "partial_json", '{"a"')
        + delta(3, "input_json_delta", "partial_json", "[")
        + delta(2, "input_json_delta", "partial_json", ":1}")
        + delta(9, "input_json_delta", "partial_json", "nobody's")
        + stop(2)
    )
    reply = read(stream)
    assert reply.choices == {0: Choice("I look", "hm", None)}
    assert reply.calls == [
        ReplyCall("a", "f", 0, 2, ['{"a"', ":1}"], ended=True),
        ReplyCall("b", "g", 0, 3, ["["], ended=False),
    ]
    assert not reply.complete


@pytest.mark.parametrize(
    ("stream", "error"),
    [
        (
            event("error", b'{"type":"error","error":{"type":"overloaded_error"}}'),
            {"type": "overloaded_error"},
        ),
        (event("error", b'{"type":"error"}'), {"type": "error"}),
        (b'data: {"error":{"message":"no"}}\n\n', {"message": "no"}),
        (event("error", b"{}"), None),
    ],
)
def test_an_error_in_the_middle(stream: bytes, error: object) -> None:
    reply = read(start() + block(1, b"pwd_0") + stream)
    assert reply.error == error
    assert reply.calls == [PWD]
    assert not reply.complete


def test_what_is_not_json_is_counted() -> None:
    assert read(b"data: {\n\ndata: [DONE]\n\ndata: 7\n\n: x\n\n" + start()).unreadable == 3


@pytest.mark.parametrize(
    ("value", "arguments"),
    [
        (b"{}", "{}"),
        (b'{"a": 1.0}', '{"a":1.0}'),
        (b'{"a":%d}' % 10**30, f'{{"a":{10**30}}}'),
        (b'{"a":[1e400, -1e400, 2.50]}', '{"a":[1e400,-1e400,2.5]}'),
        (b'{"a":%s}' % (b"9" * 5000), f'{{"a":{"9" * 5000}}}'),
        (rb'{"a":"\ud83d"}', r'{"a":"\ud83d"}'),
        (b"null", "null"),
        (b'"x"', '"x"'),
    ],
)
def test_an_input_that_came_in_the_start(value: bytes, arguments: str) -> None:
    reply = read(starts(b'"type":"tool_use","id":"a","input":' + value))
    assert [call.arguments for call in reply.calls] == [arguments]


def begin(id_: str = "msg_a1") -> bytes:
    return start(f'"id":"{id_}"'.encode())


@pytest.mark.parametrize(
    ("stream", "doubled", "restarts"),
    [
        (begin() + block(1, b"pwd_0") + END, [], 0),
        (begin() + block(1, b"pwd_0") + stop(1) + END, ["content_block_stop"], 0),
        (begin() + block(1, b"a") + stop(1) + stop(1) + END, ["content_block_stop"] * 2, 0),
        (begin() + block(1, b"a") + END + END, ["message_stop"], 0),
        (begin() + block(1, b"a") + block(1, b"b") + END, [], 0),
        (begin() + block(1, b"a") + block(2, b"b") + END, [], 0),
        (begin() + block(1, b"a") + begin() + block(1, b"a") + END, [], 1),
        (begin() + begin("msg_a2") + begin("msg_a3") + END, [], 2),
        # After a new beginning the blocks are others.
        (begin() + block(1, b"a") + begin() + stop(1) + END, [], 1),
        (block(1, b"a") + END, [], 0),
        (b"", [], 0),
    ],
)
def test_doubled_events_and_new_beginnings(
    stream: bytes, doubled: list[str], restarts: int
) -> None:
    reply = read(stream)
    assert (reply.doubled, reply.restarts) == (doubled, restarts)


@given(
    events=st.lists(
        st.dictionaries(
            st.sampled_from(
                ["type", "index", "message", "content_block", "delta", "usage", "error", "id"]
            ),
            st.recursive(
                st.sampled_from(
                    [
                        None,
                        True,
                        0,
                        -1,
                        1.5,
                        10**30,
                        "",
                        "x",
                        "message_start",
                        "content_block_start",
                        "content_block_delta",
                        "content_block_stop",
                        "message_delta",
                        "tool_use",
                        "text",
                        "input_json_delta",
                    ]
                ),
                lambda inner: (
                    st.lists(inner, max_size=2)
                    | st.dictionaries(
                        st.sampled_from(["type", "id", "name", "input", "content"]),
                        inner,
                        max_size=4,
                    )
                ),
                max_leaves=6,
            ),
        ),
        max_size=5,
    )
)
@settings(max_examples=60, deadline=None)
def test_no_event_raises(events: list[dict[str, Any]]) -> None:
    texts = [json.dumps(each).encode() for each in events]
    read(b"".join(b"data: " + text + b"\n\n" for text in texts))
    sites = anthropic.StreamSites()
    for text in texts:
        anthropic.ReplyReader().whole(text)
        sites.find(text)
        anthropic.reply_sites(text)


# whole replies


@pytest.mark.parametrize(
    ("body", "reply"),
    [
        (
            b'{"id":"m","model":"k","content":[{"type":"text","text":"I"},{"type":"tool_use","id":"a",'
            b'"name":"f","input":{"x":1}}],"stop_reason":"tool_use","usage":{"output_tokens":1}}',
            Reply(
                "m",
                "k",
                [ReplyCall("a", "f", 0, 1, ['{"x":1}'], True)],
                {0: Choice("I", "", "tool_use")},
                {"output_tokens": 1},
                complete=True,
            ),
        ),
        (
            b'{"type":"error","error":{"type":"x"}}',
            Reply(choices={0: Choice()}, error={"type": "x"}),
        ),
        (b'{"error":{"message":"401"}}', Reply(choices={0: Choice()}, error={"message": "401"})),
        (b"{}", Reply(choices={0: Choice()}, complete=True)),
        (b"<html>", Reply(choices={0: Choice()}, unreadable=1)),
        (b"", Reply(choices={0: Choice()}, unreadable=1)),
        (b"[]", Reply(choices={0: Choice()}, unreadable=1)),
        (
            b'{"content":[7,null,{"type":"tool_use"}]}',
            Reply(
                calls=[ReplyCall(None, "", 0, 2, [], True)], choices={0: Choice()}, complete=True
            ),
        ),
    ],
)
def test_whole_replies(body: bytes, reply: Reply) -> None:
    assert anthropic.ReplyReader().whole(body) == reply


# requests


def message(content: bytes, role: bytes = b'"user"') -> Message:
    body = b'{"messages":[{"role":' + role + b',"content":' + content + b"}]}"
    (read_message,) = anthropic.read_request(body).messages
    return read_message


@pytest.mark.parametrize(
    ("content", "calls", "results", "text"),
    [
        (b'"hi"', (), (), "hi"),
        (b"null", (), (), ""),
        (b"[]", (), (), ""),
        (b'[{"type":"text","text":"a"},{"type":"text","text":"b"}]', (), (), "a\nb"),
        (
            b'[{"type":"thinking","thinking":"x","signature":""},'
            b'{"type":"tool_use","id":"a","name":"f","input":{ }}]',
            (Call("a", "f", b"{ }", 1),),
            (),
            "",
        ),
        (
            b'[{"type":"tool_result","tool_use_id":"a","content":"/w","is_error":true},{"type":"tool_result","tool_use_id":"b"}]',
            (),
            (Result("a", b'"/w"', True, 0), Result("b", b"", False, 1)),
            "",
        ),
        (
            b'[{"type":"tool_result","tool_use_id":"a","content":[{"type":"image"},{"type":"tool_reference"}]},'
            b'{"type":"tool_result","tool_use_id":"a","content":[]}]',
            (),
            (
                Result("a", b'[{"type":"image"},{"type":"tool_reference"}]', False, 0),
                Result("a", b"[]", False, 1),
            ),
            "",
        ),
        (
            b'[{"type":"tool_use","id":null,"name":null},{"type":"tool_use","id":""}]',
            (Call(None, "", b"", 0), Call("", "", b"", 1)),
            (),
            "",
        ),
        (
            b'[{"type":"server_tool_use","id":"a","name":"f"},{"type":"web_search_tool_result","tool_use_id":"a"}]',
            (),
            (),
            "",
        ),
        # From here on some field has an unexpected type: the rest is read all the same.
        (
            b'[7,null,[],{"type":8},{"type":"tool_use","id":"a","name":"f"}]',
            (Call("a", "f", b"", 4),),
            (),
            "",
        ),
        (b'[{"type":"tool_use","id":5},{"type":"text","text":"t"}]', (), (), "t"),
        (rb'"cut \ud83d"', (), (), "cut \ufffd"),
        (b'"bad \xff"', (), (), "bad \ufffd"),
        (
            rb'[{"type":"tool_result","tool_use_id":"a","content":"\ud83d"}]',
            (),
            (Result("a", rb'"\ufffd"', False, 0),),
            "",
        ),
        (
            b'[{"type":"tool_result","tool_use_id":"a","content":"\xff"}]',
            (),
            (Result("a", b'"\xff"', False, 0),),
            "",
        ),
        (b'{"type":"text"}', (), (), ""),
    ],
    ids=lambda value: value[:50].decode("latin-1") if isinstance(value, bytes) else "",
)
def test_messages(content: bytes, calls: Any, results: Any, text: str) -> None:
    read = message(content)
    assert (read.role, read.calls, read.results, read.text) == ("user", calls, results, text)


@pytest.mark.parametrize(
    ("role", "read_role"),
    [(b'"assistant"', "assistant"), (b'"system"', "system"), (b"7", ""), (b"null", "")],
)
def test_roles(role: bytes, read_role: str) -> None:
    read = message(b'"x"', role)
    assert (read.role, read.text) == (read_role, "x")


@pytest.mark.parametrize(
    ("content", "blocks"),
    [
        (b'"hi"', ("text",)),
        (b'""', ()),
        (b"null", ()),
        (b"[]", ()),
        (b'[{"type":"text","text":""}]', ("text",)),
        (
            b'[{"type":"tool_result","tool_use_id":"a"},{"type":"image"},{"type":"new"}]',
            ("tool_result", "image", "new"),
        ),
        # One that cannot be read keeps its place.
        (b'[7,{"type":"tool_use","id":"a"},{"type":8}]', ("", "tool_use", "")),
        (b'{"type":"text"}', ()),
    ],
    ids=lambda value: value[:50].decode() if isinstance(value, bytes) else "",
)
def test_the_types_of_a_messages_blocks(content: bytes, blocks: tuple[str, ...]) -> None:
    assert message(content).blocks == blocks


@pytest.mark.parametrize(
    ("blocks", "thinking", "signed"),
    [
        (b'{"type":"text","text":"thinking"}', None, False),
        (b'{"type":"thinking","thinking":"hm"}', 2, False),
        (b'{"type":"thinking","thinking":"hm","signature":""}', 2, False),
        (b'{"type":"thinking","thinking":"hm","signature":"s"}', 2, True),
        (b'{"type":"thinking","thinking":""}', 0, False),
        (b'{"type":"thinking"}', 0, False),
        (b'{"type":"redacted_thinking","data":"x"}', 0, True),
        (b'{"type":"thinking","thinking":"a\\n"},{"type":"thinking","thinking":"b"}', 4, False),
        # A call's input, and a result, are not the model's thinking.
        (b'{"type":"tool_use","id":"a","name":"f","input":{"thinking":"hm"}}', None, False),
    ],
)
def test_thinking_and_its_signature(blocks: bytes, thinking: int | None, signed: bool) -> None:
    read = message(b"[" + blocks + b"]", b'"assistant"')
    assert (read.thinking, read.signed, read.legacy) == (thinking, signed, False)


@pytest.mark.parametrize("also", [b"", b',"model":7,"messages":[{"role":"user","content":5}]'])
def test_what_is_asked_for_beside_the_history(also: bytes) -> None:
    body = (
        b'{"messages":[],"tools":[{"name": "f"}],"tool_choice":{"type":"any"},"thinking":'
        b'{"type":"enabled"},"max_tokens":9,"functions":[1]' + also + b"}"
    )
    assert anthropic.read_request(body).asked == Asked(
        tools=b'[{"name": "f"}]',
        tool_choice=b'{"type":"any"}',
        thinking=b'{"type":"enabled"}',
        limit=b"9",
    )
    assert anthropic.read_request(b'{"messages":[]}').asked == Asked()


def metadata(user_id: object) -> bytes:
    return json.dumps({"messages": [], "metadata": {"user_id": user_id}}).encode()


@pytest.mark.parametrize(
    ("body", "session"),
    [
        (b'{"messages":[]}', None),
        (b'{"messages":[],"metadata":null}', None),
        (b'{"messages":[],"metadata":{}}', None),
        (metadata("user_1"), "user_1"),
        (metadata('{"device_id":"d","session_id":"s1"}'), "s1"),
        (metadata('{"device_id":"d"}'), '{"device_id":"d"}'),
        (metadata('{"session_id":7}'), '{"session_id":7}'),
        (metadata("9" * 5000), "9" * 5000),
        (b'{"messages":[],"metadata":%s}' % (b"9" * 5000), None),
        (b'{"messages":[],"metadata":{"user_id":%s}}' % (b"9" * 5000), None),
        (metadata("[1]"), "[1]"),
        (metadata(""), None),
        (metadata(7), None),
    ],
)
def test_session(body: bytes, session: str | None) -> None:
    assert anthropic.read_request(body).session == session


@pytest.mark.parametrize(
    ("body", "model", "stream"),
    [
        (b'{"messages":[],"model":"kimi-k3","stream":true}', "kimi-k3", True),
        (b'{"messages":[],"stream":false}', None, False),
        (b'{"messages":[],"model":null,"stream":null}', None, False),
        (b'{"messages":[],"model":7,"stream":"yes"}', None, False),
        (
            b'{"messages":[{"role":"system","content":"x"}],"tools":[{"id":"a"}],"new":1}',
            None,
            False,
        ),
    ],
)
def test_model_and_stream(body: bytes, model: str | None, stream: bool) -> None:
    request = anthropic.read_request(body)
    assert (request.model, request.stream) == (model, stream)


def test_call_ids_and_opening() -> None:
    body = (
        b'{"messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"hi"}]},'
        b'{"role":"assistant","content":[{"type":"tool_use","id":"a"},{"type":"tool_use","id":"a"},'
        b'{"type":"tool_use","id":null},{"type":"server_tool_use","id":"s"}]},'
        b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"z"}]},{"role":"assistant","content":"x"}]}'
    )
    request = anthropic.read_request(body)
    assert (request.call_ids, request.opening) == (["a", "a"], "hi")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b'{"messages":null}',
        b'{"messages":{}}',
        b'{"messages":[',
        b"\xff",
        b'{"messages":[' + b"[" * 100_000 + b"]" * 100_000 + b"]}",
    ],
    ids=lambda body: repr(body[:20]),
)
def test_what_is_no_request_raises_value_error(body: bytes) -> None:
    with pytest.raises(ValueError, match="not a Messages request"):
        anthropic.read_request(body)
    with pytest.raises(ValueError, match="not a Messages request"):
        list(anthropic.history_sites(body, {0}))
