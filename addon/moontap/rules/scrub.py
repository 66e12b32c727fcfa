"""The section `scrub`: what `moontap scrub` replaces beside secrets, like with like."""

import re
from dataclasses import dataclass

from moontap import yamlfile
from moontap.jsonpaths import JsonPath
from moontap.rules import fields

_SEPARATOR = re.compile(r"[\\/]")


@dataclass(frozen=True, slots=True)
class Scrub:
    """What is replaced.

    names: words, found as whole words in any case. paths: beginnings of file paths; they and
    what follows them up to the path's end. texts: patterns, the whole match is replaced.
    json_paths: every scalar below a selected value.
    """

    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    texts: tuple[re.Pattern[str], ...] = ()
    json_paths: tuple[JsonPath, ...] = ()


def read(node: yamlfile.Node) -> Scrub:
    """The section's value. Raises YamlError."""
    parts = node.members(known=("names", "paths", "texts", "json_paths"))
    return Scrub(
        tuple(_worded(item) for item in fields.items(parts.get("names"))),
        tuple(_beginning(item) for item in fields.items(parts.get("paths"))),
        tuple(fields.pattern(item) for item in fields.items(parts.get("texts"))),
        tuple(fields.json_path(item) for item in fields.items(parts.get("json_paths"))),
    )


def _worded(node: yamlfile.Node) -> str:
    """A text with a letter or a digit in it: nothing else has a likeness."""
    text = node.text().strip()
    if not any(character.isalnum() for character in text):
        raise node.error(
            f"'{node.name}' holds no letter and no digit; write what is to be replaced"
        )
    return text


def _beginning(node: yamlfile.Node) -> str:
    text = _worded(node)
    if not _SEPARATOR.search(text):
        raise node.error(
            f"'{text}' is not the beginning of a path, like /home/me; write it under scrub.names"
        )
    return text
