from __future__ import annotations

import pytest

from moontap.wire.protocol import (
    ANTHROPIC,
    OPENAI,
    Wire,
    event_texts,
    of_request,
    read_ids,
    read_shape,
    read_stream,
)
from moontap.wire.sse import Framer, plain_events
from tests.wire.streams import STREAMS, Stream, named

# Events are told by the letters of their markers, which no server escapes: neither the rewriter nor
# `read_shape` sees the calls of the other two.
SEEN = [stream for stream in STREAMS if not stream.name.endswith("is not seen")]


@pytest.mark.parametrize(
    ("method", "path", "wire"),
    [
        ("POST", "/v1/messages", ANTHROPIC),
        ("POST", "/anthropic/v1/messages", ANTHROPIC),
        ("POST", "/anthropic/v1/messages?beta=true", ANTHROPIC),
        ("POST", "/coding/v1/messages", ANTHROPIC),
        ("POST", "/v1/messages/", ANTHROPIC),
        ("POST", "/v1/chat/completions", OPENAI),
        ("POST", "/coding/v1/chat/completions", OPENAI),
        ("POST", "/api/paas/chat/completions?x=/v1/messages", OPENAI),
        ("POST", "chat/completions", OPENAI),
        ("GET", "/v1/messages", None),
        ("OPTIONS", "/v1/chat/completions", None),
        ("POST", "/anthropic/v1/messages/count_tokens", None),
        ("POST", "/v1/messages/batches", None),
        ("POST", "/v2/messages", None),
        ("POST", "/xv1/messages", None),
        ("POST", "/v1/completions", None),
        ("POST", "/v1/responses", None),
        ("POST", "/xchat/completions", None),
        ("POST", "/?/v1/messages", None),
        ("POST", "", None),
    ],
)
def test_of_request(method: str, path: str, wire: Wire | None) -> None:
    assert of_request(method, path) is wire


@pytest.mark.parametrize(
    ("event", "texts"),
    [
        (b": a comment\n\n", []),
        (b'data: {"a":1}\n\n', [b'{"a":1}']),
        (b'data: {"a":\ndata: 1}\n\n', [b'{"a":\n1}']),
        (b'data: {"a":1}\ndata:{"b":2} \n\n', [b'{"a":1}', b'{"b":2} ']),
        (b'data: {"a":1}\ndata: [DONE]\n\n', [b'{"a":1}', b"[DONE]"]),
        (b'data: {"a":1}\ndata: {"b"\n\n', [b'{"a":1}\n{"b"']),
        (b'data: {"a":1}\ndata\n\n', [b'{"a":1}\n']),
        (b"data: x\ndata: y\n\n", [b"x\ny"]),
    ],
)
def test_event_texts(event: bytes, texts: list[bytes]) -> None:
    (framed,) = Framer().feed(event)
    assert [framed.text(lines) for lines in event_texts(framed)] == texts


@pytest.mark.parametrize("stream", SEEN, ids=lambda stream: stream.name)
def test_the_reader_and_the_marks_tell_of_the_same_calls(stream: Stream) -> None:
    read = {call.id for call in read_stream(stream.wire, stream.body).calls}
    # Of a call whose id changes the first counts, and JSON that no client reads names none.
    unread = {"x:1", "x:2"} if stream.wire is OPENAI else {"pwd_0"}
    assert stream.ids - read <= unread


@pytest.mark.parametrize("stream", SEEN, ids=lambda stream: stream.name)
def test_read_shape_gives_all_but_the_texts_of_read_stream(stream: Stream) -> None:
    shape, whole = read_shape(stream.wire, stream.body), read_stream(stream.wire, stream.body)
    assert shape.calls == whole.calls
    for name in ("usage", "error", "complete", "doubled", "restarts"):
        assert getattr(shape, name) == getattr(whole, name), name
    stops = {number: choice.stop_reason for number, choice in shape.choices.items()}
    assert stops.items() <= {n: choice.stop_reason for n, choice in whole.choices.items()}.items()
    if whole.calls:
        assert shape.message_id == whole.message_id


@pytest.mark.parametrize("stream", SEEN, ids=lambda stream: stream.name)
def test_read_ids_gives_their_ids(stream: Stream) -> None:
    ids, whole = read_ids(stream.wire, stream.body), read_stream(stream.wire, stream.body)
    assert [(c.id, c.choice, c.index) for c in ids.calls] == [
        (c.id, c.choice, c.index) for c in whole.calls
    ]


def framed(body: bytes) -> list[tuple[bytes, bytes]]:
    """All events of a stream, raw and data, as the framer finds them."""
    framer = Framer()
    events, last = framer.feed(body), framer.flush()
    return [(event.raw, event.data) for event in ([*events, last] if last else events)]


@pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: stream.name)
def test_plain_events_are_those_of_the_framer(stream: Stream) -> None:
    for body in (stream.body, *(stream.body[:-cut] for cut in range(1, 40))):
        plain = plain_events(body)
        rest = body[sum(len(raw) for raw, _ in plain) :]
        assert plain + framed(rest) == framed(body)


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (b"data: 1\n\nevent: x\ndata:2\n\n", 2),
        (b"data: 1\n\ndata: 2\n", 1),
        (b"data:\n\n", 1),
        (b"", 0),
        # Whatever else there is: the framer's.
        (b"data: 1\n\n: comment\n\ndata: 2\n\n", 0),
        (b"data: 1\n\n: comment\n\n", 1),
        (b"data: 1\n\nid: 7\ndata: 2\n\n", 0),
        (b"data: 1\r\n\r\n", 0),
        (b"data: 1\ndata: 2\n\n", 0),
        (b"\xef\xbb\xbfdata: 1\n\n", 0),
        (b"data: 1\n\n\xef\xbb\xbfdata: 2\n\n", 0),
        (b"\ndata: 1\n\n", 0),
        (b"xdata: 1\n\ndata: 1\n\n", 0),
        (b"data: 1\n\n \n\ndata: 1\n\n", 0),
    ],
)
def test_what_is_a_plain_event(body: bytes, count: int) -> None:
    plain = plain_events(body)
    assert len(plain) == count
    rest = body[sum(len(raw) for raw, _ in plain) :]
    if not rest.startswith(b"\xef\xbb\xbf"):
        assert plain + framed(rest) == framed(body)


def test_a_stream_that_breaks_off_is_read_as_far_as_it_goes() -> None:
    body = named(STREAMS, "plain").body
    for length in range(len(body)):
        reply = read_stream(ANTHROPIC, body[:length])
        assert reply.complete == (length >= body.index(b'"message_stop"}') + 15)
        assert len(reply.calls) == (length >= body.index(b'"input":{}}}') + 12)
