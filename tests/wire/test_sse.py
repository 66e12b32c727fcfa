from __future__ import annotations

import re
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moontap.wire import sse
from moontap.wire.sse import Event, Framer, Line, locate
from tests.wire.streams import STREAMS, Stream, cuts

BOM = b"\xef\xbb\xbf"


def framed(pieces: Iterable[bytes]) -> list[Event]:
    framer = Framer()
    events = [event for piece in pieces for event in framer.feed(piece)]
    last = framer.flush()
    return [*events, last] if last else events


def said(events: Iterable[Event]) -> list[bytes]:
    """The data of the events that have any: what does not depend on how the stream was cut."""
    return [event.data for event in events if event.lines]


@pytest.mark.parametrize(
    ("stream", "raws", "datas"),
    [
        pytest.param(b"", [], [], id="empty"),
        pytest.param(b"data: a\n\n", [b"data: a\n\n"], [b"a"], id="lf"),
        pytest.param(b"data: a\r\n\r\n", [b"data: a\r\n\r\n"], [b"a"], id="crlf"),
        pytest.param(
            b"data: a\r\rdata: b\r\r", [b"data: a\r\r", b"data: b\r\r"], [b"a", b"b"], id="cr"
        ),
        pytest.param(b"data: a\r\n\n", [b"data: a\r\n\n"], [b"a"], id="crlf, then lf"),
        pytest.param(b"data: a\n\r\n", [b"data: a\n\r\n"], [b"a"], id="lf, then crlf"),
        pytest.param(b"data: a\n\r", [b"data: a\n\r"], [b"a"], id="lf, then cr"),
        pytest.param(b"data:a\n\n", [b"data:a\n\n"], [b"a"], id="no space"),
        pytest.param(b"data:  a \n\n", [b"data:  a \n\n"], [b" a "], id="one space is dropped"),
        pytest.param(b"data:\ta\n\n", [b"data:\ta\n\n"], [b"\ta"], id="a tab is not"),
        pytest.param(b"data\n\n", [b"data\n\n"], [b""], id="no colon"),
        pytest.param(b"data:\n\n", [b"data:\n\n"], [b""], id="no value"),
        pytest.param(
            b"data: a\ndata:b\ndata\n\n",
            [b"data: a\ndata:b\ndata\n\n"],
            [b"a\nb\n"],
            id="several lines",
        ),
        pytest.param(b"data: a: b\n\n", [b"data: a: b\n\n"], [b"a: b"], id="colons in the value"),
        pytest.param(
            b"dataset: a\nDATA: b\n data: c\n\n",
            [b"dataset: a\nDATA: b\n data: c\n\n"],
            [],
            id="other fields",
        ),
        pytest.param(b": a\ndata: b\n:\n\n", [b": a\ndata: b\n:\n\n"], [b"b"], id="comments"),
        pytest.param(
            b"event: x\nid: 1\ndata: a\n\n", [b"event: x\nid: 1\ndata: a\n\n"], [b"a"], id="fields"
        ),
        pytest.param(
            b"\n\n\r\ndata: a\n\n\n",
            [b"\n", b"\n", b"\r\n", b"data: a\n\n", b"\n"],
            [b"a"],
            id="blank lines",
        ),
        pytest.param(
            b"data: a\n \ndata: b\n\t \n",
            [b"data: a\n \n", b"data: b\n\t \n"],
            [b"a", b"b"],
            id="lines of spaces",
        ),
        pytest.param(b"data: a", [b"data: a"], [b"a"], id="no newline at the end"),
        pytest.param(b"data: a\n", [b"data: a\n"], [b"a"], id="no separator at the end"),
        pytest.param(b"data: a\n\nda", [b"data: a\n\n", b"da"], [b"a"], id="cut in a field's name"),
        pytest.param(BOM + b"data: a\n\n", [BOM + b"data: a\n\n"], [b"a"], id="byte order mark"),
        pytest.param(
            BOM + b"\ndata: a\n\n",
            [BOM + b"\n", b"data: a\n\n"],
            [b"a"],
            id="mark and a blank line",
        ),
        pytest.param(
            b"\n" + BOM + b"data: a\n\n",
            [b"\n", BOM + b"data: a\n\n"],
            [],
            id="a mark further on is text",
        ),
        pytest.param(BOM, [BOM], [], id="mark alone"),
        pytest.param(b"data: \xff\x00\n\n", [b"data: \xff\x00\n\n"], [b"\xff\x00"], id="any bytes"),
        # The examples of the HTML standard, 9.2.6.
        pytest.param(
            b"data: YHOO\ndata: +2\ndata: 10\n\n",
            [b"data: YHOO\ndata: +2\ndata: 10\n\n"],
            [b"YHOO\n+2\n10"],
            id="stocks",
        ),
        pytest.param(
            b": test stream\n\ndata: first event\nid: 1\n\n"
            b"data:second event\nid\n\ndata:  third event",
            [
                b": test stream\n\n",
                b"data: first event\nid: 1\n\n",
                b"data:second event\nid\n\n",
                b"data:  third event",
            ],
            [b"first event", b"second event", b" third event"],
            id="four blocks",
        ),
        pytest.param(
            b"data\n\ndata\ndata\n\ndata:",
            [b"data\n\n", b"data\ndata\n\n", b"data:"],
            [b"", b"\n", b""],
            id="empty data",
        ),
        pytest.param(
            b"data:test\n\ndata: test\n\n",
            [b"data:test\n\n", b"data: test\n\n"],
            [b"test", b"test"],
            id="same",
        ),
    ],
)
def test_events(stream: bytes, raws: list[bytes], datas: list[bytes]) -> None:
    whole = framed([stream])
    assert [event.raw for event in whole] == raws
    assert said(whole) == datas
    assert not any(event.released for event in whole)
    for pieces in cuts(stream):
        events = framed(pieces)
        assert b"".join(event.raw for event in events) == stream
        assert said(events) == datas


@pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: stream.name)
def test_the_streams_of_the_other_tables(stream: Stream) -> None:
    expected = said(framed([stream.body]))
    single = framed(stream.body[at : at + 1] for at in range(len(stream.body)))
    assert b"".join(event.raw for event in single) == stream.body
    assert said(single) == expected


def test_a_cr_ends_its_line_at_once_and_its_lf_follows() -> None:
    framer = Framer()
    assert framer.feed(b"data: a\r\n") == []
    (event,) = framer.feed(b"\r")
    assert event == Event(b"data: a\r\n\r", (Line(6, 7),))
    assert not framer.idle
    assert framer.feed(b"\n") == [Event(b"\n", (), released=True)]
    assert framer.idle


def test_a_cr_still_waits_after_nothing_came() -> None:
    # What a decoder gives while it has not read enough.
    framer = Framer()
    assert framer.feed(b"data: a\r") == []
    assert framer.feed(b"") == []
    assert [event.data for event in framer.feed(b"\ndata: b\r\n\r\n")] == [b"a\nb"]


def test_release_hands_out_the_rest_as_released() -> None:
    framer = Framer()
    assert framer.feed(b"event: ping\nda") == []
    assert framer.first_line == b"event: ping"
    assert framer.release() == b"event: ping\nda"
    assert (framer.pending, framer.released) == (0, True)
    assert framer.feed(b"ta: a\n") == []
    assert framer.first_line == b"event: ping"
    assert framer.release() == b"ta: a\n"
    released, following = framer.feed(b"\ndata: b\n\n")
    assert released == Event(b"\n", (), released=True)
    assert following.data == b"b"
    assert [framer.released, framer.first_line] == [False, None]


@pytest.mark.parametrize("held", [b"", b"data: a\n\n"])
def test_release_of_nothing_is_nothing(held: bytes) -> None:
    framer = Framer()
    framer.feed(held)
    assert framer.release() == b""
    assert [event.data for event in framer.feed(b"data: b\n\n")] == [b"b"]


@pytest.mark.parametrize("cut", range(1, 9))
def test_release_within_a_line_keeps_it_one_line(cut: int) -> None:
    framer = Framer()
    framer.feed(b"data: a "[:cut])
    framer.release()
    assert framer.feed(b"data: a "[cut:] + b"\n") == []
    assert [event.released for event in framer.feed(b"\n")] == [True]


def test_idle_is_between_two_events() -> None:
    framer = Framer()
    states = []
    for piece in (b"", b"data", b": a\n", b"\n", b"\r", b"\n", b"x"):
        framer.feed(piece)
        states.append(framer.idle)
    assert states == [False, False, False, True, False, True, False]
    framer.release()
    assert not framer.idle


@pytest.mark.parametrize(("offset", "place"), [(0, 6), (2, 8), (3, 9), (4, 15), (6, 17), (7, 18)])
def test_locate(offset: int, place: int) -> None:
    (event,) = Framer().feed(b"data: abc\ndata:def\n\n")
    assert event.data == b"abc\ndef"
    assert locate(event.lines, offset) == place


class _CountingSearch:
    """Stands in for the compiled pattern and adds up how many bytes its searches cover."""

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self._pattern = pattern
        self.scanned = self.asked = 0

    def search(self, text: bytearray, start: int) -> re.Match[bytes] | None:
        self.asked += 1
        found = self._pattern.search(text, start)
        self.scanned += (found.end() if found else len(text)) - start
        return found


@pytest.mark.parametrize("size", [1, 7, 4096, 1 << 20])
@pytest.mark.parametrize(
    "stream",
    [
        pytest.param(b"data: " + b"x" * 20_000, id="an endless line"),
        pytest.param(b"data: x\n" * 2_500, id="an endless event"),
        pytest.param(b"data: x\r\n\r\n" * 2_000, id="many events"),
        pytest.param(b"\n" * 20_000, id="blank lines"),
        pytest.param(b"\r" * 20_000, id="CRs"),
    ],
)
def test_no_byte_is_scanned_twice(
    stream: bytes, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = _CountingSearch(sse._NEWLINE)
    monkeypatch.setattr(sse, "_NEWLINE", counting)
    framer = Framer()
    for at in range(0, len(stream), size):
        framer.feed(stream[at : at + size])
    assert counting.scanned <= len(stream)


@pytest.mark.parametrize("line", [b"\n", b"\r\n", b"\r", b" \t\n", b" \r"])
def test_runs_of_blank_lines_are_cheap(line: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    counting = _CountingSearch(sse._NEWLINE)
    monkeypatch.setattr(sse, "_NEWLINE", counting)
    events = framed([b"data: a\n\n", line * 5000, b"data: b\n\n"])
    assert [event.raw for event in events[1:-1]] == [line] * 5000
    assert said(events) == [b"a", b"b"]
    assert counting.asked < 20


_PARTS = st.lists(
    st.one_of(
        st.sampled_from([b"\n", b"\r", b"\r\n", b"data", b"data:", b": ", b" ", b"\t", b"a", BOM]),
        st.binary(max_size=4),
    ),
    max_size=30,
)


@given(parts=_PARTS)
@settings(max_examples=400, deadline=None)
def test_any_bytes_come_out_and_mean_the_same_in_any_chunks(parts: list[bytes]) -> None:
    body = b"".join(parts)
    whole = framed([body])
    assert b"".join(event.raw for event in whole) == body
    for pieces in (parts, [body[at : at + 1] for at in range(len(body))]):
        events = framed(pieces)
        assert b"".join(event.raw for event in events) == body
        assert said(events) == said(whole)


@given(parts=_PARTS, released=st.lists(st.booleans(), min_size=31, max_size=31))
@settings(max_examples=300, deadline=None)
def test_releasing_loses_no_byte_and_reads_on(parts: list[bytes], released: list[bool]) -> None:
    framer = Framer()
    out = []
    for piece, release in zip(parts, released, strict=False):
        out += [event.raw for event in framer.feed(piece)]
        if release:
            out.append(framer.release())
            assert framer.pending == 0
    last = framer.flush()
    out.append(last.raw if last else b"")
    assert b"".join(out) == b"".join(parts)
