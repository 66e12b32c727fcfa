"""What a check is. Plain data."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from moontap.findings.turn import Turn
from moontap.findings.types import Found, Part, Party, Severity


@dataclass(frozen=True, slots=True)
class Check:
    """One check: what it is called, and the function that looks.

    code: stable, kebab-case. needs: what there must be in a turn. severity, party, remedy: as
    long as a `Found` says nothing else. title: a headline. explained: what it means and why it
    happens, a paragraph or two of Markdown for docs/findings.md. example: what it looks like on
    the wire, shortened. look: pure; gives what it found in a turn.
    """

    code: str
    needs: Part
    severity: Severity
    party: Party
    title: str
    explained: str
    example: str
    remedy: str
    look: Callable[[Turn], Iterable[Found]]
