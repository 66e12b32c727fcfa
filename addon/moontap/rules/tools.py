"""The section `tools`: what kind of thing a tool does, for limits of its own."""

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from moontap import yamlfile
from moontap.rules import fields


@dataclass(frozen=True, slots=True)
class ToolRules:
    """classes: by class (`read`, `write`, `pay`, or any other word) the tools in it; `*` in a name
    stands for anything. Where a tool is in several, the first one holds."""

    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def of(self, tool: str) -> str | None:
        """The class of a tool; None where it is in none."""
        for name, tools in self.classes.items():
            if any(fnmatch.fnmatchcase(tool, pattern) for pattern in tools):
                return name
        return None


def written(rules: ToolRules) -> dict[str, Any]:
    """The section as it would stand in a file."""
    return {name: list(tools) for name, tools in rules.classes.items()}


def read(node: yamlfile.Node) -> ToolRules:
    """The section's value. Raises YamlError."""
    parts = node.members()
    return ToolRules(
        {name: tuple(item.text() for item in fields.items(part)) for name, part in parts.items()}
    )
