"""Tables of pairs and of findings: what stands where, and that nothing is wider than asked for."""

from __future__ import annotations

from typing import Any

import pytest

from moontap.looking.facts import CallFact, Facts, FindingFact
from moontap.looking.tables import (
    WAITING,
    WIDE,
    findings_gist,
    findings_in_short,
    findings_of,
    findings_table,
    pairs_gist,
    pairs_of,
    pairs_table,
)
from moontap.looking.views.words import columns

NEW = "Bash_0_tq4k2xw7m3a"
LONG = "toolu_" + "x" * 34


def pair(**more: Any) -> dict[str, Any]:
    return {
        "status": "ok",
        "tool": "Bash",
        "id": "Bash_0",
        "upstream_id": "Bash_0",
        "duplicate": False,
        "rewritten": False,
        "arguments": {"command": "pwd"},
        "result": "/work",
        "latency_s": 0.412,
        **more,
    }


FIRST = pair()
SECOND = pair(id=NEW, duplicate=True, rewritten=True, result="total 8\nx", latency_s=12.0)
STRAY = pair(status="orphan", tool=None, arguments=None, latency_s=None)


def test_narrow() -> None:
    assert pairs_table([FIRST, SECOND, STRAY], 76) == [
        "#  tool  status  latency  id (upstream id → id)",
        "   arguments → result",
        "1  Bash  ok       412 ms  Bash_0",
        '   {"command":"pwd"} → /work',
        "2  Bash  ok       12.0 s  Bash_0 * → Bash_0_tq4k2xw7m3a",
        '   {"command":"pwd"} → total 8\\nx',
        "3        orphan           Bash_0",
        "    → /work",
        "* the model had used this id before in its conversation",
    ]


def test_wide() -> None:
    assert pairs_table([FIRST, SECOND], WIDE) == [
        "#  tool  arguments          result      upstream id  id                  status  latency",
        '1  Bash  {"command":"pwd"}  /work       Bash_0       Bash_0              ok       412 ms',
        '2  Bash  {"command":"pwd"}  total 8\\nx  Bash_0 *     Bash_0_tq4k2xw7m3a  ok       12.0 s',
        "* the model had used this id before in its conversation",
    ]


def test_ids_that_are_too_long_for_a_line_are_whole_in_lines_of_their_own() -> None:
    lines = pairs_table([pair(upstream_id=LONG, id=LONG[::-1], rewritten=True), FIRST], 60)
    assert lines[3:6] == ["1  Bash  ok       412 ms", f"   {LONG}", f"   → {LONG[::-1]}"]
    assert "   Bash_0" in lines


@pytest.mark.parametrize("width", [40, 60, 76, WIDE, 200])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"arguments": "x" * 5000, "result": "y" * 5000},
        {"arguments": "你好" * 200, "result": "🌙" * 200},
        {"arguments": "\x1b[2J" * 100, "result": [{"type": "text", "text": "a\tb\n" * 100}]},
        {"tool": "mcp__a_server_of_a_long_name__a_tool_of_it", "id": NEW, "rewritten": True},
        {"status": None, "id": None, "upstream_id": None, "tool": "\x1b]0;x\x07", "result": None},
    ],
)
def test_no_line_is_wider_and_none_holds_a_control_character(
    width: int, more: dict[str, Any]
) -> None:
    lines = pairs_table([FIRST, pair(**more)], width)
    for line in lines:
        # Ids and what is said of them are never cut.
        assert columns(line) <= width or "*" in line or NEW in line or width < 60, line
        assert line.isprintable()


def test_pairs_of_exchanges() -> None:
    waits = CallFact("Read", NEW, "Read_0", duplicate=True)
    facts = Facts(calls=[CallFact("Bash", "Bash_0", "Bash_0", line=FIRST), waits], orphans=[STRAY])
    stray, first, waiting = pairs_of([facts])
    assert (stray, first) == (STRAY, FIRST)
    assert waiting["status"] == WAITING == "no result yet"
    assert (waiting["id"], waiting["upstream_id"], waiting["rewritten"]) == (NEW, "Read_0", True)
    assert pairs_table([waiting], 76)[2] == f"1  Read  no result yet           Read_0 * → {NEW}"


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([], "no pairs"),
        ([FIRST], "1 pair: 1 ok"),
        (
            [FIRST, SECOND, SECOND, STRAY],
            "4 pairs: 3 ok, 1 orphan; 2 ids used before, 2 rewritten",
        ),
    ],
)
def test_pairs_in_a_line(pairs: list[dict[str, Any]], said: str) -> None:
    assert pairs_gist(pairs) == said


def finding(code: str, severity: str, message: str = "It was so.") -> FindingFact:
    return FindingFact(code, severity, message, f"Mend {code}.", f"docs/findings.md#{code}")


def test_findings_the_worst_first() -> None:
    exchanges = [
        Facts(number=1, findings=[finding("stream-slow", "info")]),
        Facts(number=4, findings=[finding("id-reused", "error"), finding("id-reused", "error")]),
    ]
    found = findings_of(exchanges)
    assert findings_gist(found) == "3 findings: 2 errors (id-reused), 1 info (stream-slow)"
    assert findings_table(found, 76) == [
        "error  id-reused  exchange 4",
        "  It was so.",
        "  do: Mend id-reused.",
        "  see: docs/findings.md#id-reused",
        "error  id-reused  exchange 4",
        "  It was so.",
        "info  stream-slow  exchange 1",
        "  It was so.",
        "  do: Mend stream-slow.",
        "  see: docs/findings.md#stream-slow",
    ]


def test_findings_of_a_loop_are_one_entry() -> None:
    exchanges = [
        Facts(number=at, findings=[finding("id-reused", "error", f"For the {at}th time.")])
        for at in range(3, 108)
    ]
    exchanges[4].findings += [finding("id-reused", "warning"), finding("stream-slow", "info")] * 2
    exchanges.append(Facts(findings=[finding("api-refused", "error")]))
    lines = findings_in_short(findings_of(exchanges), 76)
    assert lines[:6] == [
        "error  id-reused  105 times, exchanges 3 to 107",
        "  For the 107th time.",
        "  do: Mend id-reused.",
        "  see: docs/findings.md#id-reused",
        "error  api-refused",
        "  It was so.",
    ]
    assert [line for line in lines if line[0] != " "][2:] == [
        "warning  id-reused  2 times, exchange 7",
        "info  stream-slow  2 times, exchange 7",
    ]


@pytest.mark.parametrize("message", ["word " * 60, "x" * 300, "\x1b[31m\n" * 30])
def test_a_long_finding_is_wrapped(message: str) -> None:
    lines = findings_table([(1, finding("id-reused", "error", message))], 60)
    assert len(lines) > 5
    assert all(columns(line) <= 60 and line.isprintable() for line in lines)


def test_nothing_found() -> None:
    assert findings_gist([]) == "nothing was found"
    assert findings_table([], 76) == findings_in_short([], 76) == pairs_table([], 76) == []
