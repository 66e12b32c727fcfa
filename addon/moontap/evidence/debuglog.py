"""Claude Code's debug log: the repairs of its history that it notes, and the API's refusals.

Lines in, findings out. Pure. A repair names the messages with their tool-call ids, but neither
tools nor arguments, so that no turns can be told from it: what it shows is said at once. Seen on
2.1.197 and 2.1.328.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from moontap.evidence.damage import Damage
from moontap.evidence.growing import reply_of
from moontap.evidence.place import Place
from moontap.evidence.telling import Answer, Teller, Told
from moontap.findings.types import Evidence, Found, Part, Party, Severity
from moontap.rules import Rules
from moontap.wire import jsontext
from moontap.wire.protocol import ANTHROPIC

CODES = ("id-reused", "pair-dropped-by-client")
"""What is told from the log without a check."""

_MARK = b"ensureToolResultPairing: repaired"
_STAMP = re.compile(rb"\d{4}-\d\d-\d\dT[\d:.]+Z \[")
_STRUCTURE = re.compile(rb"\[(\d+)\] (assistant|user)\(([^()]*+)\)")
_USES = re.compile(rb"tool_uses=\[([^\[\]]*+)\]")
_MESSAGE_ID = re.compile(rb"id=([^,)\s]+)")
_REFUSED = re.compile(rb"\] API error \(attempt (\d+)/\d+\): (\d{3})\b[^{<]*")


@dataclass(frozen=True, slots=True)
class Seen:
    """What the log shows by itself. line: where it shows first."""

    code: str
    found: Found
    line: int


class DebugLog:
    """Iterate `turns` once; after that `seen` and `notes` say what the repairs show."""

    def __init__(self, text: bytes, rules: Rules, damage: list[Damage]) -> None:
        self._text, self._damage = text, damage
        self._teller = Teller(ANTHROPIC, rules)
        self.repairs = 0
        self._first = self._last = 0
        # By conversation (its first reply) and id: the replies that used it, in order.
        self._uses: dict[tuple[str, str], list[str]] = {}
        self._reused_at: dict[tuple[str, str], int] = {}
        self._replies: set[tuple[str, str]] = set()

    def turns(self) -> Iterator[Told]:
        """The requests that the API refused."""
        lines = self._text.split(b"\n")
        for number, line in enumerate(lines, 1):
            if _MARK in line:
                self._repair(line, number)
            elif found := _REFUSED.search(line):
                yield self._refusal(line[found.end() :], int(found[2]), number)
        if lines[-1] and not _STAMP.match(lines[-1]) and len(lines) > 1:
            self._damage.append(Damage("it breaks off within a line", len(lines)))

    @property
    def notes(self) -> list[str]:
        """How often it repaired its history, if it did."""
        return [f"{self.repairs} repairs of the history are logged"] if self.repairs else []

    def seen(self) -> Iterator[Seen]:
        """What the repairs show."""
        if not self.repairs:
            return
        reused = {key: uses for key, uses in self._uses.items() if len(uses) > 1}
        for (root, id_), uses in reused.items():
            message = f"The id {id_} names {len(uses)} calls of as many replies."
            evidence = Evidence(ids=(id_,), facts={"count": len(uses), "messages": uses[:8]})
            found = Found(message, id_, evidence, Severity.ERROR, Party.API)
            yield Seen("id-reused", found, self._reused_at[root, id_])
        dropped: Counter[str] = Counter()
        for (_, id_), uses in reused.items():
            dropped[id_] += len(uses) - 1
        names = ", ".join(id_ for id_, _ in dropped.most_common(5))
        many = "once" if self.repairs == 1 else f"{self.repairs} times"
        message = f"Claude Code repaired its history {many} before it sent it"
        if dropped:
            message += f": of the calls that share an id ({names}) it kept only the first"
        facts = {"repairs": self.repairs, "last_line": self._last, "dropped": dropped.total()}
        evidence = Evidence(ids=tuple(list(dropped)[:8]), facts=facts)
        found = Found(f"{message}.", None, evidence, Severity.ERROR, Party.CLIENT)
        yield Seen("pair-dropped-by-client", found, self._first)

    def _repair(self, line: bytes, number: int) -> None:
        self.repairs += 1
        self._first = self._first or number
        self._last = number
        structure = line[line.find(b"structure:") :]
        said = [
            (_reply_id(place, inner), _USES.search(inner))
            for place, role, inner in _STRUCTURE.findall(structure)
            if role == b"assistant"
        ]
        # A structure names the whole history again: only its end is new.
        root, fresh = said[0][0] if said else "", len(said)
        while fresh and (root, said[fresh - 1][0]) not in self._replies:
            fresh -= 1
        for reply, used in said[fresh:]:
            self._replies.add((root, reply))
            for id_ in dict.fromkeys(used[1].split(b",") if used else ()):
                if key := _text(id_.strip()):
                    self._use(root, key, reply, number)

    def _use(self, root: str, id_: str, reply: str, number: int) -> None:
        uses = self._uses.setdefault((root, id_), [])
        uses.append(reply)
        if len(uses) > 1:
            self._reused_at.setdefault((root, id_), number)

    def _refusal(self, rest: bytes, status: int, number: int) -> Told:
        body = rest.strip()
        try:
            error = jsontext.loads(body)
        except ValueError:
            error = None
        is_json = isinstance(error, dict)
        whole = error if is_json else {"type": "error", "error": {"message": _text(body[:2000])}}
        reply = reply_of(ANTHROPIC, whole)
        kind = "application/json" if is_json else "text/html"
        answer = Answer(reply, status=status, kind=kind, read_body=lambda: body)
        turn = self._teller.exchange(None, answer, Part.ANSWER, label=f"line {number}")
        return Told(turn, Place(start=number))


def _reply_id(place: bytes, inner: bytes) -> str:
    named = _MESSAGE_ID.search(inner)
    return _text(named[1]) if named else f"message {int(place)}"


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
