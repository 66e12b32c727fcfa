from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moontap.wire import openai
from moontap.wire.protocol import OPENAI, read_stream
from moontap.wire.types import Asked, Call, Choice, Message, Reply, ReplyCall, Result
from tests.wire.streams import CHAT, DONE, chunk, goes_on, named, opens, tool_calls

WEATHER = ReplyCall("get_weather:0", "get_weather", 0, 0, ["", '{"c":1}'], ended=True)


def read(stream: bytes) -> Reply:
    return read_stream(OPENAI, stream)


# streamed replies


def test_the_documented_stream() -> None:
    assert read(named(CHAT, "plain").body) == Reply(
        message_id="cmpl-x1",
        calls=[WEATHER],
        choices={0: Choice(stop_reason="tool_calls")},
        usage={"prompt_tokens": 9, "completion_tokens": 4},
        complete=True,
    )


@pytest.mark.parametrize(
    "name",
    [
        "no space after the colon",
        "crlf",
        "cr",
        "comments",
        "byte order mark",
        "separators with spaces",
        "separators that separate nothing",
        "wrong finish reason",
        "usage alone",
        "done twice, and more",
    ],
)
def test_oddities_that_change_nothing(name: str) -> None:
    reply = read(named(CHAT, name).body)
    (call,) = reply.calls
    assert (call.id, call.name, call.ended) == ("get_weather:0", "get_weather", True)
    assert call.arguments.startswith('{"c":1}')
    assert (reply.message_id, reply.complete, reply.unreadable) == ("cmpl-x1", True, 0)


X = '{"c":1}'


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("parallel calls with one id", [("Bash:0", 0, 0, ""), ("Bash:0", 0, 1, "")]),
        ("interleaved", [("Bash:0", 0, 0, X), ("Bash:1", 0, 1, X + X)]),
        ("late id, arguments first", [("x:0", 0, 0, X + X)]),
        ("id repeated", [("x:0", 0, 0, X + X)]),
        ("a new id on every fragment", [("x:0", 0, 0, X + X)]),
        ("null and empty on continuations", [("x:0", 0, 0, X + X)]),
        ("empty first", [("x:0", 0, 0, X)]),
        ("id empty", [("", 0, 0, "")]),
        ("id null", [(None, 0, 0, "")]),
        ("id zero", [("0", 0, 0, "")]),
        ("id undefined", [("undefined", 0, 0, "")]),
        ("no index, one call", [("x:0", 0, 0, X + X)]),
        ("no index, two ids", [("x:0", 0, 0, X), ("x:1", 0, 1, X)]),
        ("no index, one id twice", [("x:0", 0, 0, ""), ("x:0", 0, 1, X)]),
        ("index null", [("x:0", 0, 0, "")]),
        ("several choices", [("x:0", 0, 0, ""), ("x:0", 1, 0, "")]),
        ("choices without an index", [("x:0", 0, 0, ""), ("x:0", 1, 0, "")]),
        ("message id changes", [("x:0", 0, 0, X)]),
        ("a key twice", [("x:0", 0, 0, "")]),
        ("escapes", [("x:0", 0, 0, "")]),
        ("not calls", [(None, 0, 0, "")]),
        ("HTML", []),
        ("empty", []),
    ],
)
def test_calls(name: str, calls: list[tuple[str | None, int, int, str]]) -> None:
    reply = read(named(CHAT, name).body)
    assert [(c.id, c.choice, c.index, c.arguments) for c in reply.calls] == calls


def test_text_and_thinking_by_choice() -> None:
    stream = (
        chunk(b'"reasoning_content":"h"')
        + chunk(b'"reasoning_content":"m","content":null')
        + chunk(b'"content":"I "')
        + chunk(b'"content":"look"', b',"finish_reason":"stop"')
        + b'data: {"choices":[{"index":1,"delta":{"content":"other"}}]}\n\n'
    )
    assert read(stream).choices == {0: Choice("I look", "hm", "stop"), 1: Choice("other")}


def test_only_done_means_complete() -> None:
    ended = tool_calls(opens(0, b"x:0")) + chunk(b"", b',"finish_reason":"tool_calls"')
    assert not read(ended).complete
    assert read(ended).calls[0].ended
    assert read(ended + DONE).complete
    assert not read(tool_calls(opens(0, b"x:0")) + DONE).calls[0].ended


def test_a_finish_reason_ends_the_calls_of_its_choice() -> None:
    stream = named(CHAT, "several choices").body + chunk(b"", b',"finish_reason":"length"')
    assert [(call.choice, call.ended) for call in read(stream).calls] == [(0, True), (1, False)]


@pytest.mark.parametrize(
    ("stream", "usage"),
    [
        (b'data: {"choices":[{"delta":{},"usage":{"a":1}}]}\n\n', {"a": 1}),
        (b'data: {"choices":[],"usage":{"a":2}}\n\n', {"a": 2}),
        (
            b'data: {"choices":[{"usage":{"a":1}}]}\n\ndata: {"usage":{"a":2,"b":1}}\n\n',
            {"a": 2, "b": 1},
        ),
        (b'data: {"choices":null,"usage":null}\n\n', None),
    ],
)
def test_usage_stands_in_the_choice_or_at_the_top(stream: bytes, usage: object) -> None:
    assert read(stream).usage == usage


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (b'{"error":{"message":"x"}}', {"message": "x"}),
        (b'{"error":"x"}', "x"),
        (b'{"error":null}', None),
    ],
)
def test_an_error_in_the_middle(text: bytes, error: object) -> None:
    reply = read(tool_calls(opens(0, b"x:0")) + b"data: " + text + b"\n\n")
    assert reply.error == error
    assert len(reply.calls) == 1


def test_arguments_that_are_no_string_are_kept_as_json() -> None:
    stream = tool_calls(b'"index":0,"id":"x","function":{"arguments":{"a":%d}}' % 10**30)
    assert read(stream).calls[0].arguments == f'{{"a":{10**30}}}'


def test_names_and_ids_do_not_change_once_known() -> None:
    stream = (
        tool_calls(goes_on(0))
        + tool_calls(b'"index":0,"function":{"name":""}')
        + tool_calls(b'"index":0,"function":{"name":"f"}')
        + tool_calls(b'"index":0,"id":"x","function":{"name":"g"}')
    )
    assert read(stream).calls == [ReplyCall("x", "f", 0, 0, ['{"c":1}'])]


def arrives(id_: str | None, index: int = 0) -> bytes:
    return tool_calls(b'"index":%d,"id":%s' % (index, json.dumps(id_).encode()))


@pytest.mark.parametrize(
    ("ids", "others"),
    [
        (["x:0"], []),
        (["x:0", "x:0", None, ""], []),
        (["x:0", "x:1", "x:2"], ["x:1", "x:2"]),
        (["x:0", "x:1", "x:0", "x:1"], ["x:1"]),
        ([None, "", "x:0"], []),
    ],
)
def test_the_ids_that_came_after_the_first(ids: list[str | None], others: list[str]) -> None:
    (call,) = read(b"".join(arrives(id_) for id_ in ids) + DONE).calls
    assert (call.id, call.others) == ("x:0", others)
    # Ids of other calls are not among them.
    first, _ = read(arrives("x:0") + arrives("x:1", index=1) + DONE).calls
    assert first.others == []


def of_message(id_: bytes) -> bytes:
    return tool_calls(opens(0, b"x:0"), top=b'"id":%s,' % id_)


@pytest.mark.parametrize(
    ("stream", "doubled", "restarts"),
    [
        (of_message(b'"c1"') * 2 + DONE, [], 0),
        (of_message(b'"c1"') + DONE + DONE, ["[DONE]"], 0),
        (of_message(b'"c1"') + DONE * 3, ["[DONE]"] * 2, 0),
        (of_message(b'"c1"') + of_message(b'"c2"') + DONE, [], 1),
        (of_message(b'"c1"') + of_message(b'""') + of_message(b"null") + DONE, [], 0),
        (b"", [], 0),
    ],
)
def test_doubled_events_and_new_beginnings(
    stream: bytes, doubled: list[str], restarts: int
) -> None:
    reply = read(stream)
    assert (reply.doubled, reply.restarts) == (doubled, restarts)


def test_what_is_not_json_is_counted() -> None:
    assert read(b"data: {\n\ndata: 7\n\ndata: [DONE]\n\n").unreadable == 2


_KEYS = [
    "id",
    "index",
    "choices",
    "delta",
    "message",
    "tool_calls",
    "function",
    "name",
    "arguments",
    "usage",
    "error",
    "content",
    "finish_reason",
]


@given(
    chunks=st.lists(
        st.dictionaries(
            st.sampled_from(_KEYS),
            st.recursive(
                st.sampled_from([None, True, 0, -1, 1.5, 10**30, "", "x"]),
                lambda inner: (
                    st.lists(inner, max_size=3)
                    | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=4)
                ),
                max_leaves=8,
            ),
        ),
        max_size=5,
    )
)
@settings(max_examples=60, deadline=None)
def test_no_event_raises(chunks: list[dict[str, Any]]) -> None:
    texts = [json.dumps(each).encode() for each in chunks]
    read(b"".join(b"data: " + text + b"\n\n" for text in texts))
    sites = openai.StreamSites()
    for text in texts:
        openai.ReplyReader().whole(text)
        sites.find(text)
        openai.reply_sites(text)


# whole replies


@pytest.mark.parametrize(
    ("body", "reply"),
    [
        (
            b'{"id":"c","model":"k","choices":[{"index":0,"message":{"content":"I","reasoning_content":"hm","tool_calls":['
            b'{"id":"a","function":{"name":"f","arguments":"{}"}},{"index":0,"id":"a"}]},"finish_reason":"tool_calls"}],'
            b'"usage":{"t":1}}',
            Reply(
                "c",
                "k",
                [ReplyCall("a", "f", 0, 0, ["{}"], True), ReplyCall("a", "", 0, 1, [], True)],
                {0: Choice("I", "hm", "tool_calls")},
                {"t": 1},
                complete=True,
            ),
        ),
        (
            b'{"choices":[{"message":{"content":[{"type":"text","text":"a"},{"text":"b"},7]}}]}',
            Reply(choices={0: Choice("a\nb")}, complete=True),
        ),
        (b'{"error":{"message":"no"}}', Reply(error={"message": "no"})),
        (b"{}", Reply(complete=True)),
        (b"<html>", Reply(unreadable=1)),
        (b"", Reply(unreadable=1)),
        (b"[]", Reply(unreadable=1)),
    ],
)
def test_whole_replies(body: bytes, reply: Reply) -> None:
    assert openai.ReplyReader().whole(body) == reply


# requests


def message(text: bytes) -> Message:
    (read_message,) = openai.read_request(b'{"messages":[' + text + b"]}").messages
    return read_message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{"role":"user","content":"hi"}', Message("user", (), (), "hi")),
        (
            b'{"role":"system","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}',
            Message("system", (), (), "a\nb"),
        ),
        (
            b'{"role":"user","content":[{"type":"image_url"},{"type":"text","text":"a"}]}',
            Message("user", (), (), "a"),
        ),
        (b'{"role":"assistant","content":null}', Message("assistant", (), (), "")),
        (
            b'{"role":"assistant","content":"","reasoning_content":"hm","tool_calls":[{"id":"a","type":"function",'
            b'"function":{"name":"f","arguments":"{\\"x\\":1}"}},{"id":null,"function":{"name":null}},{"id":""}]}',
            Message(
                "assistant",
                (Call("a", "f", b'{"x":1}', 0), Call(None, "", b"", 1), Call("", "", b"", 2)),
                (),
                "",
            ),
        ),
        (
            b'{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f",'
            b'"arguments":{"x": 1}}}]}',
            Message("assistant", (Call("a", "f", b'{"x": 1}', 0),), (), ""),
        ),
        (
            b'{"role":"tool","tool_call_id":"a","content":"ok"}',
            Message("tool", (), (Result("a", b'"ok"', False, 0),), ""),
        ),
        (
            b'{"role":"tool","tool_call_id":"a","content":[{"text":"x"}]}',
            Message("tool", (), (Result("a", b'[{"text":"x"}]', False, 0),), ""),
        ),
        (b'{"role":"tool"}', Message("tool", (), (Result(None, b"", False, 0),), "")),
        (b'{"role":"user","tool_call_id":"a","content":"x"}', Message("user", (), (), "x")),
        # From here on some field has an unexpected type: the rest is read all the same.
        (
            b'{"role":"assistant","tool_calls":[7,{"id":5},{"id":"a","function":{"name":"f","arguments":"{}"}}]}',
            Message(
                "assistant",
                (Call(None, "", b"", 0), Call(None, "", b"", 1), Call("a", "f", b"{}", 2)),
                (),
                "",
            ),
        ),
        (b'{"role":"assistant","content":"x","tool_calls":{}}', Message("assistant", (), (), "x")),
        (
            b'{"role":"tool","tool_call_id":7,"content":"x"}',
            Message("tool", (), (Result(None, b'"x"', False, 0),), ""),
        ),
        (rb'{"role":"user","content":"cut \ud83d"}', Message("user", (), (), "cut \ufffd")),
        (b'{"role":"user","content":"bad \xff"}', Message("user", (), (), "bad \ufffd")),
        (b'{"role":7,"content":"x"}', Message("", (), (), "x")),
        (b"7", Message("", (), (), "")),
    ],
    ids=lambda value: value[:50].decode("latin-1") if isinstance(value, bytes) else "",
)
def test_messages(text: bytes, expected: Message) -> None:
    read = message(text)
    assert (read.role, read.calls, read.results, read.text) == (
        expected.role,
        expected.calls,
        expected.results,
        expected.text,
    )


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        (b'{"role":"user","content":"hi"}', ("text",)),
        (b'{"role":"user","content":""}', ()),
        (b'{"role":"user","content":null}', ()),
        (b'{"role":"user"}', ()),
        (b'{"role":"user","content":[]}', ()),
        (
            b'{"role":"user","content":[{"type":"image_url"},{"type":"text","text":""},7,{"type":8}]}',
            ("image_url", "text", "", ""),
        ),
        (b'{"role":"tool","tool_call_id":"a","content":"x"}', ("tool_result",)),
        (b'{"role":"tool","tool_call_id":"a"}', ("tool_result",)),
        (b"7", ()),
    ],
)
def test_the_types_of_a_messages_parts(text: bytes, blocks: tuple[str, ...]) -> None:
    assert message(text).blocks == blocks


@pytest.mark.parametrize(
    ("more", "thinking"),
    [
        (b"", None),
        (b',"reasoning_content":null', None),
        (b',"reasoning_content":""', 0),
        (b',"reasoning_content":"hm"', 2),
        (b',"reasoning_content":"hm","tool_calls":[7]', 2),
        (b',"thinking":"hm"', None),
    ],
)
def test_reasoning(more: bytes, thinking: int | None) -> None:
    read = message(b'{"role":"assistant","content":"x"' + more + b"}")
    assert (read.thinking, read.signed) == (thinking, False)


@pytest.mark.parametrize(
    ("text", "legacy"),
    [
        (b'{"role":"assistant","function_call":{"name":"f","arguments":"{}"}}', True),
        (b'{"role":"assistant","function_call":{"name":"f"},"tool_calls":[7]}', True),
        (b'{"role":"function","name":"f","content":"x"}', True),
        # The SDK writes both members, one of them null.
        (b'{"role":"assistant","function_call":null,"tool_calls":[{"id":"a"}]}', False),
        (b'{"role":"assistant","content":"function_call"}', False),
        (b'{"role":"tool","tool_call_id":"a"}', False),
    ],
)
def test_what_is_of_the_time_before_tool_calls(text: bytes, legacy: bool) -> None:
    assert message(text).legacy is legacy


@pytest.mark.parametrize("also", [b"", b',"model":7,"prompt_cache_key":8'])
@pytest.mark.parametrize(
    ("limit", "read_limit"),
    [
        (b"", b""),
        (b',"max_tokens":9', b"9"),
        (b',"max_completion_tokens":8', b"8"),
        (b',"max_tokens":9,"max_completion_tokens":8', b"8"),
    ],
)
def test_what_is_asked_for_beside_the_history(limit: bytes, read_limit: bytes, also: bytes) -> None:
    body = (
        b'{"messages":[],"tools":[{"type": "function"}],"tool_choice":"auto","thinking":{"type":'
        b'"enabled"},"functions":[],"function_call":"none"' + limit + also + b"}"
    )
    assert openai.read_request(body).asked == Asked(
        tools=b'[{"type": "function"}]',
        tool_choice=b'"auto"',
        thinking=b'{"type":"enabled"}',
        functions=b"[]",
        function_call=b'"none"',
        limit=read_limit,
    )
    assert openai.read_request(b'{"messages":[]}').asked == Asked()


@pytest.mark.parametrize(
    ("body", "model", "stream", "session"),
    [
        (
            b'{"messages":[],"model":"kimi-k2","stream":true,"prompt_cache_key":"s"}',
            "kimi-k2",
            True,
            "s",
        ),
        (b'{"messages":[],"prompt_cache_key":""}', None, False, None),
        (b'{"messages":[],"model":7,"stream":1,"prompt_cache_key":8}', None, False, None),
    ],
)
def test_what_identifies_a_request(
    body: bytes, model: str | None, stream: bool, session: str | None
) -> None:
    request = openai.read_request(body)
    assert (request.model, request.stream, request.session) == (model, stream, session)


def test_call_ids_and_opening() -> None:
    body = (
        b'{"messages":[{"role":"system","content":"s"},{"role":"user","content":"hi"},'
        b'{"role":"assistant","tool_calls":[{"id":"a"},{"id":"a"},{"id":null}]},{"role":"tool","tool_call_id":"z"}]}'
    )
    request = openai.read_request(body)
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
    with pytest.raises(ValueError, match="not a Chat Completions request"):
        openai.read_request(body)
    with pytest.raises(ValueError, match="not a Chat Completions request"):
        list(openai.history_sites(body, {0}))
