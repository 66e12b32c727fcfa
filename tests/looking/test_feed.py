"""Streams that grow before a person's eyes, and leave nothing behind."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from mitmproxy import flow as flows
from mitmproxy import http
from mitmproxy.test import tflow

from moontap.capture import metadata
from moontap.ids import Mode, Namer, Style
from moontap.live import LookingRewriter, ReplyTap
from moontap.looking import feed
from moontap.looking.feed import Feed
from moontap.rewrite import CallIds
from moontap.wire.encoding import Decoder
from moontap.wire.protocol import ANTHROPIC, OPENAI, Wire, read_shape
from tests.looking.rig import Listed, until
from tests.samples import CHAT, MESSAGES, chat_events, messages_events, messages_whole

SSE = "text/event-stream"
WIRES = [
    pytest.param(ANTHROPIC, MESSAGES, messages_events, id="messages"),
    pytest.param(OPENAI, CHAT, chat_events, id="chat"),
]


def under_way(path: str = MESSAGES, kind: str = SSE, **headers: str) -> http.HTTPFlow:
    """A flow whose reply has begun."""
    flow = tflow.tflow(resp=True)
    flow.request = http.Request.make("POST", f"https://api.moonshot.cn{path}", b"{}")
    flow.response = http.Response.make(200, b"", {"content-type": kind, **headers})
    flow.response.raw_content = None
    flow.response.timestamp_end = None
    flow.live = True
    return flow


def rewriting(wire: Wire, decoder: Decoder | None = None) -> ReplyTap:
    ids = CallIds(Namer(Mode.ALL, Style.OPAQUE, set()), lambda: "0")
    return ReplyTap(lambda: 0.0, LookingRewriter(wire, ids), decoder or Decoder(None))


class Running:
    """A feed before a list, with one stream."""

    def __init__(
        self, flow: http.HTTPFlow, tap: ReplyTap, wire: Wire = ANTHROPIC, *, view: bool = True
    ) -> None:
        self.listed = Listed(view=view)
        self.listed.view.add([flow])
        self.flow, self.tap = flow, tap
        self.feed = Feed(self.listed.board, lambda text: text.replace("Secret", "******"))
        self.feed.begin(flow, wire, tap)

    def bring(self, pieces: Sequence[bytes]) -> None:
        for piece in pieces:
            self.tap(piece)

    async def told(self) -> None:
        """Wait for the next update of the list."""
        count = len(self.listed.updates.batches)
        await until(lambda: len(self.listed.updates.batches) > count)


@pytest.mark.parametrize(("wire", "path", "make"), WIRES)
async def test_a_stream_is_seen_growing(
    wire: Wire, path: str, make: Callable[..., list[bytes]]
) -> None:
    flow = under_way(path)
    run = Running(flow, rewriting(wire), wire)
    events = make("Bash_0", "Bash_0")
    await run.told()
    assert flow.comment == "streaming"
    _, second = (at for at, event in enumerate(events) if b"Bash_0" in event)
    for upto, comment in ((second, "streaming: Bash"), (len(events), "streaming: Bash ×2")):
        run.bring(events[len(run.tap.received) : upto])
        await run.told()
        assert flow.comment == comment
        assert flow.response
        assert flow.response.raw_content == run.tap.client_body
        assert flow.metadata[metadata.UPSTREAM_BODY] == b"".join(events[:upto])
        assert len(flow.metadata[metadata.CHUNKS]) == upto
    labels = flow.metadata[metadata.LABELS].split()
    facts = run.listed.board.facts(flow)
    assert facts
    assert facts.streaming
    ids = {call.id for call in facts.calls}
    assert len(ids) == 2
    assert {"tool=Bash;", "streaming=yes;", "rewritten=2;", "id=Bash_0;"} <= set(labels)
    assert {f"id={id_};" for id_ in ids} <= set(labels)
    run.feed.end(flow)
    assert run.feed.idle
    assert metadata.CHUNKS not in flow.metadata
    assert metadata.UPSTREAM_BODY not in flow.metadata
    run.listed.board.settle(flow)  # of which nothing was recorded
    assert (flow.comment, flow.metadata) == ("", {})


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\n \n"], ids=repr)
@pytest.mark.parametrize(("wire", "path", "make"), WIRES)
async def test_what_it_says_so_far_is_what_a_reader_of_all_says(
    wire: Wire, path: str, make: Callable[..., list[bytes]], end: bytes
) -> None:
    """However its events end, and wherever it is cut."""
    newline = end.partition(b"\n")[0] + b"\n"
    comments = [b": %s\n\n" % (b"x" * 996)] * 70  # a lot, between one call and the next
    events = make("Bash_0", "Bash_1")
    stream = b"".join([*events[:4], *comments, *events[4:], *comments])
    stream = stream.replace(b"\n\n", b"\0").replace(b"\n", newline).replace(b"\0", end)
    run = Running(under_way(path), ReplyTap(lambda: 0.0), wire)
    for begin, stop in pairwise([0, 1, 300, 301, 700, 70_000, 100_000, 150_000, len(stream)]):
        run.bring([stream[begin:stop]])
        run.feed.look()
    facts, whole = run.listed.board.facts(run.flow), read_shape(wire, stream)
    assert facts
    assert [(call.tool, call.id, call.upstream_id, call.index) for call in facts.calls] == [
        (call.name, call.id, call.id, call.index) for call in whole.calls
    ]
    assert facts.stop == whole.choices[0].stop_reason
    assert metadata.UPSTREAM_BODY not in run.flow.metadata
    run.feed.end(run.flow)


GZIPPED = gzip.compress(b"".join(messages_events("Bash_0")))
UNDECODED = (under_way(**{"content-encoding": "gzip"}), ReplyTap(lambda: 0.0), [GZIPPED])
DECODED = (under_way(), rewriting(ANTHROPIC, Decoder("gzip")), [GZIPPED])
UNREADABLE = (
    under_way(),
    ReplyTap(lambda: 0.0),
    [b"data: \xff\xfe\x00{]\n\n", b'data: {"type":[{}]}\n\n', b"data: 5\n\n", b"event: tool_use\n"],
)


@pytest.mark.parametrize(
    ("flow", "tap", "pieces", "comment"),
    [
        pytest.param(*UNDECODED, "streaming", id="encoded, and not decoded"),
        pytest.param(*DECODED, "streaming: Bash", id="encoded, and decoded"),
        pytest.param(*UNREADABLE, "streaming", id="unreadable"),
    ],
)
async def test_streams_of_other_kinds(
    flow: http.HTTPFlow, tap: ReplyTap, pieces: list[bytes], comment: str
) -> None:
    if tap.rewrites:
        flow.metadata[metadata.UPSTREAM_ENCODING] = "gzip"
    run = Running(flow, tap)
    run.bring(pieces)
    await run.told()
    assert flow.comment == comment
    assert flow.response
    assert flow.response.raw_content == tap.client_body
    run.feed.end(flow)


async def test_a_request_that_waits_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """And leaves nothing behind once its reply begins; what was cleared by hand stays so."""
    monkeypatch.setattr(feed, "PATIENCE", 0.05)
    listed, flow, other = Listed(), under_way(), under_way()
    feed_ = feed.Feed(listed.board)
    listed.view.add([flow, other])
    for one in (flow, other):
        feed_.ask(one)
    await until(lambda: listed.updates.batches)
    for one in (flow, other):
        assert one.comment == "waiting for the reply"
        assert one.metadata[metadata.LABELS] == "waiting=yes;"
    other.comment = ""
    tap = ReplyTap(lambda: 0.0)
    feed_.begin(flow, ANTHROPIC, tap)
    feed_.begin(other, ANTHROPIC, ReplyTap(lambda: 0.0))
    assert flow.comment == ""
    assert metadata.LABELS not in flow.metadata
    tap(messages_events()[0])
    await until(lambda: flow.comment == "streaming")
    assert other.comment == ""
    for one in (flow, other):
        feed_.end(one)
        listed.board.settle(one)
        assert (one.comment, one.metadata) == ("", {})
    assert feed_.idle


@pytest.mark.parametrize("end", ["fails", "killed", "reply"])
async def test_a_request_that_got_none_leaves_nothing(
    end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "PATIENCE", 0.05)
    listed, flow = Listed(), under_way()
    feed_ = feed.Feed(listed.board)
    listed.view.add([flow])
    feed_.ask(flow)
    await until(lambda: flow.comment == "waiting for the reply")
    if end == "killed":
        flow.kill()
        await until(lambda: flow.comment == "killed")
    feed_.end(flow)
    listed.board.settle(flow)
    assert (flow.comment, flow.metadata) == ("", {})
    assert feed_.idle


async def test_one_that_a_person_holds_back_does_not_wait_for_the_reply(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feed, "PATIENCE", 0.02)
    listed, flow = Listed(), under_way()
    feed_ = feed.Feed(listed.board)
    listed.view.add([flow])
    flow.intercept()
    feed_.ask(flow)
    await asyncio.sleep(0.6)
    assert flow.comment == ""
    flow.resume()
    await until(lambda: flow.comment == "waiting for the reply")
    feed_.end(flow)


async def test_a_fast_reply_costs_no_update() -> None:
    listed, flows = Listed(), [under_way() for _ in range(20)]
    feed_ = feed.Feed(listed.board)
    for flow in flows:
        feed_.ask(flow)
        feed_.end(flow)
        assert feed_.idle
        assert flow.metadata == {}
    await asyncio.sleep(0.1)
    assert listed.updates.batches == []


async def test_no_secret_stands_in_the_labels_of_a_stream() -> None:
    secret = {"x-claude-code-session-id": "Secret-1", "x-claude-code-agent-id": "Secret-2"}
    flow = under_way()
    flow.request.headers.update(secret)
    run = Running(flow, ReplyTap(lambda: 0.0))
    events = b"".join(messages_events("Bash_0", "Secret_3"))
    run.bring([events.replace(b'"tool_use"}', b'"Secret"}').replace(b"kimi-k3", b"Secret-k3")])
    await run.told()
    assert "******" in flow.metadata[metadata.LABELS]
    assert "Secret" not in flow.comment + flow.metadata[metadata.LABELS]
    assert "model=" not in flow.metadata[metadata.LABELS]  # that is the request's
    run.feed.end(flow)


async def test_what_a_killed_stream_had_put_into_its_flow_is_taken_out() -> None:
    run = Running(under_way(), rewriting(ANTHROPIC))
    events = messages_events("Bash_0")
    at = next(at for at, event in enumerate(events) if b"Bash_0" in event)
    run.bring([*events[:at], events[at][:40]])
    await run.told()
    assert {metadata.CHUNKS, metadata.UPSTREAM_BODY} <= run.flow.metadata.keys()
    run.flow.kill()
    await run.told()
    run.bring([events[at][40:]])
    run.feed.end(run.flow)
    assert not {metadata.CHUNKS, metadata.UPSTREAM_BODY} & run.flow.metadata.keys()


async def test_a_revert_in_mid_stream_takes_nothing_from_the_client() -> None:
    run = Running(under_way(), ReplyTap(lambda: 0.0))
    assert run.flow.response
    run.flow.response.stream = run.tap
    run.flow.backup()
    run.flow.comment = "mine"
    run.flow.revert()
    assert run.flow.response.stream is not run.tap
    await run.told()
    assert run.flow.response.stream is run.tap
    run.feed.end(run.flow)


async def test_what_comes_whole_is_no_stream() -> None:
    whole, stream = under_way(kind="application/json"), under_way()
    run = Running(whole, ReplyTap(lambda: 0.0))
    run.feed.begin(stream, ANTHROPIC, ReplyTap(lambda: 0.0))
    run.bring([messages_whole("Bash_0")[:40]])
    await run.told()
    assert stream.comment == "streaming"
    assert whole.comment == ""
    assert whole.response
    assert whole.response.raw_content is None
    for flow in (whole, stream):
        run.feed.end(flow)
    assert run.feed.idle


async def test_all_that_grow_are_one_update() -> None:
    run = Running(under_way(), ReplyTap(lambda: 0.0))
    others = [under_way() for _ in range(20)]
    for flow in others:
        run.listed.view.add([flow])
        run.feed.begin(flow, ANTHROPIC, ReplyTap(lambda: 0.0))
    await run.told()
    assert len(run.listed.updates.batches) == 1
    assert len(run.listed.updates.batches[0]) == 21
    for flow in (run.flow, *others):
        run.feed.end(flow)


async def test_a_stream_that_says_nothing_more_is_not_told_again() -> None:
    run = Running(under_way(), ReplyTap(lambda: 0.0))
    other = under_way()
    run.feed.begin(other, ANTHROPIC, tap := ReplyTap(lambda: 0.0))
    await run.told()
    tap(messages_events()[0])
    await run.told()
    assert run.listed.updates.batches[-1] == [other]
    for flow in (run.flow, other):
        run.feed.end(flow)


async def test_no_list_no_timer() -> None:
    flow = under_way()
    run = Running(flow, ReplyTap(lambda: 0.0), view=False)
    assert run.feed.idle
    run.feed.end(flow)
    assert flow.metadata == {}


async def test_a_stream_that_a_person_has_killed() -> None:
    run = Running(under_way(), ReplyTap(lambda: 0.0))
    run.bring(messages_events("Bash_0"))
    await run.told()
    run.flow.error = flows.Error(flows.Error.KILLED_MESSAGE)
    await run.told()
    assert run.flow.comment == "killed · Bash"
    assert run.feed.idle


async def test_a_person_writes_while_it_streams() -> None:
    run, events = Running(under_way(), ReplyTap(lambda: 0.0)), messages_events("Bash_0", "Bash_1")
    await run.told()
    run.flow.marked = ":star:"
    run.bring(events[:4])
    await run.told()
    assert (run.flow.comment, run.flow.marked) == ("streaming: Bash", ":star:")
    run.flow.comment = "look here"
    run.bring(events[4:])
    await run.told()
    assert (run.flow.comment, run.flow.marked) == ("look here", ":star:")
    run.feed.end(run.flow)
    run.listed.board.settle(run.flow)
    assert (run.flow.comment, run.flow.marked) == ("look here", ":star:")


async def test_no_secret_comes_into_the_list() -> None:
    run = Running(under_way(), ReplyTap(lambda: 0.0))
    run.bring([event.replace(b"Bash", b"Secret") for event in messages_events("Bash_0")])
    await run.told()
    assert "Secret" not in run.flow.comment + run.flow.metadata[metadata.LABELS]
    assert run.flow.comment == "streaming: ******"
    run.feed.end(run.flow)
