"""What was found in an exchange, for a person: what is the matter, and what to do.

Findings in, lines on a page out: those of the page's own side in full, the others by name. Pure.
"""

from collections.abc import Iterable, Sequence

from moontap.findings.types import Severity
from moontap.looking.facts import FindingFact
from moontap.looking.views.page import FULL, Page
from moontap.looking.views.words import filled


def put_findings(page: Page, findings: Sequence[FindingFact], *, of_request: bool) -> None:
    """`findings:`, the worst first, each code once; in full each finding, what to do once. Where
    only codes are known, where they are explained. of_request: which side the page shows."""
    ranked = sorted(findings, key=lambda one: Severity(one.severity).rank, reverse=True)
    mine = [one for one in ranked if one.of_request in (of_request, None)]
    others = [one for one in ranked if one.of_request is (not of_request)]
    if mine:
        page.line("findings:")
    with page.under():
        for same in _by_code(mine):
            _put(page, same)
    if others:
        where, tab = ("reply", "Response") if of_request else ("request", "Request")
        lead = f"findings of the {where}: "
        words = [_named(same) for same in _by_code(others)]
        words[0] = lead + words[0]
        words[-1] += f" (see {tab})"
        for number, line in enumerate(filled(words, page.room - 2)):
            page.line(f"  {line}" if number else line)


def _by_code(ranked: Iterable[FindingFact]) -> Iterable[list[FindingFact]]:
    codes: dict[str, list[FindingFact]] = {}
    for one in ranked:
        codes.setdefault(one.code, []).append(one)
    return codes.values()


def _put(page: Page, same: Sequence[FindingFact]) -> None:
    """The findings of one code. Folded, the first stands for all."""
    if not same[0].message:
        page.line(f"{_named(same)}  # {same[0].link}")
        return
    shown = same if page.fold is None else same[:1]
    told = set[str]()
    for one in shown:
        page.prose(_named(same if len(shown) == 1 else [one]), one.message)
        with page.under():
            if one.remedy and one.remedy not in told:
                told.add(one.remedy)
                page.prose("do", one.remedy)
    if more := len(same) - len(shown):
        with page.under():
            page.line(f"# {more:,} more of it: {FULL}")


def _named(same: Sequence[FindingFact]) -> str:
    count = f" ×{len(same):,}" if len(same) > 1 else ""
    return f"{same[0].severity} {same[0].code}{count}"
