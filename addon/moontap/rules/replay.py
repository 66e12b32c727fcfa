"""The section `replay`: what of a request does not count when it is matched to a recorded one."""

import re
from dataclasses import dataclass
from typing import Any

from moontap import yamlfile
from moontap.jsonpaths import JsonPath
from moontap.rules import fields


@dataclass(frozen=True, slots=True)
class Replacement:
    """Each match of the pattern counts as this text."""

    pattern: re.Pattern[str]
    text: str


@dataclass(frozen=True, slots=True)
class Replay:
    """What of a request does not count.

    ignore: paths into the request body; what they select is left out. replace: in its texts, in
    order, before anything else is done to them. system: whether the system prompt counts.
    """

    ignore: tuple[JsonPath, ...] = ()
    replace: tuple[Replacement, ...] = ()
    system: bool = False


def read(node: yamlfile.Node) -> Replay:
    """The section's value. Raises YamlError."""
    parts = node.members(known=("ignore", "replace", "system"))
    system = parts.get("system")
    return Replay(
        tuple(fields.json_path(item) for item in fields.items(parts.get("ignore"))),
        tuple(_replacement(item) for item in fields.items(parts.get("replace"))),
        system.boolean() if system is not None else False,
    )


def written(rules: Replay) -> dict[str, Any]:
    """The section as it would stand in a file."""
    return {
        "ignore": [path.source for path in rules.ignore],
        "replace": [{"pattern": one.pattern.pattern, "with": one.text} for one in rules.replace],
        "system": rules.system,
    }


def _replacement(node: yamlfile.Node) -> Replacement:
    parts = node.members(known=("pattern", "with"), needs=("pattern",))
    text = parts.get("with")
    return Replacement(fields.pattern(parts["pattern"]), text.text() if text is not None else "")
