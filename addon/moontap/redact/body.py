"""Secrets in one body, masked byte for byte.

A decoded body goes in; the same body with every byte of a secret as `*` comes out, of the same
length, so that offsets, chunk sizes and `content-length` stay true, and JSON stays JSON. Bodies
without a secret come back as the same object. Never touches a byte outside a secret. `fill_body`
does the same for what another finder finds, with what another filling puts there.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set

import msgspec

from moontap.jsonpaths import JsonPath
from moontap.redact import jsontree
from moontap.redact.channels import Channels
from moontap.redact.filling import Filling, Finder, Stars
from moontap.redact.secrets import Needles, has_escaped_letter
from moontap.redact.views import Joined, Part, Patch, Raw, Silent, Unescaped, View
from moontap.wire.sse import Event, Framer

_JSON = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*+[\[{]")
_STREAM = re.compile(rb"(?:\xef\xbb\xbf)?[\r\n]*(?:data|event|id|retry)?:")
_DATA = re.compile(rb"(?:\A(?:\xef\xbb\xbf)?|[\r\n])data(?::[ ]?([^\r\n]*+)|(?=[\r\n]|\Z))")
_FIELD = re.compile(r"^\ufeff?(?:event|id|retry)?:[ ]?([^\r\n]++)", re.M)
_STRING = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+\\?+)"?', re.DOTALL)
_NUMBER = re.compile(r"-?[0-9][-+.0-9eE]*+")
# What stands between two strings of a JSON document.
_BETWEEN = re.compile(r"(?:[\s{}\[\]:,]++|true|false|null|-?[0-9][-+.0-9eE]*+)*+\ufeff?+")
_OPEN = ("{", "[")
_SPACE = " \t\r\n\ufeff"
# Each level of JSON in a JSON string doubles its backslashes, so real ones end before this.
_DEEPEST = 8
# More members of one name in one object than this are no accident; see `_Mask.paths`.
_MOST_SHADOWED = 64


def mask_body(
    body: bytes, needles: Needles, paths: Sequence[JsonPath] = (), event_stream: bool = False
) -> tuple[bytes, int]:
    """Mask the secrets of a body; also says how many there were.

    event_stream: the body was declared as one; one that looks like it is read as one anyway.
    May raise (RecursionError on absurd nesting): the body is then to be taken as unchecked.
    """
    return fill_body(body, needles, paths, Stars(body), event_stream)


def fill_body(
    body: bytes,
    finder: Finder,
    paths: Sequence[JsonPath],
    filling: Filling,
    event_stream: bool = False,
) -> tuple[bytes, int]:
    """Put a filling wherever the finder finds something, and where the paths select.

    Where both do, the paths decide. Otherwise as `mask_body`.
    """
    hits = finder.candidates(body)
    if is_event_stream(body, event_stream):
        if hits or finder.patterns or paths or _split_secret(body, finder):
            mask = _Mask(body, finder, paths, filling)
            mask.stream(_events(body))
            return mask.result()
        return body, 0
    if hits or finder.patterns or _may_select(body, paths):
        mask = _Mask(body, finder, paths, filling)
        mask.whole(hits)
        return mask.result()
    return body, 0


def mask_plain(body: bytes, needles: Needles) -> tuple[bytes, int]:
    """Mask without regard to structure: for what `mask_body` could not read."""
    mask = _Mask(body, needles, (), Stars(body))
    mask.plain(Raw(body))
    return mask.result()


def is_event_stream(body: bytes, declared: bool) -> bool:
    """Whether a body is read as an event stream: it was declared as one, or looks like one."""
    return bool((declared or _STREAM.match(body)) and _DATA.search(body))


class _Mask:
    """A body being masked. Nothing is looked for in what was masked already: views keep the old."""

    def __init__(
        self,
        body: bytes,
        needles: Finder,
        paths: Sequence[JsonPath],
        filling: Filling,
    ) -> None:
        self._body = body
        self._needles = needles
        self._filling = filling
        self._paths = paths
        # Of the event at hand, the strings that go on in others; and those that a path selects.
        self._pieces: dict[int, View] = {}
        self._selected: set[int] = set()
        self._known = True
        self._out = bytearray(body)
        self._count = 0

    def result(self) -> tuple[bytes, int]:
        return (bytes(self._out), self._count) if self._count else (self._body, 0)

    def whole(self, hits: Sequence[int]) -> None:
        """A body that is no event stream."""
        # Without a hit there is no shape and no value anywhere, whatever the encoding. (What a
        # pattern finds is to be found alike in all bodies where it matters what it becomes.)
        self._known = bool(hits) or self._filling.by_value
        if not _JSON.match(self._body):
            self.plain(Raw(self._body))
            return
        if self._needles.patterns:
            self.document(Raw(self._body))
        else:
            self._around(hits)
        if _may_select(self._body, self._paths):
            self.paths(Raw(self._body))

    def stream(self, events: Sequence[Event]) -> None:
        """An event stream: what its deltas amount to, and each event by itself."""
        views = [*_data(events)]
        pieces: list[dict[int, View]] = []
        current: View = Silent("")
        mine: dict[int, View] = {}

        def piece(text: str) -> View:
            # The tree hands out its own strings, which know their place.
            assert isinstance(text, jsontree.Text)
            mine[text.start] = view = Unescaped(current, text.start, text.end)
            return view

        channels: Channels[View] = Channels(piece)
        for _, current in views:
            mine = {}
            if _is_json(current.text):
                for root in jsontree.parse(current.text).roots:
                    channels.feed(root)
            elif current.text:
                channels.add(("data",), current)
            pieces.append(mine)
        if self._filling.by_value:
            self._each(views, pieces)
            self._joined(channels)
        else:
            self._joined(channels)
            self._each(views, pieces)

    def _joined(self, channels: Iterable[Sequence[View]]) -> None:
        for parts in channels:
            joined = Joined(parts)
            self.string(joined)
            self.paths(joined)
            if not self._selected.isdisjoint(map(id, parts)):
                self._scalar(joined)

    def _each(
        self, views: Sequence[tuple[list[View], View]], pieces: Sequence[dict[int, View]]
    ) -> None:
        for (around, view), done in zip(views, pieces, strict=True):
            if _is_json(view.text):
                self.document(view, done.keys())
                self._pieces = done if self._filling.by_value else {}
                self.paths(view)
                self._pieces = {}
            for raw in around:
                for part in self._filling.around(raw):
                    self.plain(part, patterns=not view.text)
                if view.text and self._needles.patterns and not self._filling.by_value:
                    self._fields(raw)

    def _fields(self, view: View) -> None:
        """What a person's patterns find in what an event's other lines say; never across lines, and
        not in the names of the fields, so that it stays an event."""
        for match in _FIELD.finditer(view.text):
            part = Part(view, *match.span(1))
            for start, end in self._needles.find(part.text, known=False):
                self._fill(part, start, end)

    def document(self, view: View, done: Set[int] = frozenset()) -> None:
        """All strings of a JSON text, save those that begin at the places in `done`."""
        if not (_well_formed(view.text) or jsontree.parse(view.text).ok):
            self.plain(view)
        self._strings(view, 0, done)

    def string(self, view: View, depth: int = 0) -> None:
        """A decoded string; one that is JSON itself is taken apart, so that it stays JSON."""
        text = view.text
        if depth < _DEEPEST and _is_json(text) and (_well_formed(text) or jsontree.parse(text).ok):
            self._strings(view, depth + 1)
        else:
            self.plain(view)

    def plain(self, view: View, patterns: bool = True) -> None:
        """A text without structure, also as it reads with its escapes resolved."""
        for start, end in self._needles.find(view.text, patterns, self._known):
            self._fill(view, start, end)
        for _ in range(_DEEPEST):
            if not self._known or "\\" not in view.text:
                break
            inner = Unescaped(view, 0, len(view.text))
            if inner.text == view.text:
                break
            view = inner
            for start, end in self._needles.find(view.text, patterns=False):
                self._fill(view, start, end)

    def paths(self, view: View, depth: int = 0) -> None:
        """What the JSON paths select, in a JSON text and in the JSON texts among its strings."""
        if not self._paths or depth > _DEEPEST or not _is_json(view.text):
            return
        tree = jsontree.parse(view.text)
        roots = [root for root in tree.roots if isinstance(root, dict | list)]
        self._select(view, roots)
        # Decoders take the last of several members with one name; the others are as secret.
        if len(tree.shadowed) > _MOST_SHADOWED:
            raise ValueError("too many members of the same name")
        for container, name, value in tree.shadowed:
            container[name] = value
            self._select(view, roots)
        pieces, self._pieces = self._pieces, {}  # the places are those of this text alone
        for text in tree.texts:
            if text.start in pieces:
                continue
            if text.startswith(_OPEN) or text.lstrip(_SPACE).startswith(_OPEN):
                self.paths(Unescaped(view, text.start, text.end), depth + 1)

    def _select(self, view: View, roots: Sequence[object]) -> None:
        for path in self._paths:
            for root in roots:
                for value in path.select(root):
                    self._scalars(view, value)

    def _scalars(self, view: View, value: object) -> None:
        waiting = [value]
        while waiting:
            value = waiting.pop()
            if isinstance(value, jsontree.Text):
                if value.start in self._pieces:
                    self._selected.add(id(self._pieces[value.start]))
                    continue
                self._scalar(Unescaped(view, value.start, value.end))
            elif isinstance(value, jsontree.Number):
                self._put(self._filling.number(view, value.start, value.end))
            elif isinstance(value, dict):
                waiting += value.values()
            elif isinstance(value, list):
                waiting += value

    def _scalar(self, view: View) -> None:
        text = view.text
        if self._filling.by_value and _is_json(text) and _well_formed(text):
            pieces, self._pieces = self._pieces, {}
            for root in jsontree.parse(text).roots:
                self._scalars(view, root)
            self._pieces = pieces
        else:
            self._fill(view, 0, len(text))

    def _around(self, hits: Sequence[int]) -> None:
        """Only the strings (or what stands between two) that the hits lie in."""
        body = self._body
        done = 0
        for hit in hits:
            if hit < done:
                continue
            start = _quote_before(body, hit) + 1
            end = done = _quote_after(body, hit)
            view = Raw(body[start:end], start)
            # Between two strings a bracket, colon or comma comes first.
            if view.text.lstrip(_SPACE)[:1] in tuple("{}[]:,") and self._between(view):
                continue
            self.string(Unescaped(view, 0, len(view.text)))

    def _strings(self, view: View, depth: int, done: Set[int] = frozenset()) -> None:
        text, position = view.text, 0
        for match in _STRING.finditer(text):
            self._gap(view, position, match.start())
            position = match.end()
            start, end = match.span(1)
            if start not in done:
                self.string(Unescaped(view, start, end), depth)
        self._gap(view, position, len(text))

    def _gap(self, view: View, start: int, end: int) -> None:
        text = view.text[start:end]
        if not text.strip(" \t\r\n{}[]:,"):
            return
        part = Part(view, start, end)
        if not self._between(part):
            self.plain(part)

    def _between(self, view: View) -> bool:
        """Numbers between two strings; False where something is there that is not JSON."""
        if not _BETWEEN.fullmatch(view.text):
            return False
        for match in _NUMBER.finditer(view.text):
            for start, end in self._needles.find(match[0], known=self._known):
                first, last = match.start() + start, match.start() + end
                self._put(self._filling.number(view, first, last))
        return True

    def _fill(self, view: View, start: int, end: int) -> None:
        self._put(self._filling.text(view, start, end))

    def _put(self, patches: Iterable[Patch]) -> None:
        changed = False
        for offset, new in patches:
            end = offset + len(new)
            if self._out[offset:end] != new:
                self._out[offset:end] = new
                changed = True
        self._count += changed


def _events(body: bytes) -> list[Event]:
    framer = Framer()
    events = framer.feed(body)
    last = framer.flush()
    return [*events, last] if last else events


def _data(events: Sequence[Event]) -> Iterator[tuple[list[View], View]]:
    """For each event what stands around its data, and its data."""
    offset = 0
    for raw, lines, _ in events:
        position = 0
        around: list[View] = []
        parts: list[View] = []
        for start, end in lines:
            around.append(Raw(raw[position:start], offset + position))
            parts += [Silent("\n")] if parts else []
            parts.append(Raw(raw[start:end], offset + start))
            position = end
        around.append(Raw(raw[position:], offset + position))
        yield around, parts[0] if len(parts) == 1 else Joined(parts)
        offset += len(raw)


def _split_secret(body: bytes, needles: Finder) -> bool:
    """Whether what the deltas amount to may hold a secret that no event holds by itself."""
    channels: Channels[str] = Channels(_itself)
    decode: Callable[[bytes], object] = msgspec.json.decode
    # Line by line: an event with several data lines fails to decode, and is then read with care.
    for match in _DATA.finditer(body):
        data = match[1] or b""
        if data[:1] in (b"{", b"["):
            try:
                channels.feed(decode(data))
            except (msgspec.MsgspecError, ValueError, RecursionError):
                if data != b"[DONE]":
                    return True
        else:
            channels.add(("data",), data.decode("utf-8", "surrogateescape"))
    return any(
        needles.candidates("".join(pieces).encode("utf-8", "surrogateescape"))
        for pieces in channels
    )


def _itself(text: str) -> str:
    return text


def _may_select(body: bytes, paths: Sequence[JsonPath]) -> bool:
    """Whether a path can match."""
    return bool(paths) and (
        any(all(name.encode() in body for name in path.names) for path in paths)
        or has_escaped_letter(body)
    )


def _is_json(text: str) -> bool:
    return text.lstrip(_SPACE).startswith(_OPEN)


def _well_formed(text: str) -> bool:
    try:
        msgspec.json.decode(text.lstrip("\ufeff"))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    return True


def _quote_before(body: bytes, position: int) -> int:
    """The last quote before position that is not escaped; -1 where there is none."""
    while True:
        position = body.rfind(b'"', 0, position)
        if position < 0 or not _is_escaped(body, position):
            return position


def _quote_after(body: bytes, position: int) -> int:
    """The first quote from position on that is not escaped; the end where there is none."""
    while True:
        position = body.find(b'"', position)
        if position < 0:
            return len(body)
        if not _is_escaped(body, position):
            return position
        position += 1


def _is_escaped(body: bytes, position: int) -> bool:
    start = position
    while start and body[start - 1] == 0x5C:
        start -= 1
    return (position - start) % 2 == 1
