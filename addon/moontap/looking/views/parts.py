"""What a message of a history consists of, in its order: texts, thinking, calls, results, pictures.

A message as JSON text, with what was read of it, in; parts out. Pure. What it cannot read it takes
as the reader took it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from moontap.looking.views.words import one_line
from moontap.wire import jsontext
from moontap.wire.types import Message, Protocol

_ABSENT = (b"", b"null")
_SHOWN = ("role", "tool_call_id")  # elsewhere on the page
_NAME = 40  # characters of a type or a member's name
_SMALL = 120  # bytes of a block that is shown as it is


@dataclass(frozen=True, slots=True)
class Text:
    """Something that is said."""

    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """Thinking, or `reasoning_content`, as JSON text. size: its bytes, quotes left out."""

    raw: bytes
    size: int

    @property
    def text(self) -> str:
        return _string(self.raw) or ""


@dataclass(frozen=True, slots=True)
class CallAt:
    """The call with that number in the message."""

    number: int


@dataclass(frozen=True, slots=True)
class ResultAt:
    """The result with that number in the message."""

    number: int


@dataclass(frozen=True, slots=True)
class Other:
    """Anything else: a block, or a member of the message, as JSON text. said: what is known of one
    whose JSON is not worth reading, such as a picture: how large it is."""

    name: str
    raw: bytes
    said: str | None = None


type Part = Text | Thinking | CallAt | ResultAt | Other


class _Typed(msgspec.Struct, gc=False):
    type: str = ""
    text: msgspec.Raw = msgspec.Raw()
    thinking: msgspec.Raw = msgspec.Raw()


class _Said(msgspec.Struct, gc=False, tag_field="type", tag="text"):
    text: str


_TEXTS = msgspec.json.Decoder(list[_Said])
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TYPED = msgspec.json.Decoder(_Typed)
_RAWS = msgspec.json.Decoder(list[msgspec.Raw])


def parts_of(protocol: Protocol, raw: bytes, message: Message) -> Iterator[Part]:
    """The parts of a message. raw: its JSON text."""
    members = jsontext.decode(_OBJECT, raw)
    if members is None:
        yield Other("not a message", raw)
        return
    for name, member in members.items():
        value = bytes(member)
        if name == "content":
            yield from _content(protocol, value, message)
        elif name == "reasoning_content" and value not in _ABSENT:
            yield _thinking(value)
        elif not (name in _SHOWN or value in _ABSENT or (name == "tool_calls" and message.calls)):
            yield Other(one_line(name, _NAME), value)
    if protocol is Protocol.OPENAI:
        yield from map(CallAt, range(len(message.calls)))


def _content(protocol: Protocol, content: bytes, message: Message) -> Iterator[Part]:
    if protocol is Protocol.OPENAI and message.results:
        yield ResultAt(0)  # all of a `role=tool` message
        return
    blocks = jsontext.decode(_RAWS, content) if content[:1] == b"[" else None
    if blocks is None:
        text = _string(content)
        if text is None and content not in _ABSENT:
            yield Other("content", content)
        elif text:
            yield Text(text)
        return
    within = protocol is Protocol.ANTHROPIC  # calls and results are blocks there
    calls = {call.block: number for number, call in enumerate(message.calls)} if within else {}
    results = {result.block: number for number, result in enumerate(message.results)}
    for position, block in enumerate(blocks):
        if position in calls:
            yield CallAt(calls[position])
        elif position in results:
            yield ResultAt(results[position])
        else:
            yield _block(bytes(block))


def said_in(content: bytes, *, whole: bool = False) -> str:
    """The content of a result, JSON text, as text: its texts, and a word for all else. whole: its
    JSON for all else, but not for pictures."""
    if content in _ABSENT:
        return ""
    text = _string(content)
    if text is not None:
        return text
    if content[:1] != b"[":
        return content.decode("utf-8", "replace")
    texts = jsontext.decode(_TEXTS, content)
    if texts is not None and len(texts) == 1:  # as nearly always
        return texts[0].text
    blocks = jsontext.decode(_RAWS, content)
    if blocks is None:
        return content.decode("utf-8", "replace")
    parts = (_block(bytes(block)) for block in blocks)
    return "\n".join(
        _in_words(part, whole) if isinstance(part, Other) else part.text for part in parts
    )


def _block(raw: bytes) -> Text | Thinking | Other:
    """A block that is neither a call nor a result."""
    read = jsontext.decode(_TYPED, raw)
    if read is None:
        text = _string(raw)  # some clients put strings there
        return Other("block", raw) if text is None else Text(text)
    if read.type == "thinking" and read.thinking:
        return _thinking(bytes(read.thinking))
    if read.text and (text := _string(bytes(read.text))) is not None:
        return Text(text)
    return Other(one_line(read.type, _NAME) or "block", raw, _data(raw))


def _thinking(raw: bytes) -> Thinking:
    return Thinking(raw, len(raw) - 2 if raw[:1] == b'"' else len(raw))


def _string(raw: bytes) -> str | None:
    if raw[:1] != b'"':
        return None
    try:
        return jsontext.string(jsontext.loads(raw))
    except ValueError:
        return None


def _in_words(part: Other, whole: bool) -> str:
    """A word for a block that is not text: a small one says what it holds."""
    if part.said is not None:
        return f"[{part.name}, {part.said}]"
    if whole or len(part.raw) <= _SMALL:
        return f"[{part.name}: {part.raw.decode('utf-8', 'replace')}]"
    return f"[{part.name}, {len(part.raw):,} bytes of JSON]"


def _data(raw: bytes) -> str | None:
    """What is known of a picture, a document or the like: its size, or its address."""
    try:
        block = jsontext.loads(raw)
    except ValueError:
        return None
    holder = block if isinstance(block, dict) else {}
    for key in ("source", "image_url", "video_url", "audio_url", "input_audio", "file"):
        found = holder.get(key)
        if found is not None:
            return _held(found)
    return None


def _held(found: Any) -> str | None:
    if isinstance(found, str):
        found = {"url": found}
    if not isinstance(found, dict):
        return None
    data = found.get("data") or found.get("file_data") or found.get("url")
    if not isinstance(data, str):
        return None
    if not data.startswith("data:") and "url" in found:
        return one_line(data, 120)
    encoded = data.partition(",")[2] if data.startswith("data:") else data
    return f"{len(encoded.rstrip('=')) * 3 // 4:,} bytes"
