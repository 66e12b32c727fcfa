"""The rules file: what is secret, what counts, how much is kept.

A path goes in, a checked `Rules` comes out. Nothing in the file is ignored: what is unknown or
wrong is an error that names the line and the remedy. One module a section.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from moontap import yamlfile
from moontap.rules import findings, guard, limits, progress, redact, replay, scrub, tools
from moontap.rules.findings import FindingRules
from moontap.rules.guard import Guard
from moontap.rules.hints import hints
from moontap.rules.limits import Limits
from moontap.rules.progress import ProgressRules
from moontap.rules.redact import Redact
from moontap.rules.replay import Replay
from moontap.rules.scrub import Scrub
from moontap.rules.tools import ToolRules

__all__ = [
    "FindingRules",
    "Guard",
    "Limits",
    "ProgressRules",
    "Redact",
    "Replay",
    "Rules",
    "RulesError",
    "Scrub",
    "ToolRules",
    "hints_of",
    "load_rules",
]

_SECTIONS: dict[str, Callable[[yamlfile.Node], Any]] = {
    "redact": redact.read,
    "limits": limits.read,
    "replay": replay.read,
    "scrub": scrub.read,
    "findings": findings.read,
    "progress": progress.read,
    "tools": tools.read,
    "guard": guard.read,
}


class RulesError(ValueError):
    """What is wrong with a rules file: one line, `file:line: what; remedy`."""


@dataclass(frozen=True, slots=True)
class Rules:
    """A whole rules file; `Rules()` is what holds without one."""

    redact: Redact = field(default_factory=Redact)
    limits: Limits = field(default_factory=Limits)
    replay: Replay = field(default_factory=Replay)
    scrub: Scrub = field(default_factory=Scrub)
    findings: FindingRules = field(default_factory=FindingRules)
    progress: ProgressRules = field(default_factory=ProgressRules)
    tools: ToolRules = field(default_factory=ToolRules)
    guard: Guard = field(default_factory=Guard)


def load_rules(path: str | None) -> Rules:
    """Read a rules file; None or an empty path gives the defaults.

    Raises RulesError: the file cannot be read, or anything in it is unknown or wrong.
    """
    if not path:
        return Rules()
    try:
        root = yamlfile.load(path)
        return Rules() if root is None else _rules(root)
    except yamlfile.YamlError as error:
        raise RulesError(str(error)) from None


def hints_of(path: str) -> list[str]:
    """What in a rules file is allowed and most likely a slip: `file:line: what`. Raises RulesError
    as `load_rules` does."""
    rules = load_rules(path)
    try:
        root = yamlfile.load(path)
    except yamlfile.YamlError as error:  # it was changed while we looked
        raise RulesError(str(error)) from None
    return hints(root, rules.tools, rules.guard) if root else []


def _rules(root: yamlfile.Node) -> Rules:
    nodes = root.members(known=_SECTIONS)
    parts = {name: node for name, node in nodes.items() if not node.is_null}
    rules = Rules(**{name: _SECTIONS[name](node) for name, node in parts.items()})
    if node := parts.get("guard"):
        guard.check(node, rules.tools)
    return rules
