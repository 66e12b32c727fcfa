"""What is allowed in a rules file, and yet is most likely a slip.

A file's root in, lines for a person out, each with its line of the file. Pure. What is certainly
wrong is an error, and said where the section is read.
"""

from collections.abc import Iterator

from moontap import yamlfile
from moontap.rules import fields
from moontap.rules.guard import CLASSES, Guard
from moontap.rules.tools import ToolRules
from moontap.wire.near import near


def hints(root: yamlfile.Node, tools: ToolRules, guard: Guard) -> list[str]:
    """The hints, in the order of the sections. What the file holds must have been checked."""
    parts = root.members()
    given = fields.members(parts.get("tools"))
    guards = fields.members(parts.get("guard"))
    limits = fields.members(guards.get("classes"))
    found = [*_classes(given, guard), *_limits(limits, tools, guard)]
    return [f"{node.file}:{node.line}: {says}" for node, says in found]


def _classes(given: dict[str, yamlfile.Node], guard: Guard) -> Iterator[tuple[yamlfile.Node, str]]:
    """A class without a limit is free to be, as `read` is; but not one that looks like another."""
    for name, node in given.items():
        meant = None if name in guard.classes else near(name, guard.classes)
        if meant and meant not in given:
            limit = guard.classes[meant]
            yield (
                node,
                f"the class '{name}' has no limit of its own, so its tools have guard.block; did "
                f"you mean '{meant}', which has {limit}?",
            )
        elif fields.items(node) == []:
            yield node, f"the class '{name}' names no tool"


def _limits(
    limits: dict[str, yamlfile.Node], tools: ToolRules, guard: Guard
) -> Iterator[tuple[yamlfile.Node, str]]:
    for name, node in limits.items():
        if not tools.classes.get(name) and name in CLASSES:
            yield node, f"no tool is of the class '{name}'; name its tools under 'tools'"
        if guard.classes[name] > guard.block:
            yield (
                node,
                f"the class '{name}' may be called {guard.classes[name]} times, more than other "
                f"tools ({guard.block}, guard.block); is that meant?",
            )
