"""Requests that wait and streams that grow before a person's eyes: what has come so far, put into
the flow a few times a second.

mitmproxy keeps nothing of a streamed body until its end, and its list hears of a reply only then.
Off the path of the chunks: a timer looks at what has come. Only where there is a list to see.
"""

import logging
import time
from asyncio import TimerHandle
from collections.abc import Callable
from dataclasses import dataclass, field

from mitmproxy import http

from moontap.capture import metadata
from moontap.capture.exchange import looks_streamed, upstream_ids
from moontap.identity import identify
from moontap.kept import Chunks, Kept
from moontap.live import ReplyTap
from moontap.looking import heard
from moontap.looking.board import SHARE, Board
from moontap.looking.facts import CallFact, Facts
from moontap.wire.protocol import Wire, event_texts, holds_any
from moontap.wire.sse import Framer
from moontap.wire.types import Reply

logger = logging.getLogger(__name__)

PAUSE = 0.25
"""Seconds at least from one look to the next."""

PATIENCE = 1.0
"""Seconds that a request waits before that is said. Most replies begin sooner."""

# Arguments come in many pieces, and are not shown before the end.
_ARGUMENTS = (b"input_json_delta", b"content_block_stop")
_END = b"\n\n"
_LONG = 1 << 16  # bytes in which an event has ended, if it ends as most do
_HEAD = 64  # bytes by which a stream is known


class _Growing:
    """A stream's bytes as they come in, what it has called and how it stopped out.

    Goal: what holds none of the markers, as most of a stream, costs no more than to look for them.
    So whole events are taken in together, where they end as most do; else one by one.
    """

    def __init__(self, wire: Wire, markers: tuple[bytes, ...]) -> None:
        self._markers = tuple(marker for marker in markers if marker not in _ARGUMENTS)
        self._framer = Framer()
        self._reader = wire.reader()
        self._rest = b""
        self._plain = True

    def feed(self, data: bytes) -> None:
        rest = self._rest + data
        if self._plain and (b"\r" in data or len(rest) - len(data) > _LONG):
            self._plain = False
        end = rest.rfind(_END) + len(_END) if self._plain else len(rest)
        if end < len(_END):
            self._rest = rest
            return
        events, self._rest = rest[:end], rest[end:]
        if not self._plain or holds_any(events, self._markers):
            self._read(events)

    def _read(self, events: bytes) -> None:
        for event in self._framer.feed(events):
            if holds_any(event.raw, self._markers):
                for lines in event_texts(event):
                    self._reader.feed(event.text(lines))

    @property
    def reply(self) -> Reply:
        return self._reader.finish()


@dataclass(slots=True)
class _Stream:
    """One under way. taken: how many pieces of it, the client's and upstream's. head: as much of
    its beginning as tells whether it is a stream. shape, sent: what they say; None where they
    cannot be read as they come. over: it is not looked at any more."""

    flow: http.HTTPFlow
    response: http.Response
    wire: Wire
    tap: ReplyTap
    head: bytes = b""
    taken: list[int] = field(default_factory=lambda: [0, 0])
    shape: _Growing | None = None
    sent: _Growing | None = None
    shown: bool = False
    over: bool = False

    def __post_init__(self) -> None:
        if "content-encoding" not in self.response.headers:
            self.shape = _Growing(self.wire, self.wire.shape_markers)
            if self.tap.rewrites and metadata.UPSTREAM_ENCODING not in self.flow.metadata:
                self.sent = _Growing(self.wire, self.wire.markers)

    def take(self) -> bool:
        """Take in what has come since; whether there is any."""
        at, upstream_at = self.taken
        delivered, received = self.tap.delivered[at:], self.tap.received[upstream_at:]
        self.taken = [at + len(delivered), upstream_at + len(received)]
        new = b"".join(delivered)
        if len(self.head) < _HEAD:
            self.head = (self.head + new).lstrip()[:_HEAD]
        if self.shape:
            self.shape.feed(new)
        if self.sent:
            self.sent.feed(b"".join(received))
        return bool(delivered or received)

    def keep(self) -> None:
        """Put it into the flow, as at the end. The list hears of it, and the views read it."""
        flow, client = self.flow, self.tap.client_body
        # Not `.content`, which would set a header. What mitmproxy itself sends is not this.
        self.response.raw_content = client
        flow.metadata[metadata.CHUNKS] = Chunks(self.tap.chunks)
        upstream = self.tap.upstream_body if self.tap.rewrites else client
        if upstream != client:
            flow.metadata[metadata.UPSTREAM_BODY] = Kept(upstream)
        else:
            flow.metadata.pop(metadata.UPSTREAM_BODY, None)

    def facts(self, mask: Callable[[str], str]) -> Facts:
        """What has come so far. The model is the request's, as at the end, and so not known yet."""
        facts = _sent(self.flow, mask)
        facts.streaming = True
        facts.status = self.response.status_code
        reply = self.shape.reply if self.shape else Reply()
        ids = upstream_ids(self.sent.reply if self.sent else reply, reply)
        for call, upstream_id in zip(reply.calls, ids, strict=True):
            names = (mask(call.name), _masked(mask, call.id), _masked(mask, upstream_id))
            facts.calls.append(CallFact(*names, choice=call.choice, index=call.index))
        heard.learn(facts, reply)
        facts.stop, facts.error = _masked(mask, facts.stop), _masked(mask, facts.error)
        return facts


@dataclass(slots=True)
class _Asked:
    """A request without a reply. since: in seconds of the loop's clock."""

    flow: http.HTTPFlow
    since: float
    shown: bool = False


def _sent(flow: http.HTTPFlow, mask: Callable[[str], str]) -> Facts:
    """What is known by the headers alone: a request of megabytes is not read once more."""
    identity = identify(flow.request.headers, None)
    return Facts(session=_masked(mask, identity.session), agent=_masked(mask, identity.agent))


def _masked(mask: Callable[[str], str], id_: str | None) -> str | None:
    return None if id_ is None else mask(id_)


class Feed:
    """The exchanges under way. mask: takes secrets out of what they name."""

    def __init__(self, board: Board, mask: Callable[[str], str] = lambda text: text) -> None:
        self._board = board
        self._mask = mask
        self._asked: dict[str, _Asked] = {}
        self._streams: dict[str, _Stream] = {}
        self._timer: TimerHandle | None = None

    @property
    def idle(self) -> bool:
        """Whether there is nothing to look at, and no timer."""
        return self._timer is None and not self._asked and not self._growing

    @property
    def _growing(self) -> list[_Stream]:
        return [stream for stream in self._streams.values() if not stream.over]

    def ask(self, flow: http.HTTPFlow) -> None:
        """A request goes out."""
        loop = self._board.loop
        if loop is None or self._board.view is None:
            return
        self._asked[flow.id] = _Asked(flow, loop.time())
        if self._timer is None:
            self._wait(PATIENCE)

    def begin(self, flow: http.HTTPFlow, wire: Wire, tap: ReplyTap) -> None:
        """A reply begins to come."""
        self._replied(flow)
        self._board.publish()
        if self._board.view is None or flow.response is None:
            return
        if not self._growing and self._timer:  # which was to look at those that wait
            self._timer.cancel()
            self._timer = None
        self._streams[flow.id] = _Stream(flow, flow.response, wire, tap)
        if self._timer is None:
            self._wait(PAUSE)

    def end(self, flow: http.HTTPFlow) -> None:
        """It has ended, or broke off, or was answered without a reply from upstream; for a flow
        that nobody has asked or begun, nothing.

        What was put into its metadata is taken out again: what is kept is what would be kept
        without a list to see.
        """
        self._replied(flow)
        if self._streams.pop(flow.id, None) is not None:
            for name in (metadata.CHUNKS, metadata.UPSTREAM_BODY):
                flow.metadata.pop(name, None)
        if not self._asked and not self._growing and self._timer:
            self._timer.cancel()
            self._timer = None

    def _replied(self, flow: http.HTTPFlow) -> None:
        asked = self._asked.pop(flow.id, None)
        if asked and asked.shown:
            self._board.follow(flow, Facts(coming=True))

    def _wait(self, seconds: float) -> None:
        if loop := self._board.loop:
            self._timer = loop.call_later(seconds, self._tick)

    def look(self) -> None:
        """Take in what has come, and have the list show it."""
        for asked in list(self._asked.values()):
            self._look_for(asked)
        for stream in self._growing:
            try:
                self._look(stream)
            except Exception:  # the stream goes on, unseen
                logger.debug("moontap: a stream cannot be shown as it comes", exc_info=True)
                stream.over = True
        self._board.publish()

    def _tick(self) -> None:
        begun = time.perf_counter()
        self._timer = None
        self.look()
        if self._growing:
            self._wait(max(PAUSE, SHARE * (time.perf_counter() - begun)))
        elif self._asked and (loop := self._board.loop):
            due = min(one.since if not one.shown else loop.time() for one in self._asked.values())
            self._wait(max(PAUSE, due + PATIENCE - loop.time()))

    def _look_for(self, asked: _Asked) -> None:
        flow, loop = asked.flow, self._board.loop
        if loop is None:
            return
        if flow.intercepted:  # a person holds it back: it waits for them
            asked.since = loop.time()
        elif flow.error and asked.shown:  # killed, which mitmproxy itself hears of at its end
            del self._asked[flow.id]
            facts = _sent(flow, self._mask)
            heard.end(facts, flow)
            self._board.follow(flow, facts)
        elif not asked.shown and loop.time() - asked.since >= PATIENCE:
            asked.shown = True
            facts = _sent(flow, self._mask)
            facts.asked = True
            self._board.follow(flow, facts)

    def _look(self, stream: _Stream) -> None:
        flow = stream.flow
        if flow.response is not stream.response:  # reverted: the rest would not come through us
            flow.response = stream.response
        came = stream.take()
        if not looks_streamed(stream.response, stream.head):
            return  # it comes whole
        if flow.error and stream.shown:  # killed, which mitmproxy itself hears of at its end
            stream.over = True
            facts = stream.facts(self._mask)
            heard.end(facts, flow)
            self._board.follow(flow, facts)
        elif came or not stream.shown:
            stream.shown = True
            stream.keep()
            self._board.follow(flow, stream.facts(self._mask))
