"""What a test asks of what went wrong.

Findings in (of a tap, a capture folder, a flow file, or lines); nothing out, or an AssertionError
that shows those in question. It never changes what it is given, but for a tap, whose run it ends.
"""

from collections.abc import Collection, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from moontap.findings.types import Severity
from moontap.report.text import many, plain, short
from moontap.testing.sources import Ends, Line, lines_of

LOG = "findings.jsonl"
"""The log of them in a capture folder; docs/findings.md names the fields of a line."""


class Finds(Ends, Protocol):
    """A tap that knows what went wrong in it."""

    @property
    def findings(self) -> list[dict[str, Any]]: ...

    @property
    def folder(self) -> Path | None: ...


type Source = Finds | Iterable[Line] | str | PathLike[str]
"""What has findings: a tap, lines, the path of a capture folder or of a flow file."""

_SEVERITIES = tuple(severity.value for severity in Severity)
_MOST = 10  # codes
_EXAMPLES = 3
_LONGEST = 200


def findings_of(source: Source) -> list[Line]:
    """The findings of a source. A tap's run ends with it.

    Of a flow file they are made anew. Raises FileNotFoundError, and `Unreadable` for a file that
    is none of flows.
    """
    return lines_of(source, lambda tap: tap.findings, LOG, _anew)


def assert_no_findings(
    source: Source, *, at_least: str = "warning", ignore: Collection[str] = ()
) -> None:
    """Nothing went wrong that moontap looks for.

    at_least: `info`, `warning` or `error`: what is less is let pass. ignore: codes that may be
    found. A tap that no request came through fails, too. Raises ValueError for a severity or code
    that there is not.
    """
    __tracebackhide__ = True
    _known(at_least, ignore)
    lines = findings_of(source)
    if not isinstance(source, str | PathLike | Iterable) and source.folder is None:
        raise AssertionError("no request came through the tap: the agent does not use its URL")
    least = _SEVERITIES.index(at_least)
    wrong = [
        line
        for line in lines
        if line["code"] not in ignore and _SEVERITIES.index(line["severity"]) >= least
    ]
    if wrong:
        raise AssertionError(shown(wrong, f"{many(len(wrong), 'finding')} of {at_least} or above"))


def shown(lines: Sequence[Line], title: str) -> str:
    """Findings for a person, those of one code together: how many, where, what, what to do."""
    groups: dict[str, list[Line]] = {}
    for line in lines:
        groups.setdefault(line["code"], []).append(line)
    said = [title]
    for code, group in list(groups.items())[:_MOST]:
        worst = max((line["severity"] for line in group), key=_SEVERITIES.index)
        times = f" ({len(group)} times)" if len(group) > 1 else ""
        said.append(f"{worst} {plain(code)}{times}")
        for line in group[:_EXAMPLES]:
            where = f"exchange {line['evidence'].get('exchange', '?')}"
            said.append(f"    {where}: {short(line['message'], _LONGEST)}")
        if (more := len(group) - _EXAMPLES) > 0:
            said.append(f"    and {more} more")
        if group[0]["remedy"]:
            said.append(f"    do: {short(group[0]['remedy'], _LONGEST)}")
    if (more := len(groups) - _MOST) > 0:
        said.append(f"and {more} more codes")
    return "\n".join(said)


def _known(at_least: str, ignore: Collection[str]) -> None:
    if at_least not in _SEVERITIES:
        raise ValueError(f"at_least is one of {', '.join(_SEVERITIES)}, not {at_least!r}")
    if isinstance(ignore, str):
        raise ValueError(f"ignore is a list of codes: [{ignore!r}]")
    if ignore:
        from moontap.findings.codes import codes

        if unknown := sorted(set(ignore) - set(codes())):
            raise ValueError(f"ignore: no finding is called {', '.join(unknown)}")


def _anew(path: Path) -> list[Line]:
    # mitmproxy, which reads flow files, is slow to import: not for a test that reads none.
    from moontap.testing.flows import findings

    return list[Line](findings(path))
