"""What upstream sent, taken from flows as the tap saves them, bare ones among them."""

import gzip
from typing import Any

import pytest
from mitmproxy import flow as mitm
from mitmproxy import http
from mitmproxy.test import tflow

from moontap.capture import metadata
from moontap.capture.upstream import HOP_BY_HOP, answer, before_the_tap
from tests.samples import MESSAGES, messages_events, messages_request

SENT = b"".join(messages_events("Bash_0"))
GOT = SENT.replace(b"Bash_0", b"Bash_0_tabcdefghij")
PACKED = gzip.compress(SENT, mtime=0)


def saved(
    body: bytes | None = GOT,
    headers: tuple[tuple[bytes, bytes], ...] = (
        (b"Content-Type", b"text/event-stream"),
        (b"Transfer-Encoding", b"chunked"),
    ),
    **noted: Any,
) -> http.HTTPFlow:
    """A flow of `traffic.flow`. noted: metadata by its last name."""
    made = tflow.tflow()
    made.request = http.Request.make(
        "POST", f"https://api.moonshot.cn{MESSAGES}", messages_request()
    )
    made.request.timestamp_start, made.request.timestamp_end = 100.0, 100.5
    if body is not None:
        made.response = http.Response(
            b"HTTP/1.1", 200, b"OK", http.Headers(headers), body, None, 101.25, 102.0
        )
    made.metadata = {f"moontap.{name}": value for name, value in noted.items()}
    return made


def chunks_of(flow: http.HTTPFlow) -> list[bytes]:
    given = answer(flow)
    assert given
    return list(given.chunks)


# the answer


def test_without_headers_there_is_no_answer() -> None:
    assert answer(saved(None)) is None


def test_it_says_what_upstream_said() -> None:
    given = answer(saved(upstream_body=SENT))
    assert given
    assert (given.status, given.reason, given.body, given.cut) == (200, "OK", SENT, False)
    assert given.wait == 750.0


@pytest.mark.parametrize("ended", [float("nan"), float("inf"), float("-inf"), 200.0, None])
def test_a_time_that_was_none_is_no_wait(ended: float | None) -> None:
    flow = saved(SENT)
    flow.request.timestamp_end = ended
    given = answer(flow)
    assert given
    assert given.wait == 0.0


def test_a_body_that_the_tap_left_alone_is_the_clients() -> None:
    assert chunks_of(saved(SENT)) == [SENT]


@pytest.mark.parametrize("name", sorted(HOP_BY_HOP))
def test_headers_of_the_connection_are_left_out(name: str) -> None:
    headers = ((b"X-One", b"1"), (name.title().encode(), b"x"), (b"x-one", b"2"))
    given = answer(saved(SENT, headers))
    assert given
    assert given.headers == ((b"X-One", b"1"), (b"x-one", b"2"))


def test_an_encoding_that_the_tap_undid_is_back() -> None:
    flow = saved(upstream_body=PACKED, upstream_encoding="gzip")
    given = answer(flow)
    assert given
    assert (b"content-encoding", b"gzip") in given.headers
    assert gzip.decompress(given.body) == SENT


@pytest.mark.parametrize(
    ("noted", "sizes"),
    [
        ([[10, 1.0], [len(SENT) - 10, 2.0]], [10, len(SENT) - 10]),
        ([], [len(SENT)]),
        ([[0, 1.0]], [len(SENT)]),
        # Counted as it came, saved decoded: the same parts of the whole.
        ([[1, 1.0], [1, 2.0]], [len(SENT) // 2, len(SENT) - len(SENT) // 2]),
        ([[len(SENT) * 3, 1.0], [len(SENT), 2.0]], [len(SENT) * 3 // 4, None]),
    ],
)
def test_chunks_add_up_to_the_body(noted: list[list[float]], sizes: list[int | None]) -> None:
    found = chunks_of(saved(upstream_body=SENT, chunks=noted))
    assert b"".join(found) == SENT
    assert [len(one) for one in found][:1] == sizes[:1]
    assert len(found) == len(sizes)


def test_each_chunk_has_its_arrival() -> None:
    given = answer(saved(upstream_body=SENT, chunks=[[10, 1.5], [len(SENT) - 10, 40.0]]))
    assert given
    assert given.arrivals == (1.5, 40.0)


def test_an_empty_body_has_no_chunk() -> None:
    given = answer(saved(b"", chunks=[[5, 1.0]]))
    assert given
    assert (given.chunks, given.arrivals) == ((), ())


@pytest.mark.parametrize(
    ("length", "incomplete", "kept"),
    [(len(SENT), False, True), (len(GOT), False, False), (9999, True, True), (9999, False, False)],
)
def test_a_content_length_stays_where_it_is_true_or_was_not_reached(
    length: int, incomplete: bool, kept: bool
) -> None:
    headers = ((b"Content-Length", str(length).encode()),)
    noted = {"incomplete": True} if incomplete else {}
    given = answer(saved(GOT, headers, upstream_body=SENT, **noted))
    assert given
    assert bool(given.headers) is kept


@pytest.mark.parametrize("how", ["incomplete", "error"])
def test_it_was_cut_where_it_broke_off(how: str) -> None:
    flow = saved(SENT)
    if how == "error":
        flow.error = mitm.Error("peer closed connection")
    else:
        flow.metadata[metadata.INCOMPLETE] = True
    given = answer(flow)
    assert given
    assert given.cut


# before the tap


def test_the_bare_flow_has_upstreams_body_and_none_of_our_notes() -> None:
    flow = saved(upstream_body=SENT, calls=1, rewritten=1, session="s", chunks=[[9, 1.0]])
    flow.metadata["other.addon"] = "kept"
    bare = before_the_tap(flow)
    assert bare.response
    assert bare.response.raw_content == SENT
    assert bare.metadata == {"other.addon": "kept"}
    assert bare.id == flow.id


def test_the_bare_flow_is_encoded_as_it_came() -> None:
    bare = before_the_tap(saved(upstream_body=PACKED, upstream_encoding="gzip"))
    assert bare.response
    assert bare.response.raw_content == PACKED
    assert bare.response.content == SENT


def test_a_healed_request_is_the_clients_again() -> None:
    flow = saved()
    own = flow.request.raw_content or b""
    at = own.index(b"go")
    flow.request.content = own.replace(b"go", b"went")
    flow.metadata[metadata.HEALED] = [[at, 4, b"go"]]
    assert before_the_tap(flow).request.raw_content == own
    assert flow.request.raw_content != own


def test_what_the_guard_added_last_is_taken_out_first() -> None:
    flow = saved()
    own = flow.request.raw_content or b""
    at = own.index(b"go")
    healed = own.replace(b"go", b"went")
    flow.request.content = healed[: at + 6] + b" and be warned" + healed[at + 6 :]
    flow.metadata[metadata.HEALED] = [[at, 4, b"go"]]
    flow.metadata[metadata.REMINDED] = [[at + 6, 14, b""]]
    bare = before_the_tap(flow)
    assert bare.request.raw_content == own
    assert bare.metadata == {}


def test_an_answer_of_the_guard_is_not_upstreams() -> None:
    flow = saved(blocked="blocked_no_progress", repeats=12)
    assert answer(flow) is None
    assert before_the_tap(flow).response is None
    assert flow.response is not None


def test_the_saved_flow_is_not_changed() -> None:
    flow = saved(upstream_body=PACKED, upstream_encoding="gzip", calls=1)
    was = flow.get_state()
    before_the_tap(flow)
    answer(flow)
    assert flow.get_state() == was


def test_a_request_that_cannot_be_read_is_said() -> None:
    flow = saved()
    flow.request.raw_content = None
    flow.metadata[metadata.HEALED] = [[0, 1, b"x"]]
    with pytest.raises(ValueError, match="not there"):
        before_the_tap(flow)


def test_a_flow_without_a_reply_stays_without() -> None:
    assert before_the_tap(saved(None)).response is None
