from __future__ import annotations

import gzip
import random
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from mitmproxy import contentviews, http, tcp
from mitmproxy.contentviews import Metadata
from mitmproxy.net import encoding
from mitmproxy.test import taddons, tflow

from moontap.addon import Moontap
from moontap.capture import metadata
from moontap.jsonpaths import compile_path
from moontap.looking import bounds, reading
from moontap.looking.contentviews import VIEWS, View, install
from moontap.looking.facts import Facts, FindingFact
from moontap.looking.views.events import events_page
from moontap.looking.views.page import FOLD
from moontap.looking.views.reply import reply_page
from moontap.redact import flow as redact_flow
from moontap.redact.body import mask_body
from moontap.redact.flow import Redactor
from moontap.rules import Rules
from moontap.rules.redact import Redact
from tests.looking.rig import Listed
from tests.samples import (
    CHAT,
    MESSAGES,
    chat_events,
    chat_request,
    chat_whole,
    dump,
    messages_events,
    messages_request,
    messages_whole,
)
from tests.saved import conversation, exchange

KEY = "sk-" + "Kx7" * 12
RAW = "# shown raw: "
LF = b"\n"
NOT_SHOWN = "# not shown: it could not be searched for secrets (RuntimeError)\n"
NAMES = [view.name for view in VIEWS]


@pytest.fixture(autouse=True)
def _offered() -> Iterator[None]:
    moontap = Moontap()
    with taddons.context(moontap) as context:
        context.configure(moontap, moontap_dir="")
        moontap.running()
        yield
        moontap.done()


def show(one: http.HTTPFlow, name: str = "auto", *, sent: bool = False) -> str:
    message = one.request if sent else one.response
    assert message is not None
    return contentviews.prettify_message(message, one, name).text


def messages(*ids: str, path: str = MESSAGES) -> http.HTTPFlow:
    return exchange(messages_request(), b"".join(messages_events(*ids)), path=path)


def chat(reply: bytes, kind: str = "text/event-stream") -> http.HTTPFlow:
    return exchange(chat_request(), reply, path=CHAT, kind=kind)


@pytest.mark.parametrize(
    ("one", "sent", "chosen"),
    [
        (messages("a"), False, "Moontap-reply"),
        (messages("a"), True, "Moontap-request"),
        (chat(b"".join(chat_events("a"))), False, "Moontap-reply"),
        (chat(chat_whole("a"), kind="application/json"), False, "Moontap-reply"),
        (chat(b"<html>", kind="text/html"), False, "Moontap-reply"),
        (messages("a", path="/v1/messages/count_tokens"), False, None),
        (messages("a", path="/v1/models"), True, None),
    ],
)
def test_the_view_is_chosen_by_itself(one: http.HTTPFlow, sent: bool, chosen: str | None) -> None:
    message = one.request if sent else one.response
    assert message
    shown = contentviews.prettify_message(message, one)
    if chosen is None:
        assert shown.view_name not in NAMES
    else:
        assert (shown.view_name, shown.syntax_highlight) == (chosen, "yaml")
        assert RAW not in shown.text


@pytest.mark.parametrize(
    ("name", "sent", "begins"),
    [
        ("Moontap-reply", False, "reply: "),
        ("Moontap-reply", True, "# this view is for what came back; this was sent:\nrequest: "),
        ("Moontap-request", True, "request: "),
        ("Moontap-request", False, "# this view is for what was sent; this came back:\nreply: "),
        ("Moontap-events", False, "events: "),
        ("Moontap-events", True, "# this view is for what came back; this was sent:\nrequest: "),
        ("Moontap-full", False, "reply: "),
        ("Moontap-full", True, "request: "),
    ],
)
def test_each_view_shows_something_useful_of_either_side(
    name: str, sent: bool, begins: str
) -> None:
    assert show(messages("a"), name, sent=sent).startswith(begins)


def test_a_whole_reply_has_no_events() -> None:
    one = chat(chat_whole("a"), kind="application/json")
    begins = "# this reply came whole: there are no events\nreply: "
    assert show(one, "Moontap-events").startswith(begins)


def test_in_full_nothing_is_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    one = chat(dump({"choices": [{"message": {"content": "z" * 5000}}]}))
    assert show(one).count("z") == FOLD
    assert show(one, "Moontap-full").count("z") == 5000
    monkeypatch.setattr(View, "fold", 90)  # as an option may
    assert show(one).count("z") == 90


def test_both_ids_are_shown() -> None:
    one = messages("Bash_0_tq4k2xw7m3a")
    one.metadata[metadata.UPSTREAM_BODY] = b"".join(messages_events("Bash_0"))
    assert "  id: Bash_0_tq4k2xw7m3a\n  upstream id: Bash_0  # rewritten\n" in show(one)
    assert "id Bash_0 -> Bash_0_tq4k2xw7m3a" in show(one, "Moontap-events")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("before", [0, 55, FOLD - 220, 3000])
def test_no_part_of_a_key_is_shown(name: str, before: int) -> None:
    """Wherever a text is cut or wrapped, and where a stream has cut the key itself."""
    text = "x" * before + f" {KEY} " + "y" * 2000
    pieces = [text[: before + 9], text[before + 9 : before + 20], text[before + 20 :]]
    chunks = [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]
    one = exchange(
        chat_request(opening=text),
        b"".join(b"data: %s\n\n" % dump(chunk) for chunk in chunks),
        path=CHAT,
        authorization=f"Bearer {KEY}",
    )
    shown = show(one, name) + show(one, name, sent=True)
    assert not re.search("Kx7|sk-K", shown)
    assert one.response
    assert KEY[:5].encode() in (one.response.raw_content or b"")  # the flow itself is as it was


def test_what_the_rules_name_is_masked_as_they_are_when_somebody_looks() -> None:
    """By its place in the body, which the page no longer tells."""
    function = {"name": "Login", "arguments": dump({"password": "hunter2"}).decode()}
    message = {"tool_calls": [{"id": "a", "function": function}]}
    one = chat(dump({"choices": [{"message": message}]}), kind="application/json")
    rules = Rules()
    install(lambda text: text, lambda flow: None, lambda: rules)
    assert 'arguments: {"password": "hunter2"}' in show(one)
    rules = Rules(Redact(json_paths=(compile_path("$..password"),)))
    assert 'arguments: {"password": "*******"}' in show(one)


async def test_what_was_found_stands_where_it_belongs() -> None:
    """With what to do, and under the numbers that it speaks of."""
    listed, flows = Listed(), conversation(["pwd", "ls"], lost=frozenset({1}))
    listed.record(flows)
    install(lambda text: text, lambda flow: None, Rules, listed.board.facts)
    reply, request = show(flows[1]), show(flows[1], sent=True)
    words = " ".join(reply.split())
    assert "error id-reused: The id `Bash_0` was used in exchange 1 and came again" in words
    assert "do: Run the agent behind `moontap run -- COMMAND`" in words
    assert "\nexchange: 2\n" in reply
    assert "\nexchange: 2\nconversation: 1\n" in request
    assert "\nfindings of the reply: error id-reused (see Response)\n" in request
    assert "findings:" not in request
    reply, request = show(flows[2]), show(flows[2], sent=True)
    assert "\n  error pair-dropped-by-client: " in request
    assert "\nfindings of the request: error pair-dropped-by-client,\n  warning empty-" in reply


def test_no_part_of_a_key_is_shown_in_what_was_found() -> None:
    """Where a sentence is wrapped in the middle of it."""
    key = "sk-" + "Kx7-" * 12
    sentence = f"{'word ' * 12}{key} came again."
    found = FindingFact("id-reused", "error", sentence, sentence, "", of_request=False)
    one = messages("a")
    install(
        lambda text: text.replace(key, "***"),
        lambda flow: None,
        Rules,
        lambda flow: Facts(findings=[found]),
    )
    for name in NAMES:
        assert "Kx7" not in show(one, name)
        assert "*** came again." in show(one, name) or name == "Moontap-events"


@pytest.mark.parametrize("wire", ["messages", "chat"])
def test_a_stream_that_ends_anywhere_is_shown(wire: str) -> None:
    events = messages_events("Bash_0") if wire == "messages" else chat_events("Bash:0")
    body = b"".join(events).replace(b"pwd", "你🙂\\u001b".encode())
    path = MESSAGES if wire == "messages" else CHAT
    for end in range(len(body)):
        one = exchange(messages_request(), body[:end], path=path)
        pages = [reply_page(reading.reply_of(one)), events_page(reading.stream_of(one))]
        if end % 60 == 0:
            pages += [show(one, name) for name in NAMES]
        for page in pages:
            assert RAW not in page
            assert all(line.isprintable() for line in page.split("\n"))


RANDOM = random.Random(7)
HOSTILE = {
    "nothing": b"",
    "blanks": b" \r\n\n\t",
    "random": RANDOM.randbytes(5000),
    "random lines": b"\n\n".join(b"data: " + RANDOM.randbytes(40) for _ in range(50)),
    "gzip unnamed": gzip.compress(b"".join(messages_events("a")), mtime=0),
    "gzip cut": gzip.compress(b"".join(messages_events("a")) * 9, mtime=0)[:60],
    "broken UTF-8": b'data: {"type":"error","error":{"message":"\xff\xfe"}}\n\n',
    "a number": b"5",
    "null": b"null",
    "a list": b'[{"id":1}]',
    "odd kinds": dump({"id": 5, "model": [], "content": {"a": 1}, "choices": 7, "usage": "x"}),
    "odd members": dump(
        {
            "content": [5, None, {"type": 5}, {"type": "tool_use", "id": {}, "name": []}],
            "choices": [5, {"message": 5}, {"message": {"tool_calls": [5, {"function": 5}]}}],
            "error": None,
        }
    ),
    "odd events": b"".join(
        b"data: %s\n\n" % dump(one)
        for one in (
            {"type": "message_start", "message": [1]},
            {"type": "content_block_start", "index": "x", "content_block": 5},
            {"type": "content_block_start", "content_block": {"type": "tool_use", "id": 5}},
            {"type": "content_block_delta", "index": {}, "delta": {"type": []}},
            {"type": ["x"]},
            {"choices": [{"index": [], "delta": {"tool_calls": [{"index": {}, "id": []}]}}]},
            {"choices": [{"delta": {"tool_calls": {"a": 1}, "content": [1]}}], "usage": [1]},
            {"choices": [{"usage": {"prompt_tokens": {"a": {"b": 1}}}}], "error": {"type": 5}},
        )
    ),
    "many brackets": b"[" * 10_000,
    "a deep event": b"data: " + b"[" * 2_000 + b"\n\n",
    "deep": b'{"content":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "deep arguments": messages_whole("a", command="[" * 10_000),
    "a numeral": b'{"usage":{"input_tokens":%s}}' % (b"9" * 5000),
    "lone surrogates": rb'{"choices":[{"message":{"content":"\ud83d x \udc00"}}]}',
    "carriage returns": b"\r".join(chat_events("a")),
    "HTML": b"<script>alert('\x1b[2J')</script>",
}


@pytest.mark.parametrize("kind", ["text/event-stream", "application/json"])
@pytest.mark.parametrize("path", [MESSAGES, CHAT], ids=["messages", "chat"])
@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_hostile_breaks_a_view(name: str, path: str, kind: str) -> None:
    body = HOSTILE[name]
    one = exchange(body, body, path=path, kind=kind)
    for view in VIEWS:
        for message in (one.response, one.request):
            shown = view.prettify(body, Metadata(flow=one, http_message=message))
            assert isinstance(shown, str)
            assert all(line.isprintable() for line in shown.split("\n")), view.name


def test_gzip_without_a_header_is_read() -> None:
    one = exchange(messages_request(), HOSTILE["gzip unnamed"])
    assert "\n  id: a\n" in show(one)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (Metadata(), "this is no HTTP message"),
        (Metadata(flow=tflow.tflow()), "this is no HTTP message"),
        (Metadata(flow=tflow.ttcpflow(), tcp_message=tcp.TCPMessage(True, b"x")), "no HTTP"),
    ],
)
def test_what_it_is_not_for_is_shown_raw_with_the_reason(given: Metadata, reason: str) -> None:
    for view in VIEWS:
        assert view.render_priority(b"x\x1b", given) == -1
        shown = view.prettify(b"x\x1b", given)
        assert shown.startswith(RAW)
        assert reason in shown
        assert shown.endswith("\nx\\x1b")


def test_other_traffic_is_shown_raw_with_the_reason() -> None:
    one = exchange(b"{}", b"hello\x00", path="/v1/models")
    shown = show(one, "Moontap-reply")
    assert shown == "# shown raw: POST /v1/models: moontap does not read these\nhello\\x00"


def test_a_fault_of_moontap_leaves_the_body_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: object) -> str:
        raise RuntimeError("oh")

    monkeypatch.setattr(View, "seen", staticmethod(fails))
    view = contentviews.registry["moontap-reply"]
    assert show(messages("a")).startswith("reply: ")
    monkeypatch.setattr(view, "_reply", fails)
    one = exchange(messages_request(), dump({"id": KEY}), x_api_key=KEY)
    shown = show(one, "Moontap-reply")
    assert shown.startswith("# shown raw: RuntimeError('oh')\n{")
    assert KEY not in shown


@pytest.mark.parametrize("name", NAMES)
def test_what_cannot_be_masked_is_not_shown(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: object) -> Redactor:
        raise RuntimeError(f"oh {KEY}")

    monkeypatch.setattr(View, "redactor", staticmethod(fails))
    one = messages("a")
    for sent in (False, True):
        assert show(one, name, sent=sent) == NOT_SHOWN
    monkeypatch.undo()
    monkeypatch.setattr(View, "mask", staticmethod(fails))
    assert show(messages("a"), name, sent=True) == NOT_SHOWN


def test_metadata_of_any_depth_is_masked() -> None:
    one = exchange(messages_request(), dump({"error": {"type": KEY}}), x_api_key=KEY)
    deep: object = KEY
    for _ in range(5000):
        deep = [deep]
    one.metadata["theirs"] = deep
    shown = show(one)
    assert shown.startswith("reply: ")
    assert KEY not in shown


def test_foreign_edits_leave_the_reply_readable() -> None:
    for name in (metadata.HEALED, metadata.REMINDED):
        for value in (7, [[1]], [["a", "b", "c"]], [[10**9, 5, b"x"]], [[0, 10**9, b"x"]]):
            one = messages("a")
            one.metadata[name] = value
            assert show(one).startswith("reply: ")


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd", "deflate", None, "gzip, gzip"])
@pytest.mark.parametrize("name", NAMES)
def test_of_an_endless_reply_the_beginning_is_read(
    name: str, coding: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "MOST_BYTES", 100_000)
    monkeypatch.setattr(bounds, "MOST_LINES", 3_000)
    body = b"".join(messages_events("a")) + b"data: {}\n\n" * 30_000
    for most, note in (
        (100_000, "bytes are shown"),
        (10**6, f" of {body.count(LF):,} lines are shown"),
    ):
        monkeypatch.setattr(bounds, "MOST_BYTES", most)
        one = exchange(messages_request(), body)
        assert one.response
        if coding:
            one.response.headers["content-encoding"] = coding
            raw = body
            for each in coding.split(", "):
                raw = encoding.encode(raw, each)
            one.response.raw_content = raw
        read = _count_read(monkeypatch)
        shown = show(one, name)
        assert shown.startswith("# only the first ")
        assert note in shown.split("\n", 1)[0]
        assert max(read) <= 60_000
        assert one.response.headers.get("content-encoding") == coding


def _count_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How large the bodies are that are looked through for secrets."""
    read = [0]

    def counted(body: bytes, *args: Any) -> tuple[bytes, int]:
        read.append(len(body))
        return mask_body(body, *args)

    monkeypatch.setattr(redact_flow, "mask_body", counted)
    return read


def test_of_an_endless_request_the_beginning_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MOST_BYTES", 50_000)
    one = exchange(b"", b"{}")
    one.request.headers["content-encoding"] = "gzip"
    one.request.raw_content = gzip.compress(messages_request(opening="x " * 200_000))
    read = _count_read(monkeypatch)
    shown = show(one, sent=True)
    assert re.match(r"# shown raw: .*; only the first 50,000 bytes are shown\n", shown)
    assert (len(shown) < 51_000, max(read)) == (True, 50_000)


def test_a_body_that_is_shown_raw_is_cut() -> None:
    one = exchange(b"\x1b[" * 2_000_000, b"{}")
    shown = show(one, "Moontap-request", sent=True)
    assert len(shown) < 3_000_000
    assert shown.endswith("\n[… 2,951,424 bytes more …]")


def test_websocket_messages_are_masked_with_the_secrets_of_their_flow() -> None:
    one = tflow.twebsocketflow()
    one.request.headers["authorization"] = "Bearer opaqueTOKEN1"
    assert one.websocket
    message = one.websocket.messages[0]
    message.content = b"it is opaqueTOKEN1"
    shown = contentviews.prettify_message(message, one, "Moontap-reply").text
    assert shown == "# shown raw: this is no HTTP message\nit is ************"


def test_who_looks_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[http.HTTPFlow] = []
    monkeypatch.setattr(View, "seen", staticmethod(seen.append))
    one = messages("a")
    show(one, sent=True)
    assert seen == [one]


def test_ten_megabytes_of_one_line_show_soon() -> None:
    one = chat(dump({"choices": [{"message": {"content": "a" * 10_000_000}}]}))
    begun = time.process_time()
    shown = show(one)
    assert time.process_time() - begun < 2
    assert "10,000,000 characters" in shown
