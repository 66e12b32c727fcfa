"""The words that exchanges are found by: each is one of `key=value`, whatever the wire held."""

from __future__ import annotations

import pytest

from moontap.looking.facts import CallFact, Facts, FindingFact
from moontap.looking.labels import answers_of, findings_of, labels_of


def found(severity: str, code: str) -> FindingFact:
    return FindingFact(code, severity, "", "", "")


FULL = Facts(
    conversation=3,
    session="s 1",
    agent="a-7",
    model="kimi-k3",
    calls=[
        CallFact("Bash", "Bash_0_tq4k2xw7m3a", "Bash_0", True, "ok", 0.42),
        CallFact("Bash", "Bash_1", "Bash_1", False, "unanswered"),
        CallFact("Read", None, None, False, "error", 2.0),
    ],
    findings=[found("info", "id-changed"), found("error", "id-reused"), found("info", "id-reused")],
    stop="tool_use",
)

CASES: list[tuple[Facts, str]] = [
    (Facts(), ""),
    (
        FULL,
        "tool=Bash; tool=Read; id=Bash_0; id=Bash_0_tq4k2xw7m3a; id=Bash_1; session=s_1; "
        "agent=a-7; model=kimi-k3; conversation=3; finding=id-reused; finding=id-changed; "
        "severity=error; rewritten=1; pairs=2; failed=1; unanswered=1; reused=1; stop=tool_use;",
    ),
    (Facts(streaming=True), "streaming=yes;"),
    (Facts(asked=True), "waiting=yes;"),
    (Facts(coming=True), ""),
    (Facts(number=2, conversation=1), "exchange=2; conversation=1;"),
    (Facts(calls=[CallFact("a", "x", "x")] * 999), "tool=a; id=x;"),
    (Facts(healed=2, reminded=True), "healed=2; guard=reminded;"),
    (Facts(blocked="blocked_limit", error="x"), "error=x; guard=blocked_limit;"),
    (Facts(cut=True), "ended=cut;"),
    (Facts(cut=True, left=True), "ended=left;"),
    (Facts(cut=True, killed=True), "ended=killed;"),
    (Facts(unfinished=True), "ended=unfinished;"),
    (Facts(orphans=[{}]), "orphans=1;"),
    (Facts(calls=[CallFact("", "", "")]), "tool=;"),
    (Facts(session="a;\nid=x\x1b\u2028"), "session=a__id=x__;"),
    (Facts(model="m" * 999), "model=" + "m" * 200 + ";"),
]


@pytest.mark.parametrize(("facts", "said"), CASES)
def test_labels(facts: Facts, said: str) -> None:
    assert labels_of(facts) == said


def test_of_very_many_calls_the_first_are_named() -> None:
    calls = [CallFact(f"t{n}", f"new{n}", f"old{n}", answer="ok") for n in range(1000)]
    said = labels_of(Facts(calls=calls)).split()
    assert [word.partition("=")[0] for word in said] == [
        *["tool"] * 200,
        *["id"] * 200,
        *("more", "rewritten", "pairs"),
    ]
    assert said[199:201] == ["tool=t199;", "id=old0;"]
    assert said[400] == f"more={800 + 1800};"
    assert len(answers_of(Facts(calls=calls))) == 200


def test_findings_the_worst_first_and_each_once() -> None:
    assert findings_of(FULL) == "error id-reused, info id-changed"
    assert findings_of(Facts()) == ""


def test_answers_by_the_id_that_the_client_has() -> None:
    assert answers_of(FULL) == [["Bash_0_tq4k2xw7m3a", "ok in 0.4 s"], ["Bash_1", "unanswered"]]
    assert answers_of(Facts(calls=[CallFact("Bash", "Bash_0", "Bash_0")])) == []
