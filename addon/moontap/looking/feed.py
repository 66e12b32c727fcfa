"""Streams that a person sees grow: what has come so far, put into the flow a few times a second.

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
from moontap.capture.exchange import looks_streamed
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

# Arguments come in many pieces, and are not shown before the end.
_ARGUMENTS = (b"input_json_delta", b"content_block_stop")
_END = b"\n\n"
_LONG = 1 << 16  # bytes in which an event has ended, if it ends as most do


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
    """One under way. client, upstream: what was taken of it so far; taken: of how many pieces.
    shape, sent: what they say; None where they cannot be read as they come."""

    flow: http.HTTPFlow
    wire: Wire
    tap: ReplyTap
    client: bytes = b""
    upstream: bytes = b""
    taken: list[int] = field(default_factory=lambda: [0, 0])
    shape: _Growing | None = None
    sent: _Growing | None = None
    shown: bool = False

    def __post_init__(self) -> None:
        response = self.flow.response
        if response and "content-encoding" not in response.headers:
            self.shape = _Growing(self.wire, self.wire.shape_markers)
            if self.tap.rewrites and metadata.UPSTREAM_ENCODING not in self.flow.metadata:
                self.sent = _Growing(self.wire, self.wire.markers)

    def take(self) -> bool:
        """Take in what has come since; whether there is any."""
        at, upstream_at = self.taken
        delivered, received = self.tap.delivered[at:], self.tap.received[upstream_at:]
        self.taken = [at + len(delivered), upstream_at + len(received)]
        new, new_upstream = b"".join(delivered), b"".join(received)
        self.client += new
        if self.shape:
            self.shape.feed(new)
        if self.tap.rewrites:
            self.upstream += new_upstream
            if self.sent:
                self.sent.feed(new_upstream)
        return bool(new or new_upstream)

    def keep(self) -> None:
        """Put it into the flow, as at the end. The list hears of it, and the views read it."""
        flow = self.flow
        if flow.response is None:
            return
        # Not `.content`, which would set a header. What mitmproxy itself sends is not this.
        flow.response.raw_content = self.client
        flow.metadata[metadata.CHUNKS] = Chunks(self.tap.chunks)
        if self.tap.rewrites and self.upstream != self.client:
            flow.metadata[metadata.UPSTREAM_BODY] = Kept(self.upstream)
        else:
            flow.metadata.pop(metadata.UPSTREAM_BODY, None)

    def facts(self, mask: Callable[[str], str]) -> Facts:
        """What has come so far. The session is known by its header alone: a request of megabytes is
        not read once more for it."""
        identity = identify(self.flow.request.headers, None)
        facts = Facts(
            session=identity.session,
            agent=identity.agent,
            streaming=True,
            status=self.flow.response.status_code if self.flow.response else 0,
        )
        reply = self.shape.reply if self.shape else Reply()
        facts.model = reply.model
        sent = self.sent.reply.calls if self.sent else reply.calls
        ids = {(call.choice, call.index, n): call.id for n, call in enumerate(sent)}
        for n, call in enumerate(reply.calls):
            upstream_id = ids.get((call.choice, call.index, n), call.id)
            names = (mask(call.name), _masked(mask, call.id), _masked(mask, upstream_id))
            facts.calls.append(CallFact(*names, choice=call.choice, index=call.index))
        heard.learn(facts, reply)
        return facts


def _masked(mask: Callable[[str], str], id_: str | None) -> str | None:
    return None if id_ is None else mask(id_)


class Feed:
    """The streams under way. mask: takes secrets out of what they name."""

    def __init__(self, board: Board, mask: Callable[[str], str] = lambda text: text) -> None:
        self._board = board
        self._mask = mask
        self._streams: dict[str, _Stream] = {}
        self._timer: TimerHandle | None = None

    @property
    def idle(self) -> bool:
        """Whether there is nothing to look at, and no timer."""
        return not self._streams and self._timer is None

    def begin(self, flow: http.HTTPFlow, wire: Wire, tap: ReplyTap) -> None:
        """A reply begins to come."""
        if self._board.view is None:
            return
        self._streams[flow.id] = _Stream(flow, wire, tap)
        if self._timer is None:
            self._wait(PAUSE)

    def end(self, flow: http.HTTPFlow) -> None:
        """It has ended, or broke off; for a flow that is not streamed, nothing.

        What was put into its metadata is taken out again: what is kept is what would be kept
        without a list to see.
        """
        if self._streams.pop(flow.id, None) is None:
            return
        for name in (metadata.CHUNKS, metadata.UPSTREAM_BODY):
            flow.metadata.pop(name, None)
        if not self._streams and self._timer:
            self._timer.cancel()
            self._timer = None

    def _wait(self, seconds: float) -> None:
        if loop := self._board.loop:
            self._timer = loop.call_later(seconds, self._tick)

    def look(self) -> None:
        """Take in what has come, and have the list show it."""
        for stream in list(self._streams.values()):
            try:
                self._look(stream)
            except Exception:  # the stream goes on, unseen
                logger.debug("moontap: a stream cannot be shown as it comes", exc_info=True)
                self._streams.pop(stream.flow.id, None)
        self._board.publish()

    def _tick(self) -> None:
        begun = time.perf_counter()
        self._timer = None
        self.look()
        if self._streams:
            self._wait(max(PAUSE, SHARE * (time.perf_counter() - begun)))

    def _look(self, stream: _Stream) -> None:
        flow, response = stream.flow, stream.flow.response
        came = stream.take()
        if response is None or not looks_streamed(response, stream.client):
            return  # it comes whole
        if flow.error and stream.shown:  # killed, which mitmproxy itself hears of at its end
            self._streams.pop(flow.id)
            facts = stream.facts(self._mask)
            heard.end(facts, flow)
            self._board.follow(flow, facts)
        elif came or not stream.shown:
            stream.shown = True
            stream.keep()
            self._board.follow(flow, stream.facts(self._mask))
