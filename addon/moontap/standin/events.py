"""Server-sent events as text, then as bytes.

In: named events with their data, and the faults in force. Out: one `bytes` an event, separators
and comments included. It never looks into the data.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from moontap.standin.reply import Faults
from moontap.standin.script import FaultKind
from moontap.standin.seen import Protocol


@dataclass(frozen=True, slots=True)
class Event:
    """`name` is None where the protocol has no `event:` line."""

    data: str
    name: str | None = None


PING = Event('{"type": "ping"}', "ping")


def frame(events: Iterable[Event], protocol: Protocol, faults: Faults) -> list[bytes]:
    """The bytes of each event in order, one entry an event; with `comments`, the lines that stand
    between two events belong to the later one's entry."""
    end = "\r\n" if FaultKind.CRLF in faults else "\n"
    gap = "" if FaultKind.DATA_NO_SPACE in faults else " "
    chat = protocol is Protocol.CHAT
    separator = f" {end}" if chat and FaultKind.SPACE_SEPARATOR in faults else end
    named = FaultKind.NO_EVENT_LINE not in faults

    def encode(event: Event) -> bytes:
        name = f"event:{gap}{event.name}{end}" if event.name and named else ""
        return f"{name}data:{gap}{event.data}{end}{separator}".encode()

    out: list[bytes] = []
    for event in events:
        between = b""
        if out and FaultKind.COMMENTS in faults:
            between = f": keep-alive{end}{end}".encode() + (b"" if chat else encode(PING))
        out.append(between + encode(event))
    return out
