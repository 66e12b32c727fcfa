"""What the sections of a rules file have in common: lists, header names, patterns, JSON paths.

A YAML node in, a checked value out; what is wrong is a YamlError that names the line.
"""

import re
from collections.abc import Collection

from moontap import yamlfile
from moontap.jsonpaths import JsonPath, compile_path

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # token, RFC 9110 section 5.6.2


def items(node: yamlfile.Node | None) -> list[yamlfile.Node]:
    """The items of a list that may be missing or null."""
    return [] if node is None or node.is_null else node.items()


def members(
    node: yamlfile.Node | None, known: Collection[str] | None = None
) -> dict[str, yamlfile.Node]:
    """The keys and values of a part that may be missing or null."""
    return {} if node is None or node.is_null else node.members(known)


def header(node: yamlfile.Node) -> str:
    """A header name, in lower case."""
    name = node.text()
    if not _HEADER_NAME.fullmatch(name):
        raise node.error(f"'{name}' is not a header name; write the name only, without ':'")
    return name.lower()


def pattern(node: yamlfile.Node) -> re.Pattern[str]:
    """A regular expression that matches something."""
    source = node.text()
    try:
        compiled = re.compile(source)
    except (re.error, OverflowError, RecursionError) as error:
        reason = error.msg if isinstance(error, re.error) else "too large"
        raise node.error(
            f"'{source}' is not a regular expression: {reason}; correct it "
            "(Python syntax, best in single quotes)"
        ) from None
    if compiled.fullmatch(""):
        raise node.error(f"'{source}' also matches nothing at all; make it match something")
    return compiled


def json_path(node: yamlfile.Node) -> JsonPath:
    """A JSON path, RFC 9535."""
    source = node.text()
    try:
        return compile_path(source)
    except ValueError as error:
        raise node.error(
            f"'{source}' is not a JSON path: {error}; correct it (RFC 9535, like $..password)"
        ) from None
