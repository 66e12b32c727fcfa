"""What saved flows came to, in a line: how many pairs of which status, or why there are none.

Counts in, a sentence out. Pure.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moontap.report.text import many, short

_NAMES = 6
_LONGEST = 48


@dataclass(slots=True)
class Tally:
    """The pairs of a file. chosen: those that were asked for, of all."""

    all: int = 0
    chosen: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    duplicates: int = 0
    sessions: dict[str, None] = field(default_factory=dict)
    tools: dict[str, None] = field(default_factory=dict)

    def add(self, line: Mapping[str, Any], chosen: bool) -> None:
        """Count a line of `pairs.jsonl`."""
        self.all += 1
        self.sessions[line["session"]] = None
        self.tools[line["tool"] or "-"] = None
        if chosen:
            self.chosen += 1
            self.statuses[line["status"]] += 1
            self.duplicates += line["duplicate"]

    def include(self, other: "Tally") -> None:
        """Count those of another file, too."""
        self.all += other.all
        self.chosen += other.chosen
        self.statuses += other.statuses
        self.duplicates += other.duplicates
        self.sessions |= other.sessions
        self.tools |= other.tools

    def __str__(self) -> str:
        said = f"{many(self.chosen, 'pair')}: "
        said += ", ".join(f"{count} {status}" for status, count in self.statuses.items())
        if self.duplicates:
            said += f"; {self.duplicates} with an id used before"
        return said


def nothing(tally: Tally, exchanges: int, paired: int, files: int = 1) -> str:
    """Why there is no pair to show. exchanges: all there are; paired: those with a model."""
    where = f" in {files} files" if files > 1 else ""
    if tally.all:
        return (
            f"none of {many(tally.all, 'pair')}{where} is what was asked for; there are the "
            f"sessions {names(tally.sessions)} and the tools {names(tally.tools)}"
        )
    if not exchanges:
        return f"no pairs: there is no HTTP exchange in {'them' if where else 'it'}"
    if not paired:
        return (
            f"no pairs: none of {many(exchanges, 'exchange')}{where} is with a model in a protocol "
            "that is paired (POST to …/v1/messages or …/chat/completions)"
        )
    return f"no pairs: no tool was called in {many(paired, 'exchange')} with a model{where}"


def names(all_: Iterable[str]) -> str:
    """A few of many names."""
    known = [short(name, _LONGEST) for name in all_]
    more = len(known) - _NAMES
    return ", ".join(known[:_NAMES]) + (f" and {more} more" if more > 0 else "")
