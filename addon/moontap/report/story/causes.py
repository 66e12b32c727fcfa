"""What began it: of all that was found in a conversation, the thing that explains the others.

Findings in, the root with what came of it and what did not out. A code that no table here names
stands for itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from moontap.findings.types import Finding, Party, Severity

# What a thing can come from, as was seen with real clients; the likeliest cause first.
_IDS = ("id-reused", "id-reused-in-response", "id-empty", "id-changed")
_LOST = ("pair-dropped-by-client", "call-unanswered", "result-orphan", "result-misplaced")
_CAUSES: dict[str, tuple[str, ...]] = {
    "pair-dropped-by-client": _IDS,
    "call-unanswered": (*_IDS, "pair-dropped-by-client", "message-malformed"),
    "result-orphan": (*_IDS, "pair-dropped-by-client", "message-malformed"),
    "result-duplicated": _IDS,
    "result-misplaced": _IDS,
    "calls-dropped-from-message": (*_IDS, "pair-dropped-by-client"),
    "empty-user-turn": (
        *("pair-dropped-by-client", "calls-dropped-from-message", *_IDS, "message-malformed"),
    ),
    "no-progress": (*_LOST, *_IDS, "reasoning-dropped", "arguments-invalid", "result-unfit"),
    "guard-stopped": ("no-progress", *_LOST, *_IDS),
    "arguments-invalid": ("call-truncated", "stream-cut"),
    "arguments-off-schema": ("call-truncated", "message-malformed"),
    "result-unfit": ("message-malformed",),
    "id-empty": ("message-malformed",),
    "call-truncated": ("stream-cut",),
    "request-retried": ("stream-cut", "stream-error", "stream-slow", "api-refused"),
}
# For a refusal it depends on what was refused: `reason` in its evidence.
_REFUSED: dict[object, tuple[str, ...]] = {
    "id-duplicated": _IDS,
    "id-empty": ("id-empty",),
    "call-missing": (*_LOST, "calls-dropped-from-message", *_IDS),
    "result-missing": (*_LOST, *_IDS),
    "message-empty": ("empty-user-turn", "calls-dropped-from-message", "pair-dropped-by-client"),
    "text-empty": ("empty-user-turn", "pair-dropped-by-client", "result-unfit"),
    "reasoning-missing": ("reasoning-dropped",),
    "tool-choice": ("tool-choice-refused",),
    "bad-request": (
        *("message-malformed", "id-unfit", "result-unfit", "legacy-functions", "arguments-invalid"),
        *_LOST,
    ),
}
IDS = frozenset((*_IDS, "pair-dropped-by-client"))
"""What unique ids heal."""


@dataclass(frozen=True, slots=True)
class Group:
    """All findings of one code. first: the earliest; worst: the highest severity among them;
    last: the latest, whose figures are the highest."""

    findings: Sequence[Finding]

    @property
    def code(self) -> str:
        return self.findings[0].code

    @property
    def first(self) -> Finding:
        return self.findings[0]

    @property
    def last(self) -> Finding:
        return self.findings[-1]

    @property
    def worst(self) -> Severity:
        return max((one.severity for one in self.findings), key=lambda severity: severity.rank)

    @property
    def party(self) -> Party:
        """Whom the first one points at."""
        return self.first.party


@dataclass(frozen=True, slots=True)
class Causes:
    """root: what explains the worst that was found. effects: what it leads to. others: what is not
    explained by it. info: what is only good to know. Each in the order in which it came."""

    root: Group | None
    effects: Sequence[Group]
    others: Sequence[Group]
    info: Sequence[Group]


def causes(findings: Sequence[Finding]) -> Causes:
    """Findings of one conversation, in order, sorted by what came of what."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.code, []).append(finding)
    every = [Group(group) for group in groups.values()]
    info = [group for group in every if group.worst is Severity.INFO]
    # What is only good to know of each explains nothing: `id-reused` is that where it was healed.
    wrong = {
        code: Group([one for one in group if one.severity is not Severity.INFO])
        for code, group in groups.items()
        if Group(group).worst is not Severity.INFO
    }
    if not wrong:
        return Causes(None, (), (), info)
    worst = max(wrong.values(), key=lambda group: (group.worst.rank, -group.first.exchange))
    root, _ = _origin(worst, wrong)
    effects: list[tuple[int, int, Group]] = []
    others: list[Group] = []
    for group in wrong.values():
        if group.code != root.code:
            origin, steps = _origin(group, wrong)
            if origin.code == root.code:
                effects.append((group.first.exchange, steps, group))
            else:
                others.append(group)
    effects.sort(key=lambda effect: effect[:2])
    return Causes(root, [group for *_, group in effects], others, info)


def _origin(group: Group, among: dict[str, Group]) -> tuple[Group, int]:
    """Back along the causes that are there and came no later; and how many steps that is."""
    seen = {group.code}
    while True:
        for code in _possible(group.first):
            cause = among.get(code)
            if cause and code not in seen and cause.first.exchange <= group.first.exchange:
                break
        else:
            return group, len(seen) - 1
        seen.add(cause.code)
        group = cause


def _possible(finding: Finding) -> tuple[str, ...]:
    """The codes that it can come from."""
    if finding.code == "api-refused":
        return _REFUSED.get(finding.evidence.facts.get("reason"), ())
    return _CAUSES.get(finding.code, ())
