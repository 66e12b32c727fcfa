"""The section `progress`: what counts as doing the same again, and how often is too often."""

import fnmatch
import hashlib
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from moontap import canonical, yamlfile
from moontap.jsonpaths import JsonPath
from moontap.rules import fields

THRESHOLDS = (3, 5, 8, 12)
EXEMPT = ("$web_search",)


@dataclass(frozen=True, slots=True)
class Ignore:
    """What does not count. tool: a name, `*` in it stands for anything. arguments, results: paths
    into the JSON of either. patterns: their matches in the texts of both."""

    tool: str = "*"
    arguments: tuple[JsonPath, ...] = ()
    results: tuple[JsonPath, ...] = ()
    patterns: tuple[re.Pattern[str], ...] = ()


@dataclass(frozen=True, slots=True)
class ProgressRules:
    """thresholds: counts at which it is said, and said again; rising. ignore: what does not count.
    exempt: tools that may be called with the same arguments for ever, `*` as in `Ignore`."""

    thresholds: tuple[int, ...] = THRESHOLDS
    ignore: tuple[Ignore, ...] = ()
    exempt: frozenset[str] = frozenset(EXEMPT)

    def is_exempt(self, tool: str) -> bool:
        """Whether a tool does not count at all."""
        return any(fnmatch.fnmatchcase(tool, name) for name in self.exempt)

    def arguments(self, tool: str, text: bytes) -> bytes:
        """A digest of what counts in a call's arguments, a JSON text."""
        rules = self._rules(tool)
        return _digest(canonical.of_text(text), [(r.arguments, r.patterns) for r in rules])

    def result(self, tool: str, content: bytes) -> bytes:
        """A digest of what counts in a result, as raw JSON; `b""` where it has no content."""
        rules = self._rules(tool)
        return _digest(content, [(r.results, r.patterns) for r in rules])

    def _rules(self, tool: str) -> list[Ignore]:
        return [rule for rule in self.ignore if fnmatch.fnmatchcase(tool, rule.tool)]


def read(node: yamlfile.Node) -> ProgressRules:
    """The section's value. Raises YamlError."""
    parts = node.members(known=("thresholds", "ignore", "exempt"))
    thresholds = parts.get("thresholds")
    exempt = parts.get("exempt")
    return ProgressRules(
        thresholds=THRESHOLDS if thresholds is None else rising(thresholds),
        ignore=tuple(_ignore(item) for item in fields.items(parts.get("ignore"))),
        exempt=frozenset(EXEMPT if exempt is None else (i.text() for i in fields.items(exempt))),
    )


def rising(node: yamlfile.Node) -> tuple[int, ...]:
    """A list of whole numbers from 2 on, each greater than the one before."""
    numbers: list[int] = []
    for item in node.items():
        numbers.append(item.integer(minimum=2))
        if numbers[-2:] != sorted(set(numbers[-2:])):
            raise item.error(f"{numbers[-1]} does not rise; write them from the lowest on")
    if not numbers:
        raise node.error(f"'{node.name}' is empty; name one count at least, or leave it out")
    return tuple(numbers)


def _ignore(node: yamlfile.Node) -> Ignore:
    parts = node.members(known=("tool", "arguments", "results", "patterns"))
    tool = parts.get("tool")
    ignore = Ignore(
        tool.text() if tool is not None else "*",
        tuple(fields.json_path(item) for item in fields.items(parts.get("arguments"))),
        tuple(fields.json_path(item) for item in fields.items(parts.get("results"))),
        tuple(fields.pattern(item) for item in fields.items(parts.get("patterns"))),
    )
    if not (ignore.arguments or ignore.results or ignore.patterns):
        raise node.error(
            "this entry ignores nothing; say what with 'arguments', 'results' or 'patterns', or "
            "name the tool under 'exempt' to leave it out"
        )
    return ignore


def _digest(
    text: bytes, rules: Sequence[tuple[tuple[JsonPath, ...], tuple[re.Pattern[str], ...]]]
) -> bytes:
    if rules:
        with suppress(RecursionError):  # nested as no tool's is: it counts as it stands
            text = _without(text, rules)
    return hashlib.blake2b(text, digest_size=16).digest()


def _without(
    text: bytes, rules: Sequence[tuple[tuple[JsonPath, ...], tuple[re.Pattern[str], ...]]]
) -> bytes:
    """The text with what does not count left out, in canonical spelling."""
    value = _opened(canonical.parse(text))
    for paths, patterns in rules:
        value = _less(value, {place for path in paths for place in path.places(value)})
        value = _masked(value, patterns)
    return canonical.encode(value)


def _opened(value: object) -> object:
    """What a result that is one text holds, where that is JSON: tools speak so."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        block = value[0]
        value = block.get("text", value) if block.get("type") == "text" else value
    if not isinstance(value, str):
        return value
    inner = canonical.parse(value.encode("utf-8", "surrogatepass"))
    return inner if isinstance(inner, dict | list) else value


def _less(
    value: object, gone: set[tuple[str | int, ...]], here: tuple[str | int, ...] = ()
) -> object:
    """The value without what stands at these places."""
    if not gone:
        return value
    if here in gone:
        return None
    if isinstance(value, dict):
        kept = {name: (*here, name) for name in value if (*here, name) not in gone}
        return {name: _less(value[name], gone, place) for name, place in kept.items()}
    if isinstance(value, list):
        places = [(*here, n) for n in range(len(value))]
        return [
            _less(one, gone, place)
            for one, place in zip(value, places, strict=True)
            if place not in gone
        ]
    return value


def _masked(value: object, patterns: Sequence[re.Pattern[str]]) -> object:
    """The value, and of its texts only what no pattern matches."""
    if not patterns:
        return value
    if isinstance(value, dict):
        return {name: _masked(one, patterns) for name, one in value.items()}
    if isinstance(value, list):
        return [_masked(one, patterns) for one in value]
    if isinstance(value, str):
        for pattern in patterns:
            value = pattern.sub("", value)
    return value
