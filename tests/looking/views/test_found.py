from __future__ import annotations

import pytest

from moontap.looking.facts import FindingFact
from moontap.looking.views.found import put_findings
from moontap.looking.views.page import WIDTH, Page
from tests.looking.views.asked import known


def found(code: str, severity: str = "error", message: str = "", *, sent: bool) -> FindingFact:
    return FindingFact(code, severity, message or f"It was {code}.", f"Mend {code}.", "x", sent)


def page_of(
    findings: list[FindingFact], *, of_request: bool = True, fold: int | None = 600
) -> list[str]:
    page = Page(fold)
    put_findings(page, findings, of_request=of_request)
    return str(page).splitlines()


@pytest.mark.parametrize(
    ("findings", "of_request", "lines"),
    [
        ([], True, []),
        (
            [known("info", "id-reused-in-response"), known("error", "id-reused")],
            True,
            [
                "findings:",
                "  error id-reused  # docs/findings.md#id-reused",
                "  info id-reused-in-response  # docs/findings.md#id-reused-in-response",
            ],
        ),
        (
            [found("slow", "info", sent=False), found("lost", sent=True)],
            True,
            [
                "findings:",
                "  error lost: It was lost.",
                "    do: Mend lost.",
                "findings of the reply: info slow (see Response)",
            ],
        ),
        (
            [found("lost", sent=True), found("lost", "warning", sent=True)],
            False,
            ["findings of the request: error lost ×2 (see Request)"],
        ),
        (
            [
                found("lost", "info", "The last.", sent=True),
                found("lost", "error", "The first.", sent=True),
                found("lost", "error", "The next.", sent=True),
            ],
            True,
            [
                "findings:",
                "  error lost ×3: The first.",
                "    do: Mend lost.",
                "    # 2 more of it: see Moontap-full",
            ],
        ),
    ],
)
def test_the_findings_of_a_page(
    findings: list[FindingFact], of_request: bool, lines: list[str]
) -> None:
    assert page_of(findings, of_request=of_request) == lines


def test_in_full_each_is_said_and_what_to_do_once() -> None:
    every = [found("lost", message=f"It was {n}.", sent=True) for n in range(3)]
    assert page_of(every, fold=None) == [
        "findings:",
        "  error lost: It was 0.",
        "    do: Mend lost.",
        "  error lost: It was 1.",
        "  error lost: It was 2.",
    ]


def test_sentences_are_wrapped_and_harmless() -> None:
    one = found("lost", message="word \x1b[2J\n" * 30, sent=True)
    lines = page_of([one])
    assert len(lines) > 5
    assert all(line.isprintable() and len(line) <= WIDTH for line in lines)
