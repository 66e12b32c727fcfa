"""What the views are made of: one exchange, as far as it is known. Plain data.

Filled by `looking.reading` from a mitmproxy flow, with or without what moontap keeps in its
metadata.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from moontap.looking.facts import FindingFact
from moontap.wire.protocol import Wire
from moontap.wire.types import Reply, Request


@dataclass(frozen=True, slots=True)
class ShownRequest:
    """A request. body: as the client sent it, content encoding undone. new: the first message that
    its conversation had not seen before, where that is known; else what follows the last reply is
    taken for new. findings: of this exchange, those of its reply too. exchange, conversation: their
    numbers in the run, as findings and `moontap explain` name them.

    healed: how many places of its ids the tap changed on the way; reminded: the guard added a
    reminder; blocked: why the guard answered it itself.
    """

    wire: Wire
    request: Request
    body: bytes
    size: int
    new: int | None = None
    session: str | None = None
    agent: str | None = None
    exchange: int | None = None
    conversation: int | None = None
    findings: Sequence[FindingFact] = ()
    healed: int = 0
    reminded: bool = False
    blocked: str | None = None


@dataclass(frozen=True, slots=True)
class ShownReply:
    """A reply, or as much of it as has come. reply: with its texts. upstream_ids: of `reply.calls`,
    in order, as the server sent them. used: ids that the request's history holds already.

    body: as the client got it, content encoding undone. status: of HTTP. live: it is still coming;
    cut: it broke off; trouble: what mitmproxy says of that. seconds: from the request's end to the
    end. exchange, findings: as of a `ShownRequest`. results: of `reply.calls`, in order, what is
    known of the answer: `ok in 0.4 s`, `unanswered`, None where nothing is.
    """

    wire: Wire
    reply: Reply
    body: bytes
    status: int
    streamed: bool
    upstream_ids: Sequence[str | None] = ()
    used: frozenset[str] = frozenset()
    live: bool = False
    cut: bool = False
    trouble: str | None = None
    seconds: float | None = None
    request_id: str | None = None
    exchange: int | None = None
    findings: Sequence[FindingFact] = ()
    results: Sequence[str | None] = ()
    blocked: str | None = None


@dataclass(frozen=True, slots=True)
class ShownStream:
    """A stream as events. body: what the client got; upstream: what the server sent, where that
    differs; both with the content encoding undone. chunks: `(bytes, milliseconds since the
    headers)` of upstream's chunks as they arrived; empty, with why in `untimed`, where none tell
    when an event came."""

    wire: Wire
    body: bytes
    upstream: bytes
    chunks: Sequence[tuple[int, float]] = ()
    untimed: str = ""
    live: bool = False
    cut: bool = False
