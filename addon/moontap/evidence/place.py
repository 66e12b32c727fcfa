"""Where in a file a finding shows.

Evidence of a finding in, a line out. Pure.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from moontap.findings.types import Evidence
from moontap.wire import jsontext, spans

# A string ends at the latest with its line: one that breaks off does not swallow what follows.
_STRING = re.compile(rb'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"?')
_LINE_END = re.compile(rb"\n")
_LONGEST = 1000  # bytes of an id; what is longer is looked for in vain


@dataclass(frozen=True, slots=True)
class Place:
    """The lines of one exchange. messages: of its request's messages, worked out when asked for:
    of each one line, or one for each of its blocks.

    reply: where the reply stands, or its end is. blocks: the lines of its blocks, where each has
    one of its own. start: where the exchange begins. ids: looks an id up where nothing else tells.
    """

    messages: Callable[[], Sequence[Sequence[int]]] = list
    reply: int | None = None
    blocks: Sequence[int] = ()
    start: int | None = None
    ids: Callable[[str], int | None] | None = None

    def line(self, evidence: Evidence) -> int | None:
        """The line, from 1 on; None where the evidence has none."""
        if evidence.message is not None:
            messages = self.messages()
            if 0 <= evidence.message < len(messages):
                return _one(messages[evidence.message], evidence.block)
        if self.ids:
            for one in evidence.ids:
                if one and (found := self.ids(one)):
                    return found
        if evidence.index is not None and self.reply:
            return _one(self.blocks or (self.reply,), evidence.index)
        return self.start or self.reply


def _one(lines: Sequence[int], block: int | None) -> int:
    return lines[block] if block is not None and 0 <= block < len(lines) else lines[0]


class Lines:
    """The lines of a body, each looked up once however many findings ask. is_array: it is a
    messages array, else an object."""

    def __init__(self, text: bytes, is_array: bool = False) -> None:
        self._text, self._is_array = text, is_array

    @cached_property
    def messages(self) -> list[tuple[int]]:
        """The line of each message of the request."""
        text = self._text
        try:
            start = 0 if self._is_array else spans.member_start(text, "messages")
            return [(self._at(begin),) for begin, _ in spans.elements(text, start)]
        except ValueError:
            return []

    def of(self, id_: str) -> int | None:
        """Where an id first stands, as JSON writes it."""
        at = self._strings.get(jsontext.encode(id_).encode("utf-8", "surrogatepass"))
        return None if at is None else self._at(at)

    @cached_property
    def _strings(self) -> dict[bytes, int]:
        """The short strings, with their quotes, by where they first stand."""
        found: dict[bytes, int] = {}
        for one in _STRING.finditer(self._text):
            if one.end() - one.start() <= _LONGEST:
                found.setdefault(one[0], one.start())
        return found

    @cached_property
    def _ends(self) -> list[int]:
        return [one.start() for one in _LINE_END.finditer(self._text)]

    def _at(self, offset: int) -> int:
        return bisect_left(self._ends, offset) + 1
