"""One saved flow, cleaned: secrets as stars, what the rules name as something alike.

A flow goes in and is changed in place; what was replaced, and where, comes out. Lengths stay, so
that chunks, offsets and healed ids stay true. It never keeps a body that could not be searched.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from mitmproxy import http

from moontap.capture import metadata
from moontap.capture.exchange import client_request
from moontap.capture.upstream import rescaled
from moontap.care import made
from moontap.care.connections import forget
from moontap.care.identities import Known
from moontap.care.parts import Finding, Mark, changes, header_place, located, parts, undone
from moontap.care.protocol_words import KEPT, PATH
from moontap.care.words import Kind, Words
from moontap.identity import derived
from moontap.options import HOSTS
from moontap.redact.body import fill_body
from moontap.redact.flow import FRAMING, Redactor, is_stream
from moontap.redact.views import Part, Patch, View
from moontap.rewrite import unheal
from moontap.rules import Rules
from moontap.wire.protocol import of_request

SALT = "moontap"
"""What replacements are made of beside the value, where nobody gives another."""

_DERIVED = "conversation-"
_OURS = frozenset(
    (
        metadata.UPSTREAM_BODY,
        metadata.UPSTREAM_ENCODING,
        metadata.CHUNKS,
        metadata.HEALED,
        metadata.REMINDED,
        metadata.SCRUBBED,
    )
)


def findings(
    flow: http.HTTPFlow, rules: Rules | None = None, known: Known | None = None
) -> list[Finding]:
    """What `scrub` would replace in a flow, each place and kind once. The flow is not changed.

    known: what the file that it is from was seen to hold; default: what this flow holds.
    """
    copy = http.HTTPFlow.from_state(flow.get_state())
    assert isinstance(copy, http.HTTPFlow)
    scrubber = scrubber_for([flow], rules) if known is None else Scrubber(rules, known)
    return scrubber.findings(copy)


def scrubber_for(
    flows: Iterable[http.HTTPFlow], rules: Rules | None = None, salt: str = SALT
) -> "Scrubber":
    """One for the flows of a file, which are read and not changed.

    What they hold must be known before the first is cleaned: the secret in a header of the last may
    stand in its body.
    """
    known = Known(rules.redact if rules else None)
    for flow in flows:
        known.learn(flow)
    return Scrubber(rules, known, salt)


class Scrubber:
    """Cleans the flows of one file, in their order. known: what all of them were seen to hold."""

    def __init__(self, rules: Rules | None, known: Known, salt: str = SALT) -> None:
        rules = rules or Rules()
        self._redactor = Redactor(rules, sorted(known.secrets))
        self._words = Words(rules.scrub, known.ids, salt)
        self._paths = rules.scrub.json_paths
        self._marks: list[Mark] = []
        self._sessions: dict[str, str] = {}

    def scrub(self, flow: http.HTTPFlow) -> Counter[Kind]:
        """Clean a flow in place; how many places of each kind were replaced."""
        length = len(_upstream(flow))
        secrets = self._redactor.redact(flow)
        self._likeness(flow)
        _rescale(flow, length)
        counts = Counter(mark.kind for mark in self._marks)
        if secrets:
            counts[Kind.SECRET] += secrets
        return counts

    def findings(self, flow: http.HTTPFlow) -> list[Finding]:
        """The same, and where: each place and kind once."""
        before = parts(flow)
        self._redactor.redact(flow)
        secrets = list(changes(before, parts(flow), Kind.SECRET))
        self._likeness(flow)
        return located([*secrets, *self._marks], parts(flow))

    def _likeness(self, flow: http.HTTPFlow) -> None:
        self._marks = []
        self._words.begin(made.read(flow))
        opening = _opening(flow)
        self._request(flow)
        if response := flow.response:
            self._headers("response", response)
            response.reason = self._text("response reason", response.reason)
            self._body_of("response body", response)
            self._upstream_body(flow, is_stream(response))
        self._mark_connections(flow)
        if flow.error:
            flow.error.msg = self._text("error", flow.error.msg)
        for number, message in enumerate(flow.websocket.messages if flow.websocket else ()):
            message.content = self._body(f"websocket message {number}", message.content, False)
        if flow.websocket and flow.websocket.close_reason:
            said = flow.websocket.close_reason
            flow.websocket.close_reason = self._text("websocket close reason", said)
        flow.comment = self._text("comment", flow.comment)
        flow.marked = self._text("marked", flow.marked)
        for key in flow.metadata.keys() - _OURS:
            flow.metadata[key] = self._value(f"metadata {key}", flow.metadata[key])
        self._session(flow, opening)
        made.write(flow, self._words.made)
        # mitmproxy's files turn the order round each time they are read and written again.
        flow.metadata = dict(sorted(flow.metadata.items()))

    # the parts of a flow

    def _mark_connections(self, flow: http.HTTPFlow) -> None:
        for name in forget(flow):
            self._marks.append(Mark(f"{name} connection", Kind.CONNECTION))

    def _request(self, flow: http.HTTPFlow) -> None:
        request = flow.request
        request.data.host = self._host("request host", request.data.host)
        authority = request.data.authority.decode("utf-8", "surrogateescape")
        authority = self._host("request authority", authority)
        request.data.authority = authority.encode("utf-8", "surrogateescape")
        path, mark, query = request.path.partition("?")
        path = "/".join(
            segment if segment in PATH else self._text("request path", segment)
            for segment in path.split("/")
        )
        path += mark + self._text("request query", query)
        if path != request.path:
            request.path = path
        self._headers("request", request)
        self._request_body(flow, request)

    def _headers(self, of: str, message: http.Message) -> None:
        for kind, headers in (("header", message.headers), ("trailer", message.trailers)):
            if headers is None:
                continue
            fields = []
            for name, raw in headers.fields:
                label = name.decode("latin-1").lower()
                value = raw.decode("utf-8", "surrogateescape")
                where = header_place(of, kind, name)
                if label in ("host", ":authority"):
                    value = self._host(where, value)
                elif label not in FRAMING:
                    value = self._text(where, value)
                fields.append((name, value.encode("utf-8", "surrogateescape")))
            headers.fields = tuple(fields)

    def _request_body(self, flow: http.HTTPFlow, request: http.Request) -> None:
        edits = flow.metadata.get(metadata.HEALED)
        raw = request.raw_content
        if raw and isinstance(edits, list) and edits:
            plain = undone(raw, request.headers.get("content-encoding"))
            self._healed(flow, plain or b"", edits, is_stream(request))
        self._body_of("request body", request)

    def _body_of(self, where: str, message: http.Message) -> None:
        """A message's body; one that was compressed and is changed is kept decoded."""
        raw = message.raw_content
        if not raw:
            return
        plain = undone(raw, message.headers.get("content-encoding"))
        if plain is None:
            message.raw_content = self._blank(where, raw)
            return
        new = self._body(where, plain, is_stream(message))
        if new is plain:
            return
        message.raw_content = new
        # Also where it was not what the header said: what stands there now might be, by chance.
        message.headers.pop("content-encoding", None)
        if "content-length" in message.headers:
            message.headers["content-length"] = str(len(new))

    def _healed(
        self, flow: http.HTTPFlow, healed: bytes, edits: list[list[Any]], streamed: bool
    ) -> None:
        """What the client itself had sent is cleaned as a whole, and its ids taken from that."""
        where = f"metadata {metadata.HEALED}"
        try:
            sent = unheal(healed, [(at, length, old) for at, length, old in edits])
            sent, _ = fill_body(sent, self._words, self._paths, _Like(self._words), streamed)
            shift, new = 0, []
            for at, length, old in edits:
                start = at + shift
                new.append([at, length, sent[start : start + len(old)]])
                shift += len(old) - length
        except Exception:  # not as the tap writes it
            flow.metadata.pop(metadata.HEALED)
            self._marks.append(Mark(where, Kind.UNREADABLE))
            return
        if [list(edit) for edit in edits] != new:
            self._marks.append(Mark(where, Kind.NAME))
            flow.metadata[metadata.HEALED] = new

    def _upstream_body(self, flow: http.HTTPFlow, streamed: bool) -> None:
        data, where = flow.metadata, f"metadata {metadata.UPSTREAM_BODY}"
        sent, coding = data.get(metadata.UPSTREAM_BODY), data.get(metadata.UPSTREAM_ENCODING)
        if not isinstance(sent, bytes):
            return
        plain = undone(sent, coding if isinstance(coding, str) else None)
        if plain is None:
            data[metadata.UPSTREAM_BODY] = self._blank(where, sent)
            return
        new = self._body(where, plain, streamed)
        if new is not plain:
            data[metadata.UPSTREAM_BODY] = new
            data.pop(metadata.UPSTREAM_ENCODING, None)

    def _session(self, flow: http.HTTPFlow, opening: str | None) -> None:
        """A session that the tap has named after the first user message: a hash of its text.

        opening: that text as it was. The request that begins a conversation comes first.
        """
        name = flow.metadata.get(metadata.SESSION)
        if opening is None or not isinstance(name, str) or not name.startswith(_DERIVED):
            return
        now = _opening(flow)
        if now is not None and now != opening:
            self._sessions[derived(opening)] = derived(now)
        if new := self._sessions.get(name):
            flow.metadata[metadata.SESSION] = new

    # texts and bodies

    def _host(self, where: str, host: str) -> str:
        known = host.partition(":")[0].lower() in HOSTS
        return host if known else self._text(where, host)

    def _text(self, where: str, text: str) -> str:
        return self._words.sub(text, lambda kind: self._marks.append(Mark(where, kind)))

    def _value(self, where: str, value: object) -> object:
        """A value of flow.metadata, which may be a list or dict of values."""
        if isinstance(value, str):
            return self._text(where, value)
        if isinstance(value, bytes):
            return self._body(where, value, False)
        if isinstance(value, list | tuple):
            return [self._value(where, item) for item in value]
        if isinstance(value, dict):
            return {key: self._value(where, item) for key, item in value.items()}
        return value

    def _body(self, where: str, body: bytes, streamed: bool) -> bytes:
        like = _Like(self._words)
        try:
            new, _ = fill_body(body, self._words, self._paths, like, streamed)
        except Exception:  # nested absurdly: nobody can say what it holds
            return self._blank(where, body)
        self._marks += [Mark(where, kind, offset) for offset, kind in like.marks.items()]
        if new is not body and self._words.asks_for_forms:
            # What the rules find now is what was put there, or what that made of an escape.
            fill_body(new, self._words, self._paths, _Learn(self._words), streamed)
        return new

    def _blank(self, where: str, body: bytes) -> bytes:
        blank = b"*" * len(body)
        if body != blank:
            self._marks.append(Mark(where, Kind.UNREADABLE))
        return blank


class _Like:
    """What is found becomes something alike. marks: offsets, and what stood there."""

    by_value = True

    def __init__(self, words: Words) -> None:
        self._words = words
        self.marks: dict[int, Kind] = {}

    def text(self, view: View, start: int, end: int) -> Iterator[Patch]:
        value = view.text[start:end]
        if value in KEPT and value == view.text:
            return  # a JSON path can select what the protocol itself says
        new = self._words.replacement(value)
        if new == value:
            return
        first = next(view.spans(start, end), None)
        if first:
            self.marks[first[0]] = self._words.kind(value)
        yield from view.respelled(start, end, new)

    number = text

    def around(self, view: View) -> Iterable[View]:
        """What fields and comments say, without the names that make them fields."""
        position = 0
        for line in view.text.splitlines(keepends=True):
            field, colon, said = line.partition(":")
            known = colon and field.lstrip("\ufeff") in ("", "event", "id", "retry", "data")
            before = len(field) + 1 if known else 0
            before += len(said) - len(said.lstrip(" ")) if known else 0
            stop = position + len(line.rstrip("\r\n"))
            if position + before < stop:
                yield Part(view, position + before, stop)
            position += len(line)


class _Learn(_Like):
    """Nothing is changed, and all that is found is remembered."""

    def text(self, view: View, start: int, end: int) -> Iterator[Patch]:
        self._words.note(view.text[start:end])
        return iter(())

    number = text


def _opening(flow: http.HTTPFlow) -> str | None:
    """The text of the first user message, where a session may be named after it."""
    session = flow.metadata.get(metadata.SESSION)
    wire = of_request(flow.request.method, flow.request.path)
    if wire is None or not isinstance(session, str) or not session.startswith(_DERIVED):
        return None
    try:
        return wire.read_request(client_request(flow)).opening
    except ValueError:
        return None


def _upstream(flow: http.HTTPFlow) -> bytes:
    """The body whose chunks are noted."""
    own = flow.response.raw_content if flow.response else None
    return flow.metadata.get(metadata.UPSTREAM_BODY) or own or b""


def _rescale(flow: http.HTTPFlow, length: int) -> None:
    """Chunks of a body that was compressed and is now kept decoded: cut at the same parts of it.

    length: the body's, as the chunks were counted.
    """
    chunks, now = flow.metadata.get(metadata.CHUNKS), len(_upstream(flow))
    if not chunks or now == length or sum(size for size, _ in chunks) != length:
        return
    sizes = rescaled([size for size, _ in chunks], now)
    flow.metadata[metadata.CHUNKS] = [
        [size, at] for size, (_, at) in zip(sizes, chunks, strict=True)
    ]
