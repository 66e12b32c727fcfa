from __future__ import annotations

import json

from moontap.findings.bounds import bounded
from moontap.findings.judge import MOST_ALIKE
from moontap.findings.lines import line
from moontap.findings.types import Evidence, Found, Severity
from tests.findings.rig import Ex, found, message, result, said, use, user
from tests.findings.test_judge import check, judge, turn

LONG = "x" * 3_000_000


def test_whatever_is_long_is_cut() -> None:
    facts = {"a": LONG, "b": [LONG] * 500, "c": {"d": LONG}, "n": 7, "none": None}
    ids = (LONG, None, "", *["short"] * 500)
    evidence = Evidence(message=3, ids=ids, excerpt=LONG, facts=facts)
    small = bounded(Found(LONG, about="it", evidence=evidence))
    assert len(json.dumps([small.message, small.evidence.ids, small.evidence.facts])) < 40_000
    assert small.evidence.ids[1:4] == (None, "", "short")
    assert (small.about, small.evidence.message) == ("it", 3)
    assert (small.evidence.facts["n"], small.evidence.facts["none"]) == (7, None)
    assert small.message.endswith("x…")


def test_what_is_short_stays_as_it_is() -> None:
    one = Found("saw it", evidence=Evidence(ids=("a", None), facts={"tools": ["b"]}))
    assert bounded(one) == one


def test_a_name_of_megabytes_leaves_the_sentence_readable() -> None:
    tools = {"tools": [{"name": "read", "input_schema": {"type": "object"}}]}
    (finding,) = found("tool-undeclared", Ex([user("go")], message(use(name=LONG)), tools))
    assert finding.message.endswith("…, which the request does not declare.")
    history = [user("go"), said("hm"), user(result(LONG))]
    (finding,) = found("result-orphan", Ex(history))
    assert "names a call that" in finding.message
    assert len(json.dumps(line(finding))) < 2000


def test_a_turn_finds_so_many_of_a_kind_and_counts_the_others() -> None:
    def look(_: object) -> list[Found]:
        many = [Found(f"saw {n}", about=n) for n in range(MOST_ALIKE + 7)]
        return [*many, Found("worse", about="worse", severity=Severity.ERROR)]

    looks = judge(check("a", look))
    *some, last, worse = looks.look(turn())
    assert len(some) == MOST_ALIKE - 1
    assert not any("more" in one.evidence.facts for one in some)
    assert last.evidence.facts["more"] == 7
    assert last.message == (
        f"saw {MOST_ALIKE - 1}. 7 more of this kind in the same exchange are only counted."
    )
    assert worse.severity is Severity.ERROR
    assert looks.look(turn(2)) == []  # they are known
