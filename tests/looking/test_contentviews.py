from __future__ import annotations

import gzip
import random
import re
import time
from collections.abc import Iterator

import pytest
from mitmproxy import contentviews, http, tcp
from mitmproxy.contentviews import Metadata
from mitmproxy.test import taddons, tflow

from moontap.addon import Moontap
from moontap.capture import metadata
from moontap.jsonpaths import compile_path
from moontap.looking import reading
from moontap.looking.contentviews import VIEWS, View, install
from moontap.looking.views.events import events_page
from moontap.looking.views.page import FOLD
from moontap.looking.views.reply import reply_page
from moontap.rules import Rules
from moontap.rules.redact import Redact
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
from tests.saved import exchange

KEY = "sk-" + "Kx7" * 12
RAW = "# shown raw: "
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
    def fails(flow: http.HTTPFlow) -> None:
        raise RuntimeError("oh")

    monkeypatch.setattr(View, "seen", staticmethod(fails))
    shown = show(messages("a"))
    assert shown.startswith("# shown raw: RuntimeError('oh')\nevent: message_start")


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
