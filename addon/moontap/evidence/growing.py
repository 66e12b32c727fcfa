"""A history that grows message by message, with the lines that each message stands on.

Messages as JSON in, `Request`s out. Pure. Each message is read once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from moontap.wire import jsontext
from moontap.wire.protocol import Wire
from moontap.wire.types import Asked, Message, Reply, Request

_NONE = Asked()


@dataclass(slots=True)
class Growing:
    """messages: so far. lines: of each one, or one for each of its blocks. size: about how many
    bytes of JSON they take."""

    wire: Wire
    messages: list[Message] = field(default_factory=list)
    lines: list[tuple[int, ...]] = field(default_factory=list)
    size: int = 0

    def add(self, message: Any, *lines: int) -> None:
        """The next message. lines: as above."""
        read, size = read_message(self.wire, message)
        self.messages.append(read)
        self.lines.append(lines)
        self.size += size

    def cut(self, count: int) -> None:
        """Go back to the first so many messages."""
        del self.messages[count:], self.lines[count:]

    def request(self, model: str | None, asked: Asked = _NONE) -> Request:
        """The history so far as a request."""
        return Request(model, True, None, tuple(self.messages), asked)


def read_message(wire: Wire, message: Any) -> tuple[Message, int]:
    """A message as the protocol reads it, and its size."""
    text = jsontext.encode({"messages": [message]}).encode("utf-8", "surrogatepass")
    return wire.read_request(text).messages[0], len(text) - 15


def reply_of(wire: Wire, message: dict[str, Any]) -> Reply:
    """A reply that came whole."""
    return wire.reader().whole(jsontext.encode(message).encode("utf-8", "surrogatepass"))


def joined(blocks: Iterable[Any]) -> list[Any]:
    """The blocks of several contents as one list: a text counts as one block."""
    found: list[Any] = []
    for content in blocks:
        if isinstance(content, str):
            found += [{"type": "text", "text": content}] if content else []
        elif isinstance(content, list):
            found += content
    return found


def first_text(values: Sequence[Any]) -> str | None:
    """The first that is a text and not empty."""
    return next((one for one in values if isinstance(one, str) and one), None)
