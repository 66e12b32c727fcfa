"""The rules file: what else is secret, and how much is kept.

A path goes in, a checked `Rules` comes out. Nothing in the file is ignored: what is unknown or
wrong is an error that names the line and the remedy.
"""

import re
from dataclasses import dataclass, field

from moontap import yamlfile
from moontap.redact.jsonpaths import JsonPath, compile_path

RESULT_BYTES = 65536

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # token, RFC 9110 section 5.6.2


class RulesError(ValueError):
    """What is wrong with a rules file: one line, `file:line: what; remedy`."""


@dataclass(frozen=True, slots=True)
class Redact:
    """What is secret beside what always is.

    headers: header names in lower case. patterns: searched in decoded text, the whole match is
    masked. json_paths: every scalar below a selected value is masked.
    """

    headers: tuple[str, ...] = ()
    patterns: tuple[re.Pattern[str], ...] = ()
    json_paths: tuple[JsonPath, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """result_bytes: a longer tool result is cut in the pair log."""

    result_bytes: int = RESULT_BYTES


@dataclass(frozen=True, slots=True)
class Rules:
    """A whole rules file; `Rules()` is what holds without one."""

    redact: Redact = field(default_factory=Redact)
    limits: Limits = field(default_factory=Limits)

    @property
    def result_bytes(self) -> int:
        return self.limits.result_bytes


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


def _rules(root: yamlfile.Node) -> Rules:
    parts = root.members(known=("redact", "limits"))
    redact, limits = parts.get("redact"), parts.get("limits")
    return Rules(
        Redact() if redact is None or redact.is_null else _redact(redact),
        Limits() if limits is None or limits.is_null else _limits(limits),
    )


def _redact(node: yamlfile.Node) -> Redact:
    parts = node.members(known=("headers", "patterns", "json_paths"))
    return Redact(
        tuple(_header(item) for item in _items(parts.get("headers"))),
        tuple(_pattern(item) for item in _items(parts.get("patterns"))),
        tuple(_json_path(item) for item in _items(parts.get("json_paths"))),
    )


def _limits(node: yamlfile.Node) -> Limits:
    parts = node.members(known=("result_bytes",))
    limit = parts.get("result_bytes")
    return Limits(RESULT_BYTES if limit is None else limit.integer(minimum=0))


def _items(node: yamlfile.Node | None) -> list[yamlfile.Node]:
    return [] if node is None or node.is_null else node.items()


def _header(node: yamlfile.Node) -> str:
    name = node.text()
    if not _HEADER_NAME.fullmatch(name):
        raise node.error(f"'{name}' is not a header name; write the name only, without ':'")
    return name.lower()


def _pattern(node: yamlfile.Node) -> re.Pattern[str]:
    source = node.text()
    try:
        pattern = re.compile(source)
    except (re.error, OverflowError, RecursionError) as error:
        reason = error.msg if isinstance(error, re.error) else "too large"
        raise node.error(
            f"'{source}' is not a regular expression: {reason}; correct it "
            "(Python syntax, best in single quotes)"
        ) from None
    if pattern.fullmatch(""):
        raise node.error(f"'{source}' also matches nothing at all; make it match something")
    return pattern


def _json_path(node: yamlfile.Node) -> JsonPath:
    source = node.text()
    try:
        return compile_path(source)
    except ValueError as error:
        raise node.error(
            f"'{source}' is not a JSON path: {error}; correct it (RFC 9535, like $..password)"
        ) from None
