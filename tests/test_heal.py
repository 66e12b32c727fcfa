"""Healing, which `rewrite.heal` does to a request whose history carries duplicate ids."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moontap.ids import Style
from moontap.pairing import pair
from moontap.rewrite import Healed, heal, unheal
from moontap.wire.protocol import ANTHROPIC, OPENAI, Wire
from tests.wire.jsons import texts

WIRES = pytest.mark.parametrize("wire", [ANTHROPIC, OPENAI], ids=lambda wire: wire.protocol.value)


def healed(wire: Wire, body: bytes, style: Style = Style.OPAQUE) -> Healed | None:
    return heal(wire, body, wire.read_request(body).messages, style)


def calls(wire: Wire, *ids: Any) -> dict[str, Any]:
    if wire is ANTHROPIC:
        blocks: list[Any] = [{"type": "text", "text": "I use a_0."}]
        blocks += [{"type": "tool_use", "id": i, "name": "f", "input": {"id": i}} for i in ids]
        return {"role": "assistant", "content": blocks}
    function = {"name": "f", "arguments": '{"id":"a_0"}'}
    entries = [{"id": i, "type": "function", "function": function} for i in ids]
    return {"role": "assistant", "content": "I use a_0.", "tool_calls": entries}


def results(wire: Wire, *ids: Any) -> list[dict[str, Any]]:
    if wire is ANTHROPIC:
        blocks = [{"type": "tool_result", "tool_use_id": i, "content": "a_0"} for i in ids]
        return [{"role": "user", "content": blocks}]
    return [{"role": "tool", "tool_call_id": i, "content": "a_0"} for i in ids]


def request(messages: list[dict[str, Any]]) -> dict[str, Any]:
    return {"model": "kimi-k3", "messages": messages, "tools": [{"name": "f", "id": "a_0"}]}


def turns(wire: Wire, text: str) -> list[dict[str, Any]]:
    """A history in short: `a_0 b` calls, `=a_0 =b` results, a message a comma."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for part in text.split(","):
        ids: list[Any] = [{"-": None, '""': ""}.get(i, i) for i in part.replace("=", "").split()]
        answers = part.lstrip().startswith("=")
        messages += results(wire, *ids) if answers else [calls(wire, *ids)]
    return messages


def ids_of(wire: Wire, body: bytes) -> tuple[list[str | None], list[str | None]]:
    messages = wire.read_request(body).messages
    return (
        [call.id for message in messages for call in message.calls],
        [result.id for message in messages for result in message.results],
    )


@pytest.mark.parametrize(
    ("text", "native", "native_results"),
    [
        ("a:0,=a:0,a:0,=a:0", ["a:0", "a:1"], ["a:0", "a:1"]),
        ("a:0 a:0,=a:0 =a:0", ["a:0", "a:1"], ["a:0", "a:1"]),
        ("a:0 b:0 a:0,=a:0 =b:0 =a:0", ["a:0", "b:0", "a:1"], ["a:0", "b:0", "a:1"]),
        ("a:0,a:0,=a:0,=a:0", ["a:0", "a:1"], ["a:1", "a:0"]),
        ("a:0,=a:0,a:0", ["a:0", "a:1"], ["a:0"]),
        # A number given to a later call is taken when that number's own call comes.
        ("a:0,=a:0,a:0,=a:0,a:1,=a:1", ["a:0", "a:1", "a:2"], ["a:0", "a:1", "a:2"]),
        ("a:0,=a:0,f.b:6,=f.b:6,a:0,=a:0", ["a:0", "f.b:6", "a:7"], ["a:0", "f.b:6", "a:7"]),
    ],
)
@WIRES
def test_later_calls_and_their_results_get_ids_of_their_own(
    wire: Wire, text: str, native: list[str], native_results: list[str]
) -> None:
    body = json.dumps(request(turns(wire, text))).encode()
    new = healed(wire, body, Style.NATIVE)
    assert new
    assert ids_of(wire, new.body) == (native, native_results)
    opaque = healed(wire, body)
    assert opaque
    assert len(set(ids_of(wire, opaque.body)[0])) == len(native)


@pytest.mark.parametrize(
    "text", ["a_0,=a_0", "a b,=b =a,c", "- -,=- =-", '"" "",="",""', "a,=a =a,=b"]
)
@WIRES
def test_nothing_to_heal(wire: Wire, text: str) -> None:
    assert healed(wire, json.dumps(request(turns(wire, text))).encode()) is None


@WIRES
def test_a_new_id_of_this_version_is_that_of_every_other(wire: Wire) -> None:
    body = json.dumps(request(turns(wire, "a_0,=a_0,a_0,=a_0"))).encode()
    new = healed(wire, body)
    assert new
    assert ids_of(wire, new.body)[0] == ["a_0", "a_0_txnrbkgt5ny"]


MESSAGES_ODD = b"""
{ "model":"m", "x":{"messages":[]}, "m\\u0065ssages" : [
  {"content":[{"id":"b_0","type":"tool_use"}], "role":"assistant",
   "content":[ {"type":"text","id":"a_0","text":"\\ud83d"} ,
   {"id":"x","\\u0069d":"a_0", "type":"tool_use"} ]},
  {"role":"user","content":[{"type":"tool_result","tool_use_id":"a_0","content":"\\udc00"}]} ,
  7, null, [], {"role":"user","content":"tool_use a_0"}, {"role":"user","content":{"id":"a_0"}},
  {"role":"assistant","content":[7,{"type":"server_tool_use","id":"a_0"},
   {"type":"tool_use","id":"a\\u005f0","name":null,
    "input":{"type":"tool_use","id":"a_0","cut":"\\ud83d"}},{"type":8,"id":"a_0"}]},
  {"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"\xff"}],"tool_use_id":"a_0"},
   {"type":"web_search_tool_result","tool_use_id":"a_0"}]}
 ], "model":"kimi-k3" }"""
CHAT_ODD = b"""
{"messages" :[
 {"tool_calls":[{"id":"b:0"}],"role":"assistant","content":"\\ud83d a:0",
  "tool_calls" : [
   {"id":"q","id":"a:0","function":{"name":"f","arguments":"{\\"id\\":\\"a:0\\"}"}}]},
 {"tool_call_id":"a:0","role":"tool","content":"\xff"},
 7,null,{"role":8,"content":[{"id":"a:0"}]},
 {"role":"assistant","tool_calls":[null,{"function":null,"\\u0069d":"a\\u003a0"}],
  "content":"cut \\ud83d","tool_call_id":"a:0"},
 {"role":"tool","content":[{"type":"text","text":"a:0"}],"tool_calls":[{"id":"a:0"}],"tool_call_id":"a:0"}
]}"""


@pytest.mark.parametrize(
    ("wire", "body", "new_ids"),
    [
        (ANTHROPIC, MESSAGES_ODD, [(b'"a\\u005f0"', 1), (b'"tool_use_id":"a_0"', 2)]),
        (OPENAI, CHAT_ODD, [(b'"a\\u003a0"', 1)]),
    ],
    ids=["messages", "chat"],
)
def test_odd_spellings_are_healed_in_place(
    wire: Wire, body: bytes, new_ids: list[tuple[bytes, int]]
) -> None:
    new = healed(wire, body)
    assert new
    assert unheal(new.body, new.edits) == body
    before, after = wire.read_request(body).messages, wire.read_request(new.body).messages
    assert pair(after).answers == pair(before).answers
    assert healed(wire, new.body) is None
    at = 0
    for start, length, old in new.edits:  # nothing but the edits differs
        assert new.body[at:start] in body
        assert old in (b"a_0", b"a\\u005f0", b"a:0", b"a\\u003a0")
        at = start + length
    for text, count in new_ids:
        assert body.count(text) - new.body.count(text) == 1, (text, count)


@WIRES
@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b'{"messages":{}}', b'{"messages":' + b"[" * 9999]
)
def test_what_is_no_request_raises_value_error(wire: Wire, body: bytes) -> None:
    with pytest.raises(ValueError, match="not a"):
        healed(wire, body)


# any history

_IDS = ["a_0", "b", "get:0", "get_0", "functions.x:1", 'q"\\', "é:0", None, ""]


@st.composite
def histories(draw: st.DrawFn, wire: Wire, orphans: bool) -> list[dict[str, Any]]:
    """orphans: whether results without a call occur."""
    messages: list[dict[str, Any]] = []
    open_ids: list[Any] = []
    for _ in range(draw(st.integers(0, 8))):
        kind = draw(st.sampled_from(["calls", "calls", "results", "results", "text"]))
        if kind == "calls":
            ids = draw(st.lists(st.sampled_from(_IDS), max_size=3))
            open_ids += ids
            messages.append(calls(wire, *ids))
        elif kind == "results":
            pool = _IDS if orphans else open_ids
            ids = draw(st.lists(st.sampled_from(pool), max_size=3)) if pool else []
            if not orphans:
                ids = [i for n, i in enumerate(ids) if ids[: n + 1].count(i) <= open_ids.count(i)]
                for i in ids:
                    open_ids.remove(i)
            messages += results(wire, *ids)
        else:
            messages.append({"role": draw(st.sampled_from(["user", "system"])), "content": "a_0"})
    return messages


@pytest.mark.parametrize("style", [Style.OPAQUE, Style.NATIVE])
@WIRES
@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_any_history(wire: Wire, style: Style, data: st.DataObject) -> None:
    messages = data.draw(histories(wire, orphans=style is Style.OPAQUE))
    body = data.draw(texts(st.just(request(messages))))
    before = wire.read_request(body)
    old_ids = [call.id for message in before.messages for call in message.calls if call.id]
    new = healed(wire, body, style)
    if new is None:
        assert len(set(old_ids)) == len(old_ids)
        return
    assert unheal(new.body, new.edits) == body
    assert healed(wire, new.body, style) is None
    after = wire.read_request(new.body)
    ids = [call.id for message in after.messages for call in message.calls if call.id]
    assert len(set(ids)) == len(ids) == len(old_ids)
    assert new.calls == sum(a != b for a, b in zip(ids, old_ids, strict=True))
    was, now = pair(before.messages), pair(after.messages)
    assert now.answers == was.answers
    assert now.orphans == was.orphans
    assert _without_ids(json.loads(new.body)) == _without_ids(json.loads(body))

    more = data.draw(histories(wire, orphans=style is Style.OPAQUE))
    longer = json.dumps(request(messages + more)).encode()
    later = healed(wire, longer, style)
    assert later
    common = wire.read_request(later.body).messages[: len(messages)]
    assert [call.id for message in common for call in message.calls] == [
        call.id for message in after.messages for call in message.calls
    ]


def _without_ids(body: dict[str, Any]) -> dict[str, Any]:
    """The request with the ids of calls and results blanked, where the protocols have them."""
    for message in body["messages"]:
        if "tool_call_id" in message:
            message["tool_call_id"] = "#"
        for entry in message.get("tool_calls", ()):
            entry["id"] = "#"
        content = message["content"]
        for block in content if isinstance(content, list) else ():
            if block["type"] in ("tool_use", "tool_result"):
                block["id" if block["type"] == "tool_use" else "tool_use_id"] = "#"
    return body
