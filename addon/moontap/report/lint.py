"""What `moontap lint` shows: on a terminal, as JSON, as annotations of a GitHub workflow.

Examined inputs in, text out. Pure.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from moontap.evidence.examine import Examined, Located, Skipped
from moontap.findings import lines
from moontap.findings.types import Severity
from moontap.report.story.causes import causes
from moontap.report.text import plain, short

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_MOST = 3  # places of one cause
_LONG = 160
_MOST_ANNOTATIONS = 50  # of one input and severity: GitHub shows ten of a step and drops the rest


def report(one: Examined, *, full: bool = False) -> RenderableType:
    """An input: what it was taken for, what went wrong, causes before what came of them, and what
    was not checked. full: each place of each, each check that did not run.

    Damage and checks that failed are for stderr.
    """
    shown: list[RenderableType] = [_head(one)]
    for group in by_cause(one.findings):
        shown += _cause(group, full=full)
    shown += _each_not_checked(one.skipped) if full else _not_checked(one.skipped)
    return Group(*shown)


def by_cause(findings: Sequence[Located]) -> list[list[Located]]:
    """Findings of one code together, in the order of the evidence: the cause of the worst one,
    what came of it, then the same for what that does not explain."""
    groups: dict[str, list[Located]] = {}
    for one in findings:
        groups.setdefault(one.finding.code, []).append(one)
    order: list[str] = []
    left = [one.finding for one in findings]
    while left:
        found = causes(left)
        if found.root is None:
            by_number = sorted(found.info, key=lambda group: -len(group.findings))
            order += [group.code for group in by_number]
            break
        order += [found.root.code, *(group.code for group in found.effects)]
        left = [one for one in left if one.code not in order]
    return [groups[code] for code in order]


class _Line:
    """A line that keeps its indent where it is too long for the terminal. Elsewhere lines are
    whole, so that grep finds what stands in one."""

    def __init__(self, indent: int, text: Text) -> None:
        self.indent, self.text = indent, text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = max(options.max_width - self.indent, 20)
        lines = self.text.wrap(console, width) if console.is_terminal else [self.text]
        for line in lines:
            line.rstrip()
            yield Text(" " * self.indent).append_text(line)


def _head(one: Examined) -> Text:
    text = Text(plain(one.name), "bold")
    text.append(f": {one.kind.words}", "none")
    if one.exchanges > 1:
        text.append(f", {one.exchanges} exchanges", "none")
        if one.conversations > 1:
            text.append(f" in {one.conversations} conversations", "none")
    if not one.findings:
        text.append("; nothing found", "green" if not one.damage else "none")
    for note in one.notes:
        text.append(f"\n  ({plain(note)})", "dim")
    return text


def _cause(group: list[Located], *, full: bool) -> Iterator[_Line]:
    worst = max((one.finding for one in group), key=lambda one: one.severity.rank)
    head = Text(f"{worst.severity.value} ", _STYLES[worst.severity])
    head.append(worst.code, "bold")
    if len(group) > 1:
        head.append(f" ({len(group)} times)", "none")
    head.append(f"  likely: {worst.party.value}", "dim")
    yield _Line(2, head)
    shown = group if full else _examples(group)
    for one in shown:
        yield _Line(4, Text(f"{_place(one)}{plain(one.finding.message)}"))
        excerpt = one.finding.evidence.excerpt
        if excerpt and excerpt not in one.finding.message:
            yield _Line(6, Text(short(excerpt, _LONG), "dim"))
    if len(group) > len(shown):
        yield _Line(4, Text(f"and {len(group) - len(shown)} more (--all shows them)", "dim"))
    if worst.remedy:
        yield _Line(4, Text(f"do: {plain(worst.remedy)}"))
    yield _Line(4, Text(f"see {worst.link}", "dim"))


def _examples(group: list[Located]) -> list[Located]:
    """The worst few, in the order of the evidence: a loop is said from 3 times on, and the end of
    it tells more than its beginning."""
    worst = sorted(range(len(group)), key=lambda at: (-group[at].finding.severity.rank, at))
    return [group[at] for at in sorted(worst[:_MOST])]


def _place(one: Located) -> str:
    evidence, places = one.finding.evidence, []
    if one.line:
        places.append(f"line {one.line}")
    elif one.finding.flow:
        places.append(f"exchange {one.finding.exchange}")
    if evidence.message is not None:
        places.append(f"messages[{evidence.message}]")
    return f"{', '.join(places)}: " if places else ""


def _not_checked(skipped: Sequence[Skipped]) -> Iterator[_Line]:
    """In a line or two: nobody reads thirty codes."""
    needing = [one for one in skipped if one.lacks]
    off = [one.code for one in skipped if not one.lacks]
    if needing:
        lacks = list(dict.fromkeys(part for one in needing for part in one.lacks))
        many = f"{len(needing)} checks" if len(needing) > 1 else needing[0].code
        text = f"not checked: {many}, for want of {_listed(lacks)} (--all names them)"
        yield _Line(2, Text(text, "dim"))
    if off:
        yield _Line(2, Text(f"switched off in the rules: {', '.join(off)}", "dim"))


def _each_not_checked(skipped: Sequence[Skipped]) -> Iterator[_Line]:
    ordered = sorted(skipped, key=lambda one: one.why)
    for why, group in groupby(ordered, key=lambda one: one.why):
        codes = ", ".join(one.code for one in group)
        yield _Line(2, Text(f"not checked ({why}): {codes}", "dim"))


def _listed(words: Sequence[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def as_json(one: Examined) -> dict[str, Any]:
    """An input as `--json` gives it. findings: as in findings.jsonl, with file and line."""
    return {
        "file": one.name,
        "kind": one.kind.value,
        "taken_for": one.kind.words,
        "exchanges": one.exchanges,
        "conversations": one.conversations,
        "notes": one.notes,
        "findings": [_line(one, located) for located in one.findings],
        "not_run": [{"code": skipped.code, "why": skipped.why} for skipped in one.skipped],
        "damage": [
            {"what": damage.what, "line": damage.line, "byte": damage.byte} for damage in one.damage
        ],
        "faults": sorted(one.faults),
    }


def _line(one: Examined, located: Located) -> dict[str, Any]:
    line = lines.line(located.finding)
    if not one.flows:
        line["flow"] = None
    return {**line, "file": one.name, "line": located.line}


def annotations(one: Examined) -> Iterator[str]:
    """Lines that a GitHub workflow shows beside the file, causes first."""
    for group in by_cause(one.findings):
        for located in group[:_MOST_ANNOTATIONS]:
            finding = located.finding
            text = f"{finding.message} {finding.remedy}".strip() + f" ({finding.link})"
            yield _command(_COMMANDS[finding.severity], one.name, located.line, finding.code, text)
    for damage in one.damage:
        yield _command("warning", one.name, damage.line, "damaged", str(damage))


def _command(kind: str, file: str, line: int | None, title: str, message: str) -> str:
    """A workflow command. Source: GitHub's documentation of workflow commands, and the escapes of
    its `@actions/core`."""
    properties = [f"file={_property(file)}"]
    if line:
        properties.append(f"line={line}")
    properties.append(f"title={_property(title)}")
    return f"::{kind} {','.join(properties)}::{_data(message)}"


def _data(text: str) -> str:
    for mark in "%\r\n":
        text = text.replace(mark, f"%{ord(mark):02X}")
    return plain(text)


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
