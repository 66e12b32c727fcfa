"""The section `guard`: when the guard steps in. The option `moontap_guard` says what it does."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from moontap import yamlfile
from moontap.rules import fields
from moontap.rules.progress import rising
from moontap.rules.tools import ToolRules

REMIND = (3, 5, 8)
BLOCK = 12
CLASSES = {"write": 8, "pay": 3}

_SESSION = ("calls", "minutes", "tokens")


@dataclass(frozen=True, slots=True)
class Guard:
    """remind: counts at which a reminder goes with the request. block: the count past which the
    next request is refused; classes: the same for the classes of tools, see `rules.tools`.

    calls, minutes, tokens: limits of a session; None: none.
    """

    remind: tuple[int, ...] = REMIND
    block: int = BLOCK
    classes: Mapping[str, int] = field(default_factory=lambda: dict(CLASSES))
    calls: int | None = None
    minutes: float | None = None
    tokens: int | None = None

    @property
    def limits_sessions(self) -> bool:
        """Whether any limit of a session is set."""
        return (self.calls, self.minutes, self.tokens) != (None, None, None)


def read(node: yamlfile.Node) -> Guard:
    """The section's value. Raises YamlError."""
    parts = node.members(known=("remind", "block", "classes", "session"))
    remind, block = parts.get("remind"), parts.get("block")
    own = fields.members(parts.get("classes"))
    session = fields.members(parts.get("session"), known=_SESSION)
    limits = {name: part for name, part in session.items() if not part.is_null}
    calls, minutes, tokens = (limits.get(name) for name in _SESSION)
    return Guard(
        remind=REMIND if remind is None else rising(remind),
        block=BLOCK if block is None else block.integer(minimum=2),
        classes={**CLASSES, **{name: part.integer(minimum=2) for name, part in own.items()}},
        calls=None if calls is None else calls.integer(minimum=1),
        minutes=None if minutes is None else minutes.number(minimum=0),
        tokens=None if tokens is None else tokens.integer(minimum=1),
    )


def check(node: yamlfile.Node, tools: ToolRules) -> None:
    """Raises YamlError for a class that has no tool: nobody would notice the slip."""
    for name, part in fields.members(node.members().get("classes")).items():
        if name not in tools.classes and name not in CLASSES:
            raise part.error(f"no tool is of the class '{name}'; name its tools under 'tools'")


def written(guard: Guard) -> dict[str, Any]:
    """The section as it would stand in a file."""
    return {
        "remind": list(guard.remind),
        "block": guard.block,
        "classes": dict(guard.classes),
        "session": {name: getattr(guard, name) for name in _SESSION},
    }
