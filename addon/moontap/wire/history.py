"""Reading requests that repeat their history: what was read before is not read again.

Request bodies in, `Request`s out, equal to what the protocol's own `read_request` gives. A turn of
a long conversation costs one comparison of bytes and the reading of what is new.
"""

from dataclasses import dataclass

import msgspec

from moontap.wire import form, jsontext, spans
from moontap.wire.beginnings import Beginning, Beginnings
from moontap.wire.protocol import Wire
from moontap.wire.types import Message, Request

SMALL = 4 * 1024
"""Bodies below this size are read whole."""

_LIMIT = 48 * 1024 * 1024
_UNSTABLE = 6  # messages at the end that clients still change: cache marks move, reminders go
_REREAD = 0.25  # part of a body behind its known beginning, up to this many bytes,
_REREAD_MOST = 128 * 1024  # before a longer beginning is kept

# In place of the messages that are known.
_HERE = form.STAND_IN
_HEAD = b'{"messages":[{"role":"%s","content":""}' % _HERE.encode()


class _Raw(msgspec.Struct):
    messages: list[msgspec.Raw]


_RAW = msgspec.json.Decoder(_Raw)


@dataclass(frozen=True, slots=True, eq=False)
class _Read:
    """What a beginning says. head: what stands before the messages, as a request without any."""

    head: Request
    messages: tuple[Message, ...]


type _Known = Beginning[_Read]


class HistoryReader:
    """Reads one run's requests, in any order. Keeps beginnings of at most `limit` bytes in all."""

    def __init__(self, limit: int = _LIMIT) -> None:
        self._beginnings: Beginnings[_Read] = Beginnings(limit)

    @property
    def kept(self) -> int:
        """Bytes of the beginnings that are kept."""
        return self._beginnings.size

    def read(self, wire: Wire, body: bytes) -> Request:
        """The history of a request body. Raises ValueError where it is not of the protocol."""
        if len(body) < SMALL:
            return wire.read_request(body)
        known = self._beginnings.find(body, wire.protocol)
        request = _resume(wire, known, body) if known else None
        if known and request:
            if len(body) - len(known.text) > min(_REREAD * len(body), _REREAD_MOST):
                self._keep(wire, body, request, known)
            return request
        request = wire.read_request(body)
        self._keep(wire, body, request, None)
        return request

    def _keep(self, wire: Wire, body: bytes, request: Request, known: _Known | None) -> None:
        """Remember how a body begins, in place of the shorter beginning that is known."""
        count = len(request.messages) - _UNSTABLE
        before = len(known.note.messages) if known else 0
        if count <= before:
            return
        end = _message_end(body, known, count - before)
        head = known.note.head if known else _head(wire, body)
        if end is None or head is None:
            return
        note = _Read(head, request.messages[:count])
        self._beginnings.keep(Beginning(body[:end], wire.protocol, note), instead_of=known)


def _resume(wire: Wire, known: _Known, body: bytes) -> Request | None:
    """Read on behind a known beginning; None where the body cannot be read so."""
    try:
        rest = wire.read_request(_HEAD + body[len(known.text) :])
    except ValueError:
        return None
    first = rest.messages[0] if rest.messages else None
    if first is None or first.role != _HERE:
        return None  # a second `messages` behind: that one counts
    head = known.note.head
    return Request(
        model=rest.model or head.model,
        stream=rest.stream or head.stream,
        session=rest.session or head.session,
        messages=known.note.messages + rest.messages[1:],
        asked=rest.asked.or_else(head.asked),
    )


def _head(wire: Wire, body: bytes) -> Request | None:
    try:
        start = spans.member_start(body, "messages")
        return wire.read_request(body[:start] + b"[]}")
    except ValueError:
        return None


def _message_end(body: bytes, known: _Known | None, count: int) -> int | None:
    """Where, in the body, the count-th message behind the known beginning ends."""
    text, shift, last = body, 0, count - 1
    if known:
        text = _HEAD + body[len(known.text) :]
        shift, last = len(known.text) - len(_HEAD), count
    raw = jsontext.decode(_RAW, text)
    if raw is None:
        return None
    try:
        return next(spans.known_elements(text, "messages", raw.messages, {last}))[2] + shift
    except (ValueError, StopIteration):
        return None
