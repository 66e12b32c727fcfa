"""Ids changed in bytes that flow, and nothing else changed.

Upstream's bytes in, the client's bytes out: equal but for the characters of rewritten ids. Pure:
no mitmproxy, no clock. Fails open: on anything unexpected the original bytes go on, and `fault`
holds the reason.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from moontap.ids import Mode, Namer, Style
from moontap.pairing import pair
from moontap.wire.protocol import Wire, event_texts, holds_any
from moontap.wire.sse import Event, Framer, locate
from moontap.wire.types import Message, Site

type Edit = tuple[int, int, bytes]
"""Replace the bytes at [start, end) by these."""

MAX_HELD = 4 * 1024 * 1024
"""Most bytes of an unfinished event that are held back; a longer event passes unread."""


class Change(msgspec.Struct, frozen=True):
    """One call whose id was changed."""

    upstream_id: str
    id: str


class CallIds:
    """The ids of one response's calls: the first id of a call decides for all that follow.

    fallback: gives what stands for the message id where the response has none.
    """

    def __init__(self, namer: Namer, fallback: Callable[[], str]) -> None:
        self._namer = namer
        self._fallback = fallback
        self._given: dict[tuple[int, int, int], Change] = {}

    @property
    def changes(self) -> list[Change]:
        """The calls whose id was changed, in the order they came."""
        return [change for change in self._given.values() if change.id != change.upstream_id]

    @property
    def used(self) -> set[str]:
        """Every id that the response has used: upstream's, and those given out instead."""
        return {id_ for change in self._given.values() for id_ in (change.upstream_id, change.id)}

    def give(self, site: Site, message_id: str | None) -> str:
        """The id that the client sees at a site."""
        key = (site.generation, site.choice, site.index)
        change = self._given.get(key)
        if change is None:
            place: list[str | int] = [message_id or self._fallback(), site.choice, site.index]
            if site.generation:
                place.append(site.generation)
            change = Change(site.id, self._namer.name(site.id, *place))
            self._given[key] = change
        # A call that keeps its id keeps whatever follows, too.
        return change.id if change.id != change.upstream_id else site.id


class StreamRewriter:
    """Rewrites one streamed reply.

    Goal: an event leaves with the byte that completes it, and at once where its first line says
    that it cannot hold an id. Cost: linear in the stream; holds one unfinished event at most.
    """

    def __init__(self, wire: Wire, ids: CallIds) -> None:
        self.fault: str | None = None
        self._wire = wire
        self._ids = ids
        self._sites = wire.sites()
        self._framer = Framer()

    def feed(self, data: bytes) -> bytes:
        """Take upstream's next bytes; give what may go on to the client now (perhaps `b""`)."""
        framer = self._framer
        whole_events = framer.idle and data.endswith(b"\n\n")
        if whole_events and not holds_any(data, self._wire.markers):
            return data  # none of them can name a call: most of a stream comes so
        out = [self._event(event) for event in framer.feed(data)]
        if framer.pending >= MAX_HELD:
            self._too_long()
            out.append(framer.release())
        elif framer.pending and (framer.released or framer.first_line in self._wire.passing):
            out.append(framer.release())
        return b"".join(out)

    def flush(self) -> bytes:
        """The end of the stream, clean or not: what is still held."""
        event = self._framer.flush()
        return self._event(event) if event else b""

    def _event(self, event: Event) -> bytes:
        raw = event.raw
        if event.released or not event.lines:
            return raw
        if not holds_any(raw, self._wire.markers):
            return raw
        # The next two as `feed` decides when the event comes in pieces.
        if self._wire.passing and _first_line(raw) in self._wire.passing:
            return raw
        if len(raw) > MAX_HELD:
            self._too_long()
            return raw
        try:
            return self._rewrite(event)
        except Exception as error:  # whatever it is: the event goes on as it came
            self.fault = self.fault or f"an event that is not readable: {error}"
            return raw

    def _too_long(self) -> None:
        self.fault = self.fault or f"an event of more than {MAX_HELD} bytes"

    def _rewrite(self, event: Event) -> bytes:
        edits: list[Edit] = []
        for lines in event_texts(event):
            for site in self._sites.find(event.text(lines)):
                new = self._ids.give(site, self._sites.message_id)
                if new != site.id:
                    start, end = locate(lines, site.start), locate(lines, site.end)
                    edits.append((start, end, _escaped(new)))
        return splice(event.raw, edits)


class WholeRewriter:
    """The same for a reply that comes whole: it is held until its end, then handed on at once."""

    def __init__(self, wire: Wire, ids: CallIds) -> None:
        self.fault: str | None = None
        self._wire = wire
        self._ids = ids
        self._held = bytearray()

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes; gives nothing yet."""
        self._held += data
        return b""

    def flush(self) -> bytes:
        """The end: the whole reply."""
        body = bytes(self._held)
        self._held.clear()
        if not body:
            return body
        try:
            message_id, sites = self._wire.reply_sites(body)
            names = [(site, self._ids.give(site, message_id)) for site in sites]
            return splice(body, [(s.start, s.end, _escaped(n)) for s, n in names if n != s.id])
        except Exception as error:  # whatever it is: the reply goes on as it came
            self.fault = f"a reply that is not readable: {error}"
            return body


type Rewriter = StreamRewriter | WholeRewriter


class Healed(msgspec.Struct, frozen=True):
    """A request whose history had duplicate ids.

    body: what goes upstream. edits: how to get the client's own body back: (offset in `body`,
    length there, the bytes that stood there), in order. calls: how many calls were renamed.
    ids: what they became; upstream knows them as used.
    """

    body: bytes
    edits: list[tuple[int, int, bytes]]
    calls: int
    ids: frozenset[str]


def heal(wire: Wire, body: bytes, messages: Sequence[Message], style: Style) -> Healed | None:
    """Give every later call of an id already used, and its result, an id of its own.

    messages: what the body says. The new ids depend on what stands before them in the history
    alone, so they are the same on every later turn. None where there is nothing to heal. Raises
    ValueError where the history cannot be read.
    """
    answers = pair(messages).answers
    namer = Namer(Mode.DUPLICATES, style, ())
    ordinal: dict[str, int] = {}
    new_ids: dict[tuple[int, int, bool], str] = {}
    calls = 0
    for position, message in enumerate(messages):
        for number, call in enumerate(message.calls):
            if not call.id:
                continue
            ordinal[call.id] = ordinal.get(call.id, 0) + 1
            new = namer.name(call.id, "history", ordinal[call.id])
            if new == call.id:
                continue
            calls += 1
            new_ids[position, call.block, False] = new
            if answer := answers.get((position, number)):
                result = messages[answer[0]].results[answer[1]]
                new_ids[answer[0], result.block, True] = new
    if not new_ids:
        return None
    ids = frozenset(new_ids.values())
    edits: list[Edit] = []
    for site in wire.history_sites(body, {position for position, _, _ in new_ids}):
        new_id = new_ids.pop((site.message, site.block, site.result), None)
        if new_id is not None:
            edits.append((site.start, site.end, _escaped(new_id)))
    if new_ids:
        raise ValueError("an id stands where it could not be found again")
    edits.sort()  # a message's members may stand in any order
    return Healed(splice(body, edits), _undo(body, edits), calls, ids)


def unheal(body: bytes, edits: Iterable[tuple[int, int, bytes]]) -> bytes:
    """The client's own body, from what went upstream and `Healed.edits`."""
    return splice(body, [(start, start + length, old) for start, length, old in edits])


def splice(text: bytes, edits: Sequence[Edit]) -> bytes:
    """The text with each [start, end) replaced; edits in order and not overlapping."""
    if not edits:
        return text
    parts: list[bytes] = []
    position = 0
    for start, end, new in edits:
        parts += (text[position:start], new)
        position = end
    parts.append(text[position:])
    return b"".join(parts)


def _undo(text: bytes, edits: Sequence[Edit]) -> list[tuple[int, int, bytes]]:
    shift = 0
    undo = []
    for start, end, new in edits:
        undo.append((start + shift, len(new), text[start:end]))
        shift += len(new) - (end - start)
    return undo


def _escaped(id_: str) -> bytes:
    """An id as the inside of a JSON string (a native id keeps whatever its tool's name holds)."""
    return msgspec.json.encode(id_)[1:-1]


def _first_line(raw: bytes) -> bytes:
    return raw[: min(at for at in (raw.find(b"\n"), raw.find(b"\r"), len(raw)) if at >= 0)]
