"""What `moontap lint` shows: on a terminal, as JSON, as annotations of a GitHub workflow.

Examined inputs in, text out. Pure.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from moontap.evidence.examine import Examined, Located, Skipped
from moontap.findings import lines
from moontap.findings.types import Severity
from moontap.report.text import plain, short

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_MOST = 5  # places of one cause
_LONG = 160
_MOST_ANNOTATIONS = 50  # of one input and severity: GitHub shows ten of a step and drops the rest


def report(one: Examined) -> RenderableType:
    """An input: what it was taken for, what went wrong, worst first, what was not checked.

    Damage and checks that failed are for stderr.
    """
    shown: list[RenderableType] = [_head(one)]
    for group in by_cause(one.findings):
        shown += _cause(group)
    shown += _not_checked(one.skipped)
    return Group(*shown)


def by_cause(findings: Sequence[Located]) -> list[list[Located]]:
    """Findings of one code together, the worst and then the most frequent first."""
    ordered = sorted(findings, key=lambda one: one.finding.code)
    groups = [list(group) for _, group in groupby(ordered, key=lambda one: one.finding.code)]
    for group in groups:
        group.sort(key=lambda one: -one.finding.severity.rank)
    return sorted(groups, key=lambda group: (-group[0].finding.severity.rank, -len(group)))


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


def _cause(group: list[Located]) -> Iterator[Text]:
    worst = group[0].finding
    head = Text(f"  {worst.severity.value} ", _STYLES[worst.severity])
    head.append(worst.code, "bold")
    if len(group) > 1:
        head.append(f" ({len(group)} times)", "none")
    head.append(f"  likely: {worst.party.value}", "dim")
    yield head
    for one in group[:_MOST]:
        text = Text(f"    {_place(one)}{plain(one.finding.message)}")
        if one.finding.evidence.excerpt:
            text.append(f"\n      {short(one.finding.evidence.excerpt, _LONG)}", "dim")
        yield text
    if len(group) > _MOST:
        yield Text(f"    and {len(group) - _MOST} more (--json has them all)", "dim")
    if worst.remedy:
        yield Text(f"    do: {plain(worst.remedy)}")
    yield Text(f"    see {worst.link}", "dim")


def _place(one: Located) -> str:
    evidence, places = one.finding.evidence, []
    if one.line:
        places.append(f"line {one.line}")
    elif one.finding.flow:
        places.append(f"exchange {one.finding.exchange}")
    if evidence.message is not None:
        places.append(f"messages[{evidence.message}]")
    return f"{', '.join(places)}: " if places else ""


def _not_checked(skipped: Sequence[Skipped]) -> Iterator[Text]:
    ordered = sorted(skipped, key=lambda one: one.why)
    for why, group in groupby(ordered, key=lambda one: one.why):
        codes = ", ".join(one.code for one in group)
        yield Text(f"  not checked ({why}): {codes}", "dim")


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
    """Lines that a GitHub workflow shows beside the file, worst first."""
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
