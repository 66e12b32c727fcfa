from __future__ import annotations

import pytest

from moontap.findings.types import Evidence, Severity
from moontap.report.story.causes import causes
from tests.report.story.telling import finding

INFO, WARNING, ERROR = Severity


CUT = ("stream-cut", ["call-truncated"], list[str]())


@pytest.mark.parametrize(
    ("findings", "root", "effects", "others"),
    [
        ([], None, [], []),
        ([("id-reused", 2, INFO)], None, [], []),
        ([("id-reused", 2, ERROR)], "id-reused", [], []),
        # The baseline: each thing comes of the one before.
        (
            [
                ("id-reused", 2, ERROR),
                ("empty-user-turn", 3, WARNING),
                ("pair-dropped-by-client", 3, WARNING),
                ("no-progress", 6, INFO),
                ("no-progress", 9, ERROR),
            ],
            "id-reused",
            ["pair-dropped-by-client", "empty-user-turn", "no-progress"],
            [],
        ),
        # Where the ids were made unique, what is known of them explains nothing.
        (
            [("id-reused", 2, INFO), ("no-progress", 9, ERROR)],
            "no-progress",
            [],
            [],
        ),
        # A cause comes first.
        ([("no-progress", 3, ERROR), ("id-reused", 4, WARNING)], "no-progress", [], ["id-reused"]),
        ([("stream-slow", 1, WARNING), ("id-reused", 2, ERROR)], "id-reused", [], ["stream-slow"]),
        ([("stream-slow", 1, WARNING), ("id-odd", 2, WARNING)], "stream-slow", [], ["id-odd"]),
        ([("stream-cut", 3, WARNING), ("call-truncated", 3, ERROR)], *CUT),
        # One that nobody has heard of.
        ([("brand-new", 1, ERROR), ("no-progress", 2, ERROR)], "brand-new", [], ["no-progress"]),
    ],
)
def test_what_began_it(
    findings: list[tuple[str, int, Severity]],
    root: str | None,
    effects: list[str],
    others: list[str],
) -> None:
    found = causes([finding(*one) for one in findings])
    assert (found.root.code if found.root else None) == root
    assert [group.code for group in found.effects] == effects
    assert [group.code for group in found.others] == others
    infos = {code for code, _, severity in findings if severity is INFO}
    wrong = {code for code, _, severity in findings if severity is not INFO}
    assert {group.code for group in found.info} == infos - wrong


def test_of_a_code_the_first_says_where_and_the_worst_how_bad() -> None:
    found = causes([finding("no-progress", 3), finding("no-progress", 8, ERROR)])
    assert found.root
    assert (found.root.first.exchange, found.root.last.exchange) == (3, 8)
    assert found.root.worst is ERROR


@pytest.mark.parametrize(
    ("reason", "root"),
    [
        ("id-duplicated", "id-reused"),
        ("reasoning-missing", "reasoning-dropped"),
        ("message-empty", "id-reused"),  # by way of the pair that left the turn empty
        ("overloaded", "api-refused"),
        ("quota", "api-refused"),
        (None, "api-refused"),
    ],
)
def test_a_refusal_comes_of_what_it_names(reason: str | None, root: str) -> None:
    refused = finding("api-refused", 4, ERROR, evidence=Evidence(facts={"reason": reason}))
    before = ["id-reused", "reasoning-dropped", "pair-dropped-by-client", "empty-user-turn"]
    found = causes([*(finding(code, 2) for code in before), refused])
    assert found.root
    assert found.root.code == root
