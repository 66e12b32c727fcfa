from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable

import pytest

from moontap.ids import Mode, Namer, Style
from moontap.live import LookingRewriter, ReplyTap
from moontap.rewrite import CallIds
from moontap.wire.encoding import Decoder
from moontap.wire.protocol import ANTHROPIC, OPENAI
from tests.fixed import gzip_fixed
from tests.wire.streams import CHAT, MESSAGES, block, cuts, few_cuts, named, start, starts


def clock(*seconds: float) -> Callable[[], float]:
    times = iter(seconds)
    return lambda: next(times, 9.0)


def ids() -> CallIds:
    return CallIds(Namer(Mode.ALL, Style.OPAQUE, ()), lambda: "of the request")


def delivered(tap: ReplyTap, pieces: Iterable[bytes]) -> bytes:
    """What mitmproxy would send: never an empty block, which would end the body."""
    sent = []
    for piece in [*filter(None, pieces), b""]:
        out = tap(piece)
        blocks = [out] if isinstance(out, bytes) else out
        assert all(blocks), "an empty block in mid-stream"
        sent += blocks
    return b"".join(sent)


def test_without_a_rewriter_every_chunk_goes_on_as_it_came() -> None:
    tap = ReplyTap(clock(1.0, 1.0014, 2.5))
    assert tap(b"da") == b"da"
    assert tap(b"ta: 1\n\n") == b"ta: 1\n\n"
    assert tap(b"") == []
    assert tap.upstream_body == tap.client_body == b"data: 1\n\n"
    assert tap.chunks == [[2, 1.4], [7, 1500.0]]
    assert tap.fault is None
    assert tap.end() == b""


def test_nothing_to_send_is_an_empty_list() -> None:
    tap = ReplyTap(clock(), LookingRewriter(ANTHROPIC, ids()))
    call = starts(b'"type":"tool_use","id":"pwd_0"')
    assert tap(call[:-1]) == []
    last = tap(call[-1:])
    assert isinstance(last, bytes)
    assert last.startswith(b"event: content_block_start\n")
    assert tap(b"") == []
    assert tap.upstream_body == call
    assert tap.client_body == last != call
    assert [size for size, _ in tap.chunks] == [len(call) - 1, 1]


@pytest.mark.parametrize("stream", [named(MESSAGES, "plain"), named(CHAT, "interleaved")])
def test_what_was_delivered_is_what_is_kept(stream: object, request: pytest.FixtureRequest) -> None:
    case = request.node.callspec.params["stream"]
    for pieces in few_cuts(case.body):
        tap = ReplyTap(clock(), LookingRewriter(case.wire, ids()))
        assert delivered(tap, pieces) == tap.client_body
        assert tap.upstream_body == case.body
        assert all(texts != case.spelled_by(k) for k, texts in case.ids_in(tap.client_body).items())


def test_a_reply_that_breaks_off_gives_its_rest_once() -> None:
    tap = ReplyTap(clock(), LookingRewriter(ANTHROPIC, ids()))
    assert tap(start() + b"data: {") == start()
    assert tap.end() == b"data: {"
    assert tap.end() == b""
    assert tap(b"") == []
    assert tap.client_body == start() + b"data: {"


def test_a_whole_reply_comes_at_its_end() -> None:
    body = b'{"id":"c","choices":[{"message":{"tool_calls":[{"id":"x:0"}]}}]}'
    tap = ReplyTap(clock(), LookingRewriter(OPENAI, ids()))
    assert tap(body[:30]) == []
    assert tap(body[30:]) == []
    (out,) = tap(b"")
    assert tap.client_body.startswith(
        b'{"id":"c","choices":[{"message":{"tool_calls":[{"id":"x_0_t'
    )
    assert tap.client_body == (out if isinstance(out, bytes) else bytes([out]))


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize(("header", "wbits"), [("gzip", 31), (None, 31), ("deflate", 15)])
def test_a_compressed_stream_is_rewritten_however_it_is_cut(
    newline: bytes, header: str | None, wbits: int
) -> None:
    # Flushed within lines and between CR and LF, where the decoder gives nothing for a while.
    plain = (start() + block(0, b"pwd_0")).replace(b"\n", newline)
    packer = zlib.compressobj(wbits=wbits)
    parts = plain.replace(b"\r", b"\r\0").split(b"\0")
    sent = b"".join(packer.compress(p) + packer.flush(zlib.Z_SYNC_FLUSH) for p in parts)
    sent += packer.flush()
    expected = LookingRewriter(ANTHROPIC, ids())
    rewritten = expected.feed(plain) + expected.flush()
    assert rewritten != plain
    for pieces in cuts(sent):
        tap = ReplyTap(clock(), LookingRewriter(ANTHROPIC, ids()), Decoder(header))
        assert delivered(tap, pieces) == rewritten
        assert tap.upstream_body == sent
        assert tap.fault is None


def test_a_byte_held_to_recognise_gzip_is_not_lost() -> None:
    tap = ReplyTap(clock(), LookingRewriter(ANTHROPIC, ids()), Decoder(None))
    assert tap(b"\x1f") == []
    assert tap(b"") == [b"\x1f"]


@pytest.mark.parametrize(
    ("sent", "fault"),
    [
        (gzip_fixed(start())[:-8] + b"\xff" * 30, "a content encoding that does not decode"),
        (gzip_fixed(b'data: {"tool_use"}\n\n'), "an event that is not readable"),
    ],
)
def test_a_fault_is_named(sent: bytes, fault: str) -> None:
    tap = ReplyTap(clock(), LookingRewriter(ANTHROPIC, ids()), Decoder("gzip"))
    delivered(tap, [sent])
    assert tap.fault is not None
    assert tap.fault.startswith(fault)
