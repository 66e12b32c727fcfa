"""A flow as named parts, to see what a step has changed in it, and to say where.

A flow in, texts and bodies by their places out: `request header cookie`, `response body`. It
changes nothing, and no part's text ever gets into a place.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from mitmproxy import http

from moontap.capture import metadata
from moontap.care.places import places
from moontap.care.words import Kind
from moontap.redact.body import is_event_stream
from moontap.redact.coded import decoded
from moontap.redact.flow import FRAMING, is_stream

_BLOCK = 4096


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that does not belong into a clean file. where: `request body $.messages[0]`,
    `request header user-agent`, `metadata moontap.session`; never what stands there."""

    where: str
    kind: Kind

    def __str__(self) -> str:
        return f"{self.where}: {self.kind}"


@dataclass(frozen=True, slots=True)
class Mark:
    """Something replaced. offset: in the body that is the part; None where it is no body."""

    part: str
    kind: Kind
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Body:
    """A body, content encoding undone. streamed: declared as an event stream."""

    plain: bytes
    streamed: bool


type Parts = dict[str, "str | Body | None"]
"""None: a body of which nobody knows what it holds."""


def parts(flow: http.HTTPFlow) -> Parts:
    """All of a flow that can hold anything personal, save its connections."""
    found: Parts = {}
    request, response = flow.request, flow.response
    found["request method"] = request.data.method.decode("utf-8", "replace")
    found["request scheme"] = request.scheme
    found["request host"] = request.host
    found["request authority"] = request.authority
    path, _, query = request.path.partition("?")
    found["request path"], found["request query"] = path, query
    _message(found, "request", request)
    if response:
        _message(found, "response", response)
        found["response reason"] = response.reason
    if flow.error:
        found["error"] = flow.error.msg
    for number, one in enumerate(flow.websocket.messages if flow.websocket else ()):
        found[f"websocket message {number}"] = Body(one.content, False)
    if flow.websocket:
        found["websocket close reason"] = flow.websocket.close_reason or ""
    found["comment"], found["marked"] = flow.comment, flow.marked
    # Names and keys are said in places: one that holds a secret is said as `names`, not by itself.
    keys = (key for key in flow.metadata if key not in metadata.ALL)
    found["metadata keys"] = repr(sorted(map(repr, keys)))
    for key, value in flow.metadata.items():
        if key == metadata.UPSTREAM_BODY and isinstance(value, bytes):
            coding = flow.metadata.get(metadata.UPSTREAM_ENCODING)
            body = undone(value, coding if isinstance(coding, str) else None)
            found[f"metadata {key}"] = _body(body, is_stream(response))
        elif isinstance(value, bytes):
            found[f"metadata {key}"] = Body(value, False)
        else:
            found[f"metadata {key}"] = repr(value)
    return found


def _message(found: Parts, of: str, message: http.Message) -> None:
    found[f"{of} http version"] = message.http_version
    for kind, headers in (("header", message.headers), ("trailer", message.trailers)):
        names = (name for name, _ in headers.fields) if headers else ()
        own = [name for name in names if name.decode("latin-1").lower() not in FRAMING]
        found[f"{of} {kind} names"] = repr(own)
        for name, value in headers.fields if headers else ():
            if name.lower() == b"content-length" and value.isdigit():
                continue  # another one where a body is kept decoded
            place = header_place(of, kind, name)
            before = found.get(place)  # a header may come several times
            text = value.decode("utf-8", "surrogateescape")
            found[place] = f"{before}\n{text}" if isinstance(before, str) else text
    if raw := message.raw_content:
        body = undone(raw, message.headers.get("content-encoding"))
        found[f"{of} body"] = _body(body, is_stream(message))


def _body(plain: bytes | None, streamed: bool) -> Body | None:
    return None if plain is None else Body(plain, streamed)


def header_place(of: str, kind: str, name: bytes) -> str:
    """`request header cookie`."""
    return f"{of} {kind} {name.decode('utf-8', 'replace').lower()}"


def undone(body: bytes, encoding: str | None) -> bytes | None:
    """A body with its content encodings undone; None: nobody knows what it holds."""
    try:
        plain = decoded(body, encoding)
    except Exception:  # too large once decoded, or not to be decoded
        return None
    return body if plain is None else plain


def changes(before: Parts, after: Parts, kind: Kind) -> Iterator[Mark]:
    """Where two states of a flow differ."""
    for part, old in before.items():
        if part not in after:
            continue  # it has another name now, and that is said
        new = after[part]
        if old == new:
            continue
        if old is None:
            yield Mark(part, Kind.UNREADABLE)
        elif isinstance(old, Body) and isinstance(new, Body) and len(old.plain) == len(new.plain):
            yield from (Mark(part, kind, at) for at in _runs(old.plain, new.plain))
        else:
            yield Mark(part, kind)


def _runs(old: bytes, new: bytes) -> Iterator[int]:
    """Where two texts of one length begin to differ, each time they do."""
    equal = True
    for start in range(0, len(old), _BLOCK):
        mine, theirs = old[start : start + _BLOCK], new[start : start + _BLOCK]
        if mine == theirs:
            equal = True
            continue
        for at, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            if a != b and equal:
                yield start + at
            equal = a == b


def located(marks: Iterable[Mark], now: Mapping[str, "str | Body | None"]) -> list[Finding]:
    """The marks as findings, each place and kind once. now: the parts, cleaned."""
    found: dict[Finding, None] = {}
    ordered = sorted(marks, key=lambda mark: mark.part)
    for part, group in groupby(ordered, key=lambda mark: mark.part):
        mine, body = list(group), now.get(part)
        where: dict[int, str] = {}
        if isinstance(body, Body):
            offsets = [mark.offset for mark in mine if mark.offset is not None]
            streamed = is_event_stream(body.plain, body.streamed)
            where = places(body.plain, offsets, streamed) if offsets else {}
        for mark in mine:
            place = where.get(mark.offset) if mark.offset is not None else None
            found[Finding(f"{part} {place}" if place else part, mark.kind)] = None
    return list(found)
