"""Where in a file a finding shows.

Evidence of a finding in, a line out. Pure.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from moontap.evidence.damage import line_of
from moontap.findings.types import Evidence
from moontap.wire import jsontext, spans


@dataclass(frozen=True, slots=True)
class Place:
    """The lines of one exchange. messages: of its request's messages; worked out when asked for.

    reply: where the reply stands, or its end is. start: where the exchange begins. ids: looks an
    id up where nothing else tells.
    """

    messages: Callable[[], Sequence[int]] = list
    reply: int | None = None
    start: int | None = None
    ids: Callable[[str], int | None] | None = None

    def line(self, evidence: Evidence) -> int | None:
        """The line, from 1 on; None where the evidence has none."""
        if evidence.message is not None:
            messages = self.messages()
            if 0 <= evidence.message < len(messages):
                return messages[evidence.message]
        if self.ids:
            for one in evidence.ids:
                if one and (found := self.ids(one)):
                    return found
        if evidence.index is not None and self.reply:
            return self.reply
        return self.start or self.reply


def message_lines(text: bytes, is_array: bool) -> list[int]:
    """The line of each message of a request body, or of a messages array."""
    try:
        start = 0 if is_array else spans.member_start(text, "messages")
        found, line, at = [], 1, 0
        for begin, _ in spans.elements(text, start):
            line += text.count(b"\n", at, begin)
            at = begin
            found.append(line)
        return found
    except ValueError:
        return []


def of_ids(text: bytes) -> Callable[[str], int | None]:
    """Where an id first stands in a text, as JSON writes it."""

    def look(id_: str) -> int | None:
        at = text.find(jsontext.encode(id_).encode("utf-8", "surrogatepass"))
        return line_of(text, at) if at >= 0 else None

    return look
