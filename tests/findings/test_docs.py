"""docs/findings.md says what the checks and the saved flows say."""

from __future__ import annotations

import re

import pytest

from moontap.findings.check import Check
from moontap.findings.registry import all_checks
from moontap.findings.types import Part, Party, Severity
from scripts.findings_lib import __main__ as script
from scripts.findings_lib.corpus import Corpus, Raised, raised
from scripts.findings_lib.page import BEGIN, page

CODES = [check.code for check in all_checks()]


def check(code: str, **more: str) -> Check:
    words = {"title": "It breaks", "explained": "Why.", "example": "{}", "remedy": "Mend it."}
    needs = Part.HISTORY | Part.TURNS
    return Check(
        code, needs, Severity.WARNING, Party.CLIENT, look=lambda turn: (), **(words | more)
    )


def test_it_is_current() -> None:
    text = script.PAGE.read_text(encoding="utf-8")
    assert script.wanted() == text, "run scripts/findings-docs"


@pytest.mark.parametrize("code", CODES)
def test_each_code_is_explained(code: str) -> None:
    """`Finding.link` goes to a heading; GitHub makes the anchor of it."""
    about = next(check for check in all_checks() if check.code == code)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", code)
    assert f"\n### {code}\n" in script.PAGE.read_text(encoding="utf-8")
    assert about.title
    assert not about.title.endswith(".")
    assert about.explained.strip()
    assert about.example.strip()
    assert about.remedy.strip().endswith((".", "`"))


def test_a_section() -> None:
    corpus = Corpus(
        {
            "loud": [Raised(2, "id-odd", Severity.WARNING), Raised(3, "x", Severity.ERROR)],
            "plain": [Raised(4, "id-odd", Severity.WARNING)],
        },
        {"id-odd": ["near"]},
    )
    made = page(f"# Head\n\n{BEGIN}\n\nold", [check("id-odd"), check("zzz")], corpus)
    assert made.startswith(f"# Head\n\n{BEGIN}\n\n| code |")
    assert "old" not in made
    assert made.index("## Ids") < made.index("### id-odd") < made.index("## More")
    assert "Severity: warning; most likely: client. Needs a request's messages and sev" in made
    assert "A flow that raises it: [plain](../flows/plain.yaml), in exchange 4 (in a che" in made
    assert "`moontap lint flows/plain.flow`). A near miss: [near](../flows/near.yaml)." in made
    assert page(made, [check("id-odd"), check("zzz")], corpus) == made


@pytest.mark.parametrize(
    ("expected", "codes"),
    [
        ("expect:\n  pairs: []\n", []),
        ("expect:\n  pairs: []\n  findings:\n  - '3: id-odd error api a\"b: c'\n", ["id-odd"]),
        ("expect:\n  findings:\n  - '3: a info api'\n  - '3: b info api \"\"'\n", ["a", "b"]),
    ],
)
def test_findings_of_a_sheet(expected: str, codes: list[str]) -> None:
    assert [one.code for one in raised(expected)] == codes
    assert {one.exchange for one in raised(expected)} <= {3}
