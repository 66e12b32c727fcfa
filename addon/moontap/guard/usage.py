"""What a session has used: calls, minutes, tokens.

Requests and replies in, the limit that is used up out. Pure: the clock is that of the requests.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from moontap.rules.guard import Guard as GuardRules

_PARTS = (
    *("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"),
    *("prompt_tokens", "completion_tokens"),
)


@dataclass(slots=True)
class Usage:
    """calls: tool calls that replies brought. tokens: of requests and replies, as the server says
    them. began: when its first request did, seconds since the epoch. first, last: the flows of its
    first and latest reply. blocked: its latest request was refused."""

    calls: int = 0
    tokens: int = 0
    began: float | None = None
    first: str | None = None
    last: str | None = None
    blocked: bool = False

    def ask(self, at: float | None) -> None:
        """A request begins."""
        if self.began is None:
            self.began = at

    def add(self, flow: str, calls: int, usage: Mapping[str, object] | None) -> None:
        """A reply has ended."""
        self.first = self.first or flow
        self.last = flow
        self.calls += calls
        self.tokens += tokens_of(usage or {})

    def over(self, rules: GuardRules, at: float | None) -> tuple[str, float, float] | None:
        """The limit that is used up: its name in the rules, what was used, what is allowed."""
        minutes = (at - self.began) / 60 if at and self.began else 0.0
        used = (
            ("calls", self.calls, rules.calls),
            ("minutes", minutes, rules.minutes),
            ("tokens", self.tokens, rules.tokens),
        )
        for name, much, allowed in used:
            if allowed is not None and much >= allowed:
                return name, round(much, 1), allowed
        return None


def tokens_of(usage: Mapping[str, object]) -> int:
    """All tokens of an exchange; cached ones count as well."""
    return _count(usage.get("total_tokens")) or sum(_count(usage.get(name)) for name in _PARTS)


def _count(value: object) -> int:
    return value if type(value) is int and value > 0 else 0
