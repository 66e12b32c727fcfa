"""The YAML beside a flow file: what the flow shows, and what must come of it.

`flows/x.yaml` in, a `Sheet` out; and the other way round, its last part anew. What stands before
`expect:` is a person's, and is never changed here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from moontap import yamlfile
from moontap.yamlfile import Node, YamlError

type Expectation = Mapping[str, Any]
"""`{"exchanges": […], "pairs": […], "findings": […]}`, as `outcome` makes it; without the last
where nothing was found."""

NEEDED = ("shows", "topics", "report", "made", "options")
KNOWN = (*NEEDED, "raises", "near_miss")
OPTIONS = ("moontap_rewrite", "moontap_id_style", "moontap_hosts")
NONE_KNOWN = "none known"
_EXCHANGE = (
    "number",
    "request",
    "protocol",
    "unread",
    "status",
    "streamed",
    "calls",
    "rewritten",
    "healed",
    "incomplete",
    "request_sha256",
    "delivered_sha256",
)
_PAIR = (
    "status",
    "tool",
    "id",
    "upstream_id",
    "duplicate",
    "source",
    "session",
    "agent",
    "arguments",
    "arguments_sha256",
    "result",
    "result_sha256",
    "call",
    "answered",
)
_SKELETON = """\
# Say in one sentence what the flow shows, then run the tests again.
shows: ''
# What it covers; tests/golden/topics.py lists the words.
topics: []
# The public report it stands for: a list of {link: …, fact: …}, or: none known
report: none known
# How it was made, and what of it was shaped by hand.
made: ''
options:
  moontap_rewrite: '%s'
"""


@dataclass(frozen=True)
class Sheet:
    """shows, made: prose. topics: of `topics.TOPICS`. report: links and facts; empty where none
    is known. options: of the addon, for the replay. raises: codes of findings that the times
    raise with which it was recorded, or the guard; a replay takes others, and none. near_miss:
    codes that it comes near to and does not have. expected: the text from `expect:` on, empty where
    it was never written."""

    path: Path
    shown: str
    shows: str
    topics: tuple[str, ...]
    report: tuple[tuple[str, str], ...]
    made: str
    options: dict[str, str]
    raises: tuple[str, ...]
    near_miss: tuple[str, ...]
    expected: str
    line: int

    @property
    def expect(self) -> Expectation | None:
        """What the text says. Raises YamlError. Not for what can be told by the text: it takes
        longer than replaying a flow."""
        # The lines before it stay, so that a complaint names the right one.
        root = yamlfile.parse("\n" * self.line + self.expected, self.shown)
        return _expect(root.members(("expect",))["expect"]) if root else None


def path_of(flow: Path) -> Path:
    """Where the sheet of a flow file is, or should be."""
    return flow.with_suffix(".yaml")


def read(path: Path, shown: str) -> Sheet:
    """Read a sheet. shown: its name in messages. Raises YamlError: file, line, remedy."""
    human, expected = _parted(path)
    root = yamlfile.parse(human, shown)
    if root is None:
        raise YamlError(f"{shown}:1: is empty; delete it, and have it written anew")
    parts = root.members(KNOWN, needs=NEEDED)
    return Sheet(
        path=path,
        shown=shown,
        shows=_filled(parts["shows"]),
        topics=_words(parts["topics"]),
        report=_report(parts["report"]),
        made=_filled(parts["made"]),
        options={key: node.text() for key, node in parts["options"].members(OPTIONS).items()},
        raises=_words(parts.get("raises")),
        near_miss=_words(parts.get("near_miss")),
        expected=expected,
        line=human.count("\n"),
    )


def write(path: Path, expect: Expectation, rewritten: bool) -> None:
    """Put an expectation into a sheet; where there is none yet, into a skeleton of one.

    rewritten: whether the flow holds rewritten ids, for the skeleton.
    """
    if path.exists():
        before = _parted(path)[0].rstrip("\n") + "\n"
    else:
        before = _SKELETON % ("all" if rewritten else "off")
    path.write_text(before + dump(expect), encoding="utf-8")


def dump(expect: Expectation) -> str:
    """An expectation as the lines that stand in a sheet, from `expect:` on."""
    text: str = yaml.safe_dump(
        {"expect": expect},
        sort_keys=False,
        allow_unicode=True,
        width=10_000,
        default_flow_style=False,
    )
    return text


def _parted(path: Path) -> tuple[str, str]:
    """A person's part of a sheet, and the rest."""
    human, mark, rest = f"\n{path.read_text(encoding='utf-8')}".partition("\nexpect:")
    return human[1:] + ("\n" if mark else ""), mark[1:] + rest


def _filled(node: Node) -> str:
    text = node.text()
    if not text.strip():
        raise node.error(f"'{node.name}' is empty; write a sentence")
    return text


def _words(node: Node | None) -> tuple[str, ...]:
    return tuple(item.text() for item in node.items()) if node else ()


def _report(node: Node) -> tuple[tuple[str, str], ...]:
    if not node.is_list:
        if node.text() != NONE_KNOWN:
            raise node.error(f"'{node.name}' is a list of links and facts, or: {NONE_KNOWN}")
        return ()
    found = []
    for item in node.items():
        parts = item.members(("link", "fact"), needs=("link", "fact"))
        found.append((_filled(parts["link"]), _filled(parts["fact"])))
    return tuple(found)


def _expect(node: Node) -> Expectation:
    parts = node.members(("exchanges", "pairs", "findings"), needs=("exchanges", "pairs"))
    for name, known in (("exchanges", _EXCHANGE), ("pairs", _PAIR)):
        for item in parts[name].items():
            item.members(known)
    value: Expectation = node.json()
    return value
