from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moontap import rewrite
from moontap.ids import MAX_LENGTH, Mode, Namer, Style
from moontap.rewrite import CallIds, StreamRewriter, WholeRewriter, splice
from moontap.wire.protocol import ANTHROPIC, OPENAI, Wire
from tests.wire.streams import (
    CHAT,
    END,
    LARGE,
    MESSAGES,
    STREAMS,
    Stream,
    block,
    cuts,
    event,
    few_cuts,
    goes_on,
    named,
    opens,
    random_cuts,
    start,
    starts,
    tool_calls,
)

BY_NAME = pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: stream.name)


def ids(mode: Mode = Mode.ALL, style: Style = Style.OPAQUE, taken: Iterable[str] = ()) -> CallIds:
    return CallIds(Namer(mode, style, taken), lambda: "of the request")


def fed(rewriter: StreamRewriter | WholeRewriter, pieces: Iterable[bytes]) -> bytes:
    return b"".join([*map(rewriter.feed, pieces), rewriter.flush()])


def rewritten(wire: Wire, body: bytes, call_ids: CallIds | None = None) -> bytes:
    return fed(StreamRewriter(wire, call_ids or ids()), [body])


# what changes, and what does not


@BY_NAME
def test_off_changes_no_byte(stream: Stream) -> None:
    assert rewritten(stream.wire, stream.body, ids(Mode.OFF, taken=stream.ids)) == stream.body


@BY_NAME
def test_all_gives_every_call_an_id_of_its_own(stream: Stream) -> None:
    call_ids = ids(Mode.ALL)
    given = stream.ids_in(rewritten(stream.wire, stream.body, call_ids))
    new = {label: set(texts) for label, texts in given.items()}
    assert all(len(texts) == 1 for texts in new.values()), "one call, one id"
    assert len(set.union(set(), *new.values())) == len(new), "one id, one call"
    for text in set.union(set(), *new.values()):
        assert re.fullmatch(rb"[A-Za-z0-9_-]{1,%d}" % MAX_LENGTH, text)
        assert not re.search(rb"_[0-9]+$", text)
    assert {change.id.encode() for change in call_ids.changes} == set.union(set(), *new.values())


@BY_NAME
def test_duplicates_leaves_the_first_use_its_own_id(stream: Stream) -> None:
    given = stream.ids_in(rewritten(stream.wire, stream.body, ids(Mode.DUPLICATES)))
    kept = {label for label, texts in given.items() if texts == stream.spelled_by(label)}
    assert set(given) - kept == set(stream.again)


@pytest.mark.parametrize("style", [Style.OPAQUE, Style.NATIVE])
@BY_NAME
def test_duplicates_changes_every_id_that_is_taken(stream: Stream, style: Style) -> None:
    call_ids = ids(Mode.DUPLICATES, style, stream.ids)
    given = stream.ids_in(rewritten(stream.wire, stream.body, call_ids))
    assert all(len(set(texts)) == 1 for texts in given.values())
    new = [texts[0].decode() for texts in given.values()]
    assert len(set(new)) == len(new)
    assert not set(new) & stream.ids
    assert sorted(new) == sorted(change.id for change in call_ids.changes)


@BY_NAME
def test_two_rewriters_give_a_response_the_same_ids(stream: Stream) -> None:
    taken = ["only", "one", "of them has seen"]
    alone = rewritten(stream.wire, stream.body, ids())
    assert rewritten(stream.wire, stream.body, ids(taken=taken)) == alone


@BY_NAME
def test_rewriting_once_more_changes_nothing(stream: Stream) -> None:
    once = rewritten(stream.wire, stream.body)
    again = ids()
    assert rewritten(stream.wire, once, again) == once
    assert again.changes == []


# whatever the chunking


@pytest.mark.parametrize("stream", [*MESSAGES, *CHAT], ids=lambda stream: stream.name)
def test_the_output_is_the_same_however_a_stream_is_cut(stream: Stream) -> None:
    whole = rewritten(stream.wire, stream.body)
    for pieces in cuts(stream.body):
        assert fed(StreamRewriter(stream.wire, ids()), pieces) == whole, pieces


@pytest.mark.parametrize(
    ("mode", "style"),
    [
        (Mode.OFF, Style.OPAQUE),
        (Mode.DUPLICATES, Style.OPAQUE),
        (Mode.DUPLICATES, Style.NATIVE),
        (Mode.ALL, Style.NATIVE),
    ],
)
@BY_NAME
def test_so_it_is_in_every_mode(stream: Stream, mode: Mode, style: Style) -> None:
    whole = rewritten(stream.wire, stream.body, ids(mode, style))
    for pieces in few_cuts(stream.body):
        assert fed(StreamRewriter(stream.wire, ids(mode, style)), pieces) == whole, pieces


@BY_NAME
def test_the_output_is_the_same_with_data_behind(stream: Stream) -> None:
    more = b"\n\n: behind\n\n" + b"data: x\r\n\r\n" + named(MESSAGES, "plain").body
    body = stream.body + more
    whole = rewritten(stream.wire, body)
    for pieces in [[stream.body, more], [body[at : at + 1] for at in range(len(body))]]:
        assert fed(StreamRewriter(stream.wire, ids()), pieces) == whole
    for pieces in random_cuts(body):
        assert fed(StreamRewriter(stream.wire, ids()), pieces) == whole


@pytest.mark.parametrize("stream", [named(MESSAGES, "plain"), named(CHAT, "interleaved")])
def test_a_stream_may_break_off_anywhere(stream: Stream) -> None:
    for length in range(0, len(stream.body), 3):
        body = stream.body[:length]
        whole = rewritten(stream.wire, body)
        single = [body[at : at + 1] for at in range(length)]
        assert fed(StreamRewriter(stream.wire, ids()), single) == whole


@pytest.mark.parametrize("stream", LARGE, ids=lambda stream: stream.name)
def test_large_oddities(stream: Stream) -> None:
    whole = rewritten(stream.wire, stream.body)
    given = stream.ids_in(whole)
    assert all(texts != stream.spelled_by(label) for label, texts in given.items())
    for pieces in random_cuts(stream.body, 1):
        assert fed(StreamRewriter(stream.wire, ids()), pieces) == whole


# arbitrary bytes

_TOKENS = [
    *(b"\n", b"\r", b"\r\n", b"\n\n", b" ", b"\t", b":", b"data:", b"data: ", b"event: "),
    *(b"event: content_block_delta\n", b"\xef\xbb\xbf", b"\xff", b"{", b"}", b"[", b"]", b'"'),
    *(b"\\", b"\\u00", b'"tool_calls":[', b'"tool_use"', b'{"type":"message_start"', b"[DONE]"),
]
_EVENTS = {
    wire.protocol: [
        piece
        for stream in STREAMS
        if stream.wire is wire
        for piece in re.findall(rb".+?(?:\n\n|$)", stream.body, re.DOTALL)
        if len(piece) < 600
    ]
    for wire in (ANTHROPIC, OPENAI)
}


def garbled(wire: Wire) -> st.SearchStrategy[bytes]:
    """Streams of real events, pieces of such, and anything."""
    events = st.sampled_from(_EVENTS[wire.protocol])
    torn = st.tuples(events, st.floats(0, 1)).map(lambda t: t[0][int(len(t[0]) * t[1]) :])
    anything = st.one_of(events, events, torn, st.sampled_from(_TOKENS), st.binary(max_size=6))
    return st.lists(anything, max_size=12).map(b"".join)


def blanked_is_equal(before: bytes, after: bytes, new: Sequence[str]) -> bool:
    """Whether the two are equal but for what stands, as a whole string, in place of new ids."""
    names = b"|".join(re.escape(name.encode()) for name in sorted(set(new), key=len)[::-1])
    parts = re.split(rb'(?<=")(?:%s)(?=")' % names, after) if new else [after]
    pattern = rb'(?:[^"\\]|\\.)*+'.join(re.escape(part) for part in parts)
    return re.fullmatch(pattern, before, re.DOTALL) is not None


@pytest.mark.parametrize("wire", [ANTHROPIC, OPENAI], ids=lambda wire: wire.protocol.value)
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_any_bytes_in_any_chunks_differ_in_ids_alone(wire: Wire, data: st.DataObject) -> None:
    body = data.draw(garbled(wire))
    mode = data.draw(st.sampled_from([Mode.DUPLICATES, Mode.ALL]))
    call_ids = ids(mode)
    whole = rewritten(wire, body, call_ids)
    assert blanked_is_equal(body, whole, [change.id for change in call_ids.changes])
    ends = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=8)))
    pieces = [body[a:b] for a, b in zip([0, *ends], [*ends, len(body)], strict=True)]
    assert fed(StreamRewriter(wire, ids(mode)), pieces) == whole
    fed(WholeRewriter(wire, ids(mode)), pieces)


# latency


@pytest.mark.parametrize("stream", [named(MESSAGES, "plain"), named(CHAT, "plain")])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_an_event_leaves_with_the_byte_that_completes_it(stream: Stream, newline: bytes) -> None:
    body = stream.body.replace(b"\n", newline)
    separator = newline * 2
    rewriter = StreamRewriter(stream.wire, ids(Mode.OFF))
    sent = b""
    for at in range(len(body)):
        sent += rewriter.feed(body[at : at + 1])
        so_far = body[: at + 1]
        if newline == b"\r\n":  # the CR ends the event; its LF follows when it comes
            complete = so_far.rfind(b"\r\n\r") + 3 if b"\r\n\r" in so_far else 0
        else:
            complete = so_far.rfind(separator) + len(separator) if separator in so_far else 0
        assert len(sent) >= complete
    assert rewriter.flush() == b""


@pytest.mark.parametrize(
    "name",
    ["content_block_delta", "content_block_stop", "message_delta", "message_stop", "ping", "error"],
)
def test_an_event_that_cannot_hold_an_id_leaves_at_once(name: str) -> None:
    rewriter = StreamRewriter(ANTHROPIC, ids())
    line = b"event: " + name.encode()
    assert rewriter.feed(line) == b""
    assert rewriter.feed(b"\n") == line + b"\n"
    assert rewriter.feed(b'data: {"ty') == b'data: {"ty'
    assert rewriter.feed(b'pe":"tool_use"}\n') == b'pe":"tool_use"}\n'
    assert rewriter.feed(b"\n" + start()) == b"\n" + start()
    assert rewriter.feed(b"event: content_block_start\n") == b""


def test_an_event_that_can_hold_an_id_waits_for_its_end_only() -> None:
    rewriter = StreamRewriter(ANTHROPIC, ids())
    call = starts(b'"type":"tool_use","id":"pwd_0"')
    assert rewriter.feed(call[:-1]) == b""
    assert rewriter.feed(call[-1:]).startswith(b'event: content_block_start\ndata: {"type"')
    assert rewriter.flush() == b""


def test_many_events_in_one_chunk_and_the_beginning_of_another() -> None:
    rewriter = StreamRewriter(ANTHROPIC, ids())
    assert rewriter.feed(start() + END + b"data: {") == start() + END
    assert rewriter.flush() == b"data: {"
    assert rewriter.flush() == b""


def test_an_event_past_the_limit_passes_unread() -> None:
    start_of_call = b'data: {"type":"content_block_start","content_block":{"type":"tool_use","id":"'
    rewriter = StreamRewriter(ANTHROPIC, ids())
    piece = start_of_call + b"x" * (1 << 20)
    sent = [len(rewriter.feed(piece if n == 0 else b"x" * (1 << 20))) for n in range(6)]
    assert sent[:3] == [0, 0, 0]
    assert sum(sent) == len(piece) + 5 * (1 << 20), "nothing of it is held any more"
    assert rewriter.feed(b"y") == b"y"
    assert rewriter.fault == f"an event of more than {rewrite.MAX_HELD} bytes"
    assert rewriter.feed(b'"}}\n\n') == b'"}}\n\n'
    assert rewriter.feed(block(0, b"pwd_0")) != block(0, b"pwd_0"), "the next one is read again"


@pytest.mark.parametrize("spare", [-1, 0, 1])
def test_the_limit_is_the_same_however_an_event_comes(
    spare: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = starts(b'"type":"tool_use","id":"pwd_0"')
    monkeypatch.setattr(rewrite, "MAX_HELD", len(stream) + spare)
    outputs = {fed(StreamRewriter(ANTHROPIC, ids()), pieces) for pieces in cuts(stream)}
    assert len(outputs) == 1
    assert (outputs == {stream}) == (spare < 0)


def test_what_is_not_readable_is_named_once_and_passes() -> None:
    rewriter = StreamRewriter(OPENAI, ids())
    broken = b'data: {"choices" "tool_calls"}\n\n'
    assert rewriter.feed(broken) == broken
    assert rewriter.fault is not None
    assert "not readable" in rewriter.fault


# calls


def test_the_first_id_of_a_call_decides() -> None:
    call_ids = ids(Mode.DUPLICATES, taken=["x:0"])
    body = named(CHAT, "a new id on every fragment").body
    changed = rewritten(OPENAI, body, call_ids)
    (change,) = call_ids.changes
    assert (change.upstream_id, call_ids.used) == ("x:0", {"x:0", change.id})
    assert changed.count(change.id.encode()) == 3
    assert b"x:" not in changed


def test_a_call_that_keeps_its_first_id_keeps_the_others() -> None:
    body = named(CHAT, "a new id on every fragment").body
    assert rewritten(OPENAI, body, ids(Mode.DUPLICATES, taken=["x:1", "x:2"])) == body


def test_what_stands_for_a_missing_message_id() -> None:
    stream = named(CHAT, "message id missing")

    def given(of_request: str) -> bytes:
        call_ids = CallIds(Namer(Mode.ALL, Style.OPAQUE, ()), lambda: of_request)
        return rewritten(stream.wire, stream.body, call_ids)

    assert given("one") == given("one") != given("other")


def test_native_ids_count_on_from_those_taken() -> None:
    body = tool_calls(opens(0, b"search:0"), opens(1, b"search:0"), opens(2, b"functionsexec5"))
    taken = ["search:0", "functions.Bash:6", "functionsexec5"]
    call_ids = ids(Mode.DUPLICATES, Style.NATIVE, taken)
    rewritten(OPENAI, body, call_ids)
    assert [change.id for change in call_ids.changes][:2] == ["search:7", "search:8"]
    assert call_ids.changes[2].id.startswith("functionsexec5_t")


def test_a_native_id_keeps_what_its_name_holds() -> None:
    body = tool_calls(opens(0, rb"a\"b\u00e9:0") + b"," + goes_on(0)[10:])
    changed = rewritten(OPENAI, body, ids(Mode.DUPLICATES, Style.NATIVE, ['a"bé:0']))
    assert changed == body.replace(rb"a\"b\u00e9:0", 'a\\"bé:1'.encode())


# whole replies

_MESSAGE = (
    b' {"id":"msg_1","type":"message","content":[\n{"type":"text","text":"tool_use pwd_0"},'
    b'{"type":"tool_use","id":"<<A|pwd_0>>","input":{"type":"tool_use","id":"pwd_0"}},'
    b'{"type":"server_tool_use","id":"pwd_0"},{"type":"tool_use","id":""},'
    b'{"type":"tool_use","id":null},{"type":"tool_use","id":"<<B|pwd_0>>"}],"usage":{}}\r\n'
)
_COMPLETION = (
    b'{"id":"c1","choices":[{"message":{"content":"x:0","tool_calls":[{"id":"<<A|x:0>>","index":0,'
    b'"function":{"arguments":"{\\"id\\":\\"x:0\\"}"}},{"index":0,"id":"<<B|x:0>>"}]}},'
    b'{"index":1,"message":{"tool_calls":[{"id":"<<C|x:0>>"},{"id":""},{"id":null},null]}}]}'
)
WHOLE = [
    Stream("messages", ANTHROPIC, _MESSAGE, again="B"),
    Stream("chat", OPENAI, _COMPLETION, again="BC"),
]


@pytest.mark.parametrize("reply", WHOLE, ids=lambda reply: reply.name)
def test_a_whole_reply_is_held_and_changed_in_ids_alone(reply: Stream) -> None:
    for mode, changed in (
        (Mode.OFF, set()),
        (Mode.DUPLICATES, set(reply.again)),
        (Mode.ALL, set("ABC")),
    ):
        for pieces in random_cuts(reply.body):
            rewriter = WholeRewriter(reply.wire, ids(mode))
            assert all(rewriter.feed(piece) == b"" for piece in pieces)
            given = reply.ids_in(rewriter.flush())
            kept = {label for label, texts in given.items() if texts == reply.spelled_by(label)}
            assert set(given) - kept == changed & set(given)
            assert rewriter.flush() == b""


@pytest.mark.parametrize("wire", [ANTHROPIC, OPENAI], ids=lambda wire: wire.protocol.value)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"tool_use"',
        b"<html>504</html>",
        b'{"type":"error","error":{"type":"x","message":"y"}}',
        b'{"error":{"message":"no"}}',
        b'{"content":null,"choices":null}',
        b'{"content":[{"type":"tool_use","id":"x","input":' + b"[" * 100_000,
        b'{"choices":[{"message":{"tool_calls":[{"id":"x","function":{"arguments":"'
        + b'\\"' * 100_000,
        b"\x1f\x8b\x08\x00",
    ],
    ids=lambda body: body[:20].decode("latin-1"),
)
def test_a_whole_reply_without_calls_passes(wire: Wire, body: bytes) -> None:
    assert fed(WholeRewriter(wire, ids()), [body]) == body


def test_a_streamed_call_and_the_same_call_whole_get_one_id() -> None:
    streamed, whole = ids(), ids()
    rewritten(ANTHROPIC, start() + block(0, b"pwd_0") + END, streamed)
    body = b'{"id":"msg_a1","content":[{"type":"tool_use","id":"pwd_0"}]}'
    fed(WholeRewriter(ANTHROPIC, whole), [body])
    assert streamed.changes == whole.changes != []


@pytest.mark.parametrize(
    ("edits", "text"),
    [
        ([], b"abcdef"),
        ([(0, 1, b"")], b"bcdef"),
        ([(0, 2, b"X"), (2, 3, b"YY"), (5, 6, b"Z")], b"XYYdeZ"),
        ([(6, 6, b"!")], b"abcdef!"),
    ],
)
def test_splice(edits: list[tuple[int, int, bytes]], text: bytes) -> None:
    assert splice(b"abcdef", edits) == text


def test_an_event_name_alone_does_not_hide_a_call() -> None:
    body = event(
        "surprise", b'{"type":"content_block_start","content_block":{"type":"tool_use","id":"x"}}'
    )
    assert rewritten(ANTHROPIC, body) != body
