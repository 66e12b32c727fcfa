from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from mitmproxy import flow, http

from moontap.capture import exchange as exchanges
from moontap.capture import metadata
from moontap.capture.reader import FlowFile
from moontap.looking import reading
from moontap.looking.views.events import events_page
from moontap.looking.views.reply import reply_page
from moontap.wire.history import HistoryReader
from tests.looking.views.asked import known
from tests.samples import CHAT, chat_events, chat_request, messages_events, messages_request
from tests.saved import exchange

FLOWS = sorted((Path(__file__).parents[2] / "flows").glob("*.flow"))


def made(*ids: str, upstream: tuple[str, ...] | None = None) -> http.HTTPFlow:
    one = exchange(messages_request(), b"".join(messages_events(*ids)))
    if upstream is not None:
        one.metadata[metadata.UPSTREAM_BODY] = b"".join(messages_events(*upstream))
    return one


def chat(reply: bytes, upstream: bytes) -> http.HTTPFlow:
    one = exchange(chat_request(), reply, path=CHAT)
    one.metadata[metadata.UPSTREAM_BODY] = upstream
    return one


@pytest.mark.parametrize("path", FLOWS, ids=lambda path: path.stem)
def test_every_saved_flow_shows_both_ids_of_every_call(path: Path) -> None:
    history = HistoryReader()
    for one in FlowFile(path):
        if reading.wire_of(one) is None or one.response is None:
            continue
        read = exchanges.read(one, history)
        lines = reply_page(reading.reply_of(one)).splitlines()
        ids = [line.strip().split("  #")[0] for line in lines if " id: " in line]
        for call in read.calls if read else ():
            for name, id_ in (("id", call.call.id), ("upstream id", call.upstream_id)):
                said = "(no id)" if id_ is None else id_ or "(empty id)"
                assert f"{name}: {said}" in ids
        if reading.is_stream(one):
            page = events_page(reading.stream_of(one))
            assert page.startswith("events: ")
            for call in read.calls if read else ():
                if call.upstream_id and call.call.id != call.upstream_id:
                    assert f"{call.upstream_id} -> {call.call.id}" in page


@pytest.mark.parametrize(
    ("one", "ids"),
    [
        (made("a", "b"), ["a", "b"]),
        (made("a_t", "b", upstream=("a", "b")), ["a", "b"]),
        # Still coming: what upstream has sent is ahead of what the client has.
        (made("a_t", upstream=("a", "b")), ["a"]),
        (made("a_t", "b", upstream=("a",)), ["a", "b"]),
        # Two messages in one stream: their indexes begin anew.
        (
            exchange(messages_request(), b"".join(messages_events("x", "y") * 2)),
            ["x", "y", "x", "y"],
        ),
        (
            chat(
                b"".join(chat_events("a_t", "b_t")),
                b"".join([chat_events("a")[1], *chat_events("a", "b")]),
            ),
            ["a", "b"],
        ),
    ],
)
def test_upstream_ids_are_told_by_where_a_call_stands(
    one: http.HTTPFlow, ids: list[str | None]
) -> None:
    assert reading.reply_of(one).upstream_ids == ids


@pytest.mark.parametrize(
    ("answers", "results"),
    [
        ([], [None, None, None]),
        ([["b", "ok in 1 s"]], [None, "ok in 1 s", None]),
        ([["a", "ok in 1 s"], ["a", "unanswered"]], ["ok in 1 s", None, "unanswered"]),
        # One answer for two calls of that id: nobody can tell whose.
        ([["a", "ok in 1 s"], ["x", "ok"]], [None, None, None]),
    ],
)
def test_results_belong_to_calls_by_occurrence(
    answers: list[list[str]], results: list[str | None]
) -> None:
    one = made("a", "b", "a")
    one.metadata[metadata.ANSWERS] = answers
    assert reading.reply_of(one).results == results


def test_what_is_known_of_a_reply() -> None:
    one = exchange(
        messages_request([("Bash_0", "ls", "x")]),
        b"".join(messages_events("Bash_0")),
        msh_request_id="not the response's",
    )
    assert one.response
    one.response.headers["msh-request-id"] = "r-1"
    one.metadata[metadata.FINDINGS] = "error id-reused, info slow"
    shown = reading.reply_of(one)
    assert shown.used == {"Bash_0"}
    assert shown.request_id == "r-1"
    assert shown.seconds == pytest.approx(0.4)
    assert shown.findings == [known("error", "id-reused"), known("info", "slow")]
    assert shown.exchange is None
    assert (shown.live, shown.cut, shown.trouble) == (False, False, None)


@pytest.mark.parametrize(
    ("history", "again"),
    [
        ("Bash:0", True),
        # Made anew by the tap in an earlier reply: upstream had sent what it sends now.
        ("Bash_0_tq4k2xw7m3a", True),
        ("Bash_0_tq4k2xw7m3", False),
        ("Bash_1_tq4k2xw7m3a", False),
        ("Bash_0", False),
    ],
)
def test_an_id_is_known_again_that_the_history_holds_in_another_form(
    history: str, again: bool
) -> None:
    one = chat(b"".join(chat_events("Bash_0_tzzzzzzzzzz")), b"".join(chat_events("Bash:0")))
    one.request.content = chat_request([(history, "ls", "x")])
    assert ("Bash:0" in reading.reply_of(one).used) is again


@pytest.mark.parametrize(
    ("whole", "live", "ended", "error", "state"),
    [
        (False, True, None, None, (True, False, None)),
        (True, True, 5.0, None, (False, False, None)),
        (False, True, None, "gone", (False, True, "gone")),
        (False, False, None, "gone", (False, True, "gone")),
        (True, False, None, "gone", (False, False, None)),  # after its end
        (True, False, None, None, (False, False, None)),
    ],
)
def test_whether_it_is_still_coming(
    whole: bool,
    live: bool,
    ended: float | None,
    error: str | None,
    state: tuple[bool, bool, str | None],
) -> None:
    one = made("a")
    assert one.response
    if not whole:
        one.response.content = b"".join(messages_events("a")[:-1])
    one.live, one.response.timestamp_end = live, ended
    one.error = flow.Error(error) if error else None
    shown = reading.reply_of(one)
    assert (shown.live, shown.cut, shown.trouble) == state
    head = events_page(reading.stream_of(one)).splitlines()[0]
    assert head.endswith("still coming") is shown.live
    assert head.endswith("broke off") is shown.cut


def test_a_request_that_cannot_be_read_does_not_hide_the_reply() -> None:
    one = exchange(b"no JSON", b"".join(messages_events("a")))
    assert [call.id for call in reading.reply_of(one).reply.calls] == ["a"]


EVENTS = b"".join(chat_events("a"))


@pytest.mark.parametrize(
    ("body", "coding", "chunks", "untimed"),
    [
        (EVENTS, None, [[len(EVENTS), 4.5]], ""),
        (EVENTS, None, [], "the tap did not record this"),
        (
            gzip.compress(EVENTS, mtime=0),
            "gzip",
            [[len(gzip.compress(EVENTS, mtime=0)), 4.5]],
            "the body came compressed, and its chunks do not tell when an event came",
        ),
    ],
)
def test_times_are_there_where_they_tell_something(
    body: bytes, coding: str | None, chunks: list[list[float]], untimed: str
) -> None:
    one = exchange(chat_request(), body, path=CHAT)
    assert one.response
    if coding:
        one.response.headers["content-encoding"] = coding
    one.metadata[metadata.CHUNKS] = chunks
    shown = reading.stream_of(one)
    assert shown.upstream == shown.body == EVENTS
    assert shown.untimed == untimed
    assert bool(shown.chunks) is not bool(untimed)
    assert ("note: no times" in events_page(shown)) is bool(untimed)


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (exchange(b"{}", b"{}", path="/v1/models"), "moontap does not read these"),
        (exchange(chat_request(), b"{}", path=CHAT, kind="application/json"), "no event stream"),
    ],
)
def test_what_is_no_stream_says_so(one: http.HTTPFlow, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        reading.stream_of(one)


def test_without_a_response_there_is_nothing_to_show() -> None:
    one = made("a")
    one.response = None
    for read in (reading.reply_of, reading.stream_of, reading.is_stream):
        with pytest.raises(ValueError, match="there is no response"):
            read(one)
