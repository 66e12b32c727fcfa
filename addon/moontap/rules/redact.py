"""The section `redact`: what is secret beside what always is."""

import re
from dataclasses import dataclass

from moontap import yamlfile
from moontap.jsonpaths import JsonPath
from moontap.rules import fields


@dataclass(frozen=True, slots=True)
class Redact:
    """What is secret beside what always is.

    headers: header names in lower case. patterns: searched in decoded text, the whole match is
    masked. json_paths: every scalar below a selected value is masked.
    """

    headers: tuple[str, ...] = ()
    patterns: tuple[re.Pattern[str], ...] = ()
    json_paths: tuple[JsonPath, ...] = ()


def read(node: yamlfile.Node) -> Redact:
    """The section's value. Raises YamlError."""
    parts = node.members(known=("headers", "patterns", "json_paths"))
    return Redact(
        tuple(fields.header(item) for item in fields.items(parts.get("headers"))),
        tuple(fields.pattern(item) for item in fields.items(parts.get("patterns"))),
        tuple(fields.json_path(item) for item in fields.items(parts.get("json_paths"))),
    )
