"""A text added to a request, behind everything that its newest user turn says.

A request body in, the body with the text and how to undo it out. Every other byte stays as it is.
Raises ValueError where there is no place for it; messages before the newest turn are never touched.
"""

import msgspec

from moontap.rewrite import Edit, splice
from moontap.wire import jsontext, spans
from moontap.wire.types import Protocol


class _Body(msgspec.Struct):
    messages: list[msgspec.Raw]


_BODY = msgspec.json.Decoder(_Body)
_ASIDE = ("system", "developer")  # clients put those in the middle, and at the end
_AFTER = {Protocol.ANTHROPIC: ("user",), Protocol.OPENAI: ("user", "tool")}


def insert(protocol: Protocol, body: bytes, text: str) -> tuple[bytes, list[Edit]]:
    """The body with the text, and the edits that take it out again: (offset in the new body,
    length there, the bytes that stood there).

    Messages: a text block behind the last block of the last user message; where its content is a
    string, at the end of that. Chat Completions: the same; behind `role=tool` a user message of
    its own, as Kimi's own clients add their notes.
    """
    safe = jsontext.mended(body)  # equal offsets
    read = jsontext.decode(_BODY, safe)
    if read is None or not read.messages:
        raise ValueError("no list of messages")
    last = len(read.messages) - 1
    position, start, end, message = last, 0, 0, dict[str, tuple[int, int]]()
    while True:
        if position < 0:
            raise ValueError("no user message")
        _, start, end = next(spans.known_elements(safe, "messages", read.messages, {position}))
        message = {key: (s, e) for key, s, e in spans.members(safe, start)}
        role = spans.string_at(safe, *message["role"]) if "role" in message else None
        if role in _AFTER[protocol]:
            break
        if role not in _ASIDE:
            raise ValueError(f"the newest message is of the role {role!r}")
        position -= 1
    if role == "tool":
        at, old, new = end, b"", b',{"role":"user","content":%s}' % _json(text)
    else:
        at, old, new = _in_content(safe, message, text)
    edits: list[Edit] = [(at, at + len(old), new)]
    return splice(body, edits), [(at, len(new), old)]


def _in_content(
    body: bytes, message: dict[str, tuple[int, int]], text: str
) -> tuple[int, bytes, bytes]:
    """Where in a message's content a text goes, what it replaces, and its bytes."""
    if "content" not in message:
        raise ValueError("the newest user message has no content")
    start, end = message["content"]
    kind = body[start : start + 1]
    block = b'{"type":"text","text":%s}' % _json(text)
    if kind == b'"':
        gap = b"\\n\\n" if end - start > 2 else b""
        return end - 1, b"", gap + _json(text)[1:-1]
    if kind == b"[":
        ends = [e for _, e in spans.elements(body, start)]
        return (ends[-1], b"", b"," + block) if ends else (start + 1, b"", block)
    if body[start:end] == b"null":
        return start, b"null", _json(text)
    raise ValueError("the newest user message has a content that is no text")


def _json(text: str) -> bytes:
    return msgspec.json.encode(text)
