"""How ids look, and the way in which a server seems to make them.

Ids with the tools they are for in, words out. Pure. For people only: nothing is paired, renamed or
taken apart by what is read here.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import count

from moontap.findings.turn import Turn
from moontap.report.text import short

_NOTHING = frozenset({"", "undefined", "null", "none"})
_LONGEST = 48


class Scope(StrEnum):
    """What a server counts when it makes ids."""

    RESPONSE = "restarts-in-each-response"
    HISTORY = "counts-visible-calls"
    CONSTANT = "same-in-each-response"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Minting:
    """form: the shape, as `name_n`, `name:n`, `functions.name:n` or `other`."""

    form: str
    scope: Scope

    @property
    def words(self) -> str:
        """Goes on after "the API"."""
        shape = "" if self.form == "other" else f" (`{self.form}`)"
        return _WORDS[self.scope].format(shape=shape)


_WORDS = {
    Scope.RESPONSE: "seems to number calls{shape} from the start again in each response",
    Scope.HISTORY: "seems to number calls{shape} by how many it sees in the history, so that ids "
    "come again after a compaction, a rewind or a lost pair",
    Scope.CONSTANT: "seems to give the same ids{shape} in each response",
    Scope.UNKNOWN: "makes ids{shape} in a way that this alone does not tell",
}


def is_empty(id_: str | None) -> bool:
    """Whether an id is none: absent, empty, or the word that a program writes for nothing."""
    return id_ is None or id_.strip().lower() in _NOTHING


def named(id_: str | None) -> str:
    """An id for a sentence, at most some fifty characters."""
    if not id_:
        return "an empty id"
    return f"`{id_}`" if len(id_) <= _LONGEST else f"`{id_[: _LONGEST - 1]}…`"


def tool_named(name: str, nothing: str = "a tool without a name") -> str:
    """A tool for a sentence. nothing: for one without a name."""
    return short(name, _LONGEST) if name else nothing


def call_of(id_: str | None, tool: str) -> str:
    """A call for a sentence, behind "the" or "The"."""
    what = tool_named(tool)
    return f"call {named(id_)} of {what}" if id_ else f"call of {what} that has no id"


def result_of(id_: str | None) -> str:
    """A result for a sentence, behind "the" or "The"."""
    return f"result {named(id_)}" if id_ else "result that names no call"


def numbered(id_: str | None, tool: str) -> tuple[str, int] | None:
    """The form of an id that is its tool's name with a number, and the number. Tool names may end
    in digits themselves, so that the name must be known."""
    for form, front in (
        ("name_n", f"{tool}_"),
        ("name:n", f"{tool}:"),
        ("functions.name:n", f"functions.{tool}:"),
    ):
        rest = (id_ or "").removeprefix(front)
        if id_ and tool and rest != id_ and rest.isascii() and rest.isdigit() and len(rest) < 10:
            return form, int(rest)
    return None


def minting(turn: Turn) -> Minting:
    """The way in which the ids of a turn's reply seem to be made."""
    calls = turn.delivered
    first = min((call.origin.choice or 0 for call in calls), default=0)
    calls = tuple(call for call in calls if (call.origin.choice or 0) == first)
    read = [numbered(call.origin.upstream_id, call.name) for call in calls]
    ids = tuple(call.origin.upstream_id for call in calls)
    found = [one for one in read if one]
    if not found or len(found) < len(read):
        known = ids in turn.before.minted
        return Minting("other", Scope.CONSTANT if known else Scope.UNKNOWN)
    form, numbers = found[0][0], [number for _, number in found]
    messages = turn.sent.request.messages if turn.sent else ()
    visible = sum(len(message.calls) for message in messages)
    if visible and numbers == list(range(visible, visible + len(numbers))):
        return Minting(form, Scope.HISTORY)
    if numbers in (list(range(len(numbers))), _by_tool([call.name for call in calls])):
        return Minting(form, Scope.RESPONSE)
    return Minting(form, Scope.CONSTANT if ids in turn.before.minted else Scope.UNKNOWN)


def _by_tool(tools: Sequence[str]) -> list[int]:
    """The numbers where each tool is counted by itself."""
    counts: dict[str, count[int]] = defaultdict(count)
    return [next(counts[tool]) for tool in tools]
