"""What the column of comments says, in words that a stranger understands at first sight."""

from __future__ import annotations

import pytest

from moontap.looking.comment import ERROR_MARK, WARNING_MARK, comment_of, mark_of, tools_of
from moontap.looking.facts import CallFact, Facts, FindingFact


def call(
    tool: str = "Bash",
    answer: str | None = None,
    seconds: float | None = None,
    *,
    id_: str | None = "Bash_0",
    upstream_id: str | None = "Bash_0",
) -> CallFact:
    return CallFact(tool, id_, upstream_id, answer=answer, latency_s=seconds)


def finding(severity: str, code: str) -> FindingFact:
    return FindingFact(code, severity, "It went wrong.", "Mend it.", f"docs/findings.md#{code}")


OK = call(answer="ok", seconds=0.42)
LOST = call(answer="unanswered")
FAILED = call(answer="error", seconds=1.0)
NEW_ID = call(answer="ok", seconds=0.42, id_="Bash_0_tq4k2xw7m3a")
CURED = CallFact("Bash", "Bash_0_t5", "Bash_0", duplicate=True, answer="ok", latency_s=0.1)
REUSED = finding("error", "id-reused")
SLOW = finding("warning", "stream-slow")
NOTED = finding("info", "id-changed")

CASES: list[tuple[Facts, str]] = [
    # under way
    (Facts(asked=True), "waiting for the reply"),
    (Facts(coming=True), ""),
    (Facts(streaming=True), "streaming"),
    (Facts(streaming=True, calls=[call(), call()]), "streaming: Bash ×2"),
    (Facts(streaming=True, calls=[call()], error="overloaded_error"),
     "streaming: Bash · overloaded_error"),
    # calls and their answers
    (Facts(calls=[call()], stop="tool_use"), "Bash · no result yet"),
    (Facts(calls=[OK, OK], stop="tool_use"), "Bash ×2 · answered in 0.4 s"),
    (Facts(calls=[OK, call(), call("Read")]), "Bash ×2, Read · 1 of 3 answered"),
    (Facts(calls=[OK, FAILED]), "Bash ×2 · answered in 1.0 s, 1 failed"),
    (Facts(calls=[FAILED]), "Bash · failed in 1.0 s"),
    (Facts(calls=[call(answer="ok")]), "Bash · answered"),
    (Facts(calls=[LOST]), "Bash · unanswered"),
    (Facts(calls=[LOST, LOST], findings=[REUSED]), "Bash ×2 · 2 unanswered · id-reused"),
    (Facts(calls=[OK, LOST]), "Bash ×2 · 1 unanswered"),
    (Facts(calls=[NEW_ID]), "Bash · answered in 0.4 s · 1 id rewritten"),
    (Facts(calls=[NEW_ID, NEW_ID], healed=1),
     "Bash ×2 · answered in 0.4 s · 2 ids rewritten · 1 old id rewritten"),
    (Facts(calls=[OK], stop="max_tokens"), "Bash · answered in 0.4 s · max_tokens"),
    (Facts(calls=[NEW_ID, CURED]), "Bash ×2 · answered in 0.4 s · 2 ids rewritten, 1 reused"),
    # no calls
    (Facts(status=200, stop="end_turn"), "only text · end_turn"),
    (Facts(status=200), "only text"),
    (Facts(status=200, findings=[finding("warning", "reply-empty")]), "empty"),
    # errors and ends
    (Facts(status=529, error="overloaded_error"), "overloaded_error"),
    (Facts(status=504), "HTTP 504"),
    (Facts(status=401, error="bad_key", findings=[finding("error", "api-refused")]), "bad_key"),
    (Facts(status=200, cut=True), "broke off"),
    (Facts(status=200, cut=True, calls=[call()], findings=[finding("warning", "stream-cut")]),
     "broke off · Bash"),
    (Facts(cut=True), "no reply"),
    (Facts(status=200, cut=True, left=True), "client left"),
    (Facts(status=200, cut=True, killed=True), "killed"),
    (Facts(status=200, unfinished=True), "not finished"),
    # the guard
    (Facts(blocked="blocked_no_progress", status=423, error="x"), "blocked: no progress"),
    (Facts(reminded=True, calls=[OK]), "reminded · Bash · answered in 0.4 s"),
    # findings: what is but good to know is not said, the worst comes first, two are named
    (Facts(calls=[OK], findings=[NOTED]), "Bash · answered in 0.4 s"),
    (Facts(calls=[OK], findings=[SLOW, REUSED]),
     "Bash · id-reused · stream-slow · answered in 0.4 s"),
    (Facts(calls=[OK], findings=[SLOW, REUSED, finding("error", "id-empty")]),
     "Bash · id-reused · id-empty · 1 more · answered in 0.4 s"),
    (Facts(status=200, orphans=[{}, {}]), "only text · 2 results without a call"),
    (Facts(status=200, orphans=[{}], findings=[finding("error", "result-orphan")]),
     "only text · result-orphan"),
    # hostile
    (Facts(calls=[call("\x1b[2J\n")]), r"\x1b[2J\n · no result yet"),
    (Facts(calls=[call("x" * 90)]), "x" * 27 + "… · no result yet"),
    (Facts(calls=[call("")]), "a call · no result yet"),
    (Facts(status=400, error="\x07" * 3), r"\x07\x07\x07"),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "said"), CASES, ids=[said for _, said in CASES])
def test_what_it_says(facts: Facts, said: str) -> None:
    assert comment_of(facts) == said


@pytest.mark.parametrize(
    ("findings", "mark"),
    [
        ([], ""),
        ([NOTED], ""),
        ([NOTED, SLOW], WARNING_MARK),
        ([SLOW, REUSED, NOTED], ERROR_MARK),
    ],
)
def test_a_mark_is_as_bad_as_the_worst(findings: list[FindingFact], mark: str) -> None:
    assert mark_of(Facts(findings=findings)) == mark


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("Bash", "Bash"),
        ("Bash Read Bash", "Bash ×2, Read"),
        ("a b c d e d", "a, b, c + 2 more"),
        ("mcp__github__create_issue", "create_issue"),
        ("mcp__odd__", "mcp__odd__"),
    ],
)
def test_tools(names: str, said: str) -> None:
    assert tools_of([call(name) for name in names.split()]) == said
