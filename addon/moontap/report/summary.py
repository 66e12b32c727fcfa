"""The lines that end a run.

Counts, troubles and places in, lines of text out. Pure: it opens and prints nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from moontap.report.text import many

MOST_TROUBLES = 12

# Named only where they are not zero: in most runs there are none.
_RARE = {
    "orphans": "without their call",
    "healed": "healed",
    "incomplete": "broken off",
    "lost": "RECORDS LOST",
}

_SILENT = "no request came through the tap"
_NO_REQUEST_YET = (
    "  it stopped before its first request: no key? ANTHROPIC_AUTH_TOKEN=… ANTHROPIC_MODEL=kimi-k3"
)
_SETTINGS = "  Claude Code: `env` in its settings.json wins over the environment; go around it:"
_BASE_URL = "  SDK programs: base_url=… in the code wins over the environment; take it out"

LONG_S = 2.0
"""Seconds from which a command that failed had the time for a request."""
# Not found or not executable, and SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, as a shell has them.
_CRASHED = {126, 127, *(128 + number for number in (4, 6, 7, 8, 11))}
_DIRECT = "the tap connects to its upstream directly: HTTP_PROXY and HTTPS_PROXY are not used"


class Counted(Protocol):
    """The counts of a run: `moontap.capture.recorder.Counts`."""

    exchanges: int
    calls: int
    duplicates: int
    rewritten: int
    pairs: int
    unanswered: int
    orphans: int
    healed: int
    incomplete: int
    lost: int

    @property
    def findings(self) -> Mapping[str, int]: ...


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that is over.

    capture: its folder, as a person would type it; None where nothing was written. keeps: whether
    a folder was wanted. look, explain: the commands that show the capture, and say what went wrong
    in it. rewrite: the mode it ran in.
    behind_proxy: upstream was not reached, and the environment names a forward proxy.
    code, seconds: how the command ended and how long it ran; None where there was none.
    remedy: the command that helps where Claude Code's settings win.
    """

    counts: Counted
    rewrite: str
    capture: str | None = None
    keeps: bool = True
    look: str = ""
    explain: str = ""
    troubles: Mapping[str, int] = field(default_factory=dict)
    behind_proxy: bool = False
    code: int | None = None
    seconds: float = 0.0
    remedy: str = ""


def summary(run: Ended) -> list[str]:
    """What to say about a run, the troubles first: the last line on a screen is what is read."""
    lines = _troubles(run.troubles)
    if run.behind_proxy:
        lines.append(_DIRECT)
    if not run.counts.exchanges:
        return [*lines, *_silent(run)]
    lines.append(_counts(run.counts))
    if run.capture:
        lines.append(f"capture: {run.capture}")
        lines.append(f"look at it: {run.look}")
    elif not run.keeps:
        lines.append("nothing was kept on disk, as asked")
    if found := run.counts.findings:
        codes = ", ".join(f"{code} ×{n}" if n > 1 else code for code, n in sorted(found.items()))
        lines.append(f"found: {codes}" + (f"; why: {run.explain}" if run.explain else ""))
    if run.counts.unanswered and run.rewrite == "off":
        lines.append("calls went unanswered; with --rewrite all their ids become unique")
    return lines


def _silent(run: Ended) -> list[str]:
    """That nothing came, and what may be the cause where the command could have asked."""
    if run.code is None:
        return [_SILENT]
    said = f"{_SILENT} (the command ended with code {run.code} after {run.seconds:.1f} s)"
    if run.code in _CRASHED or (run.code and run.seconds < LONG_S):
        return [said]
    return [said, _NO_REQUEST_YET, _SETTINGS, f"    {run.remedy}", _BASE_URL]


def _counts(counts: Counted) -> str:
    said = [
        many(counts.calls, "call"),
        many(counts.pairs, "pair"),
        *([f"{counts.duplicates} with an id used before"] if counts.duplicates else []),
        f"{counts.rewritten} rewritten",
        f"{counts.unanswered} unanswered",
    ]
    said += [f"{value} {word}" for name, word in _RARE.items() if (value := getattr(counts, name))]
    return f"{', '.join(said)} in {many(counts.exchanges, 'request')}"


def _troubles(troubles: Mapping[str, int]) -> list[str]:
    lines = [
        f"warning: {text}" + (f" ({count} times)" if count > 1 else "")
        for text, count in troubles.items()
    ]
    if len(lines) > MOST_TROUBLES:
        left = len(lines) - MOST_TROUBLES
        lines = [*lines[:MOST_TROUBLES], f"warning: and {left} more of other kinds"]
    return lines
