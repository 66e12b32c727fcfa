"""The lines that end a run."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from moontap.capture.recorder import Counts
from moontap.report.summary import MOST_TROUBLES, Ended, summary


def run(counts: Counts, **more: Any) -> list[str]:
    given = {"rewrite": "all", "capture": "c/1", "look": "mitmweb -nr c/1/traffic.flow"} | more
    return summary(Ended(counts=counts, **given))


REMEDY = "moontap run --port 8799 -- claude"
FINE = Counts(exchanges=4, calls=3, rewritten=3, pairs=3)


def test_a_run_without_trouble() -> None:
    assert run(FINE) == [
        "3 calls, 3 pairs, 3 rewritten, 0 unanswered in 4 requests",
        "capture: c/1",
        "look at it: mitmweb -nr c/1/traffic.flow",
    ]


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        (Counts(exchanges=1, duplicates=2), "0 pairs, 2 with an id used before, 0 rewritten, 0 un"),
        (Counts(exchanges=1, orphans=2), "0 unanswered, 2 without their call in 1 request"),
        (Counts(exchanges=1, healed=2), "2 healed"),
        (Counts(exchanges=1, incomplete=2), "2 broken off"),
        (Counts(exchanges=1, lost=2), "2 RECORDS LOST"),
    ],
)
def test_what_is_rare_is_named_when_it_happens(counts: Counts, said: str) -> None:
    assert said in run(counts)[0]


@pytest.mark.parametrize(
    ("code", "seconds", "asked"),
    [
        (0, 0.1, True),
        (0, 9.0, True),
        (1, 0.1, False),
        (1, 2.0, True),
        (130, 2.0, True),  # Ctrl-C, after a look round
        (143, 2.0, True),
        (127, 2.0, False),
        (139, 9.0, False),  # SIGSEGV
        (134, 9.0, False),  # SIGABRT
    ],
)
def test_where_nothing_came_causes_are_named_if_the_command_could_have_asked(
    code: int, seconds: float, asked: bool
) -> None:
    first, *causes = run(Counts(), capture=None, code=code, seconds=seconds, remedy=REMEDY)
    assert first == (
        f"no request came through the tap (the command ended with code {code} after {seconds} s)"
    )
    words = ("no key? ANTHROPIC_AUTH_TOKEN=… ANTHROPIC_MODEL=kimi-k3", "settings.json", REMEDY)
    assert len(causes) == (len(words) + 1 if asked else 0)
    assert all(word in cause for word, cause in zip((*words, "base_url="), causes, strict=False))


def test_where_nothing_came_and_there_was_no_command() -> None:
    assert run(Counts(), capture=None) == ["no request came through the tap"]


def test_troubles_come_first_and_are_bounded() -> None:
    troubles = {f"t{number}": number for number in range(1, MOST_TROUBLES + 3)}
    lines = run(FINE, troubles=troubles, behind_proxy=True)
    assert lines[:2] == ["warning: t1", "warning: t2 (2 times)"]
    assert lines[MOST_TROUBLES] == "warning: and 2 more of other kinds"
    assert "HTTPS_PROXY are not used" in lines[MOST_TROUBLES + 1]
    assert lines[-3].startswith("3 calls")


@pytest.mark.parametrize(
    ("explain", "said"),
    [
        ("moontap explain c/1", "found: id-reused, no-progress ×2; why: moontap explain c/1"),
        ("", "found: id-reused, no-progress ×2"),
    ],
)
def test_what_was_found_is_named_with_the_command_that_says_why(explain: str, said: str) -> None:
    found = Counts(exchanges=1, findings=Counter({"no-progress": 2, "id-reused": 1}))
    assert said in run(found, explain=explain)


@pytest.mark.parametrize(
    ("counts", "more", "said", "unsaid"),
    [
        (Counts(), {"capture": None}, "no request came through the tap", "0 calls"),
        (FINE, {"capture": None, "keeps": False}, "nothing was kept on disk, as asked", "capture:"),
        (Counts(exchanges=1, unanswered=1), {"rewrite": "off"}, "--rewrite all", "no request"),
        (Counts(exchanges=1, unanswered=1), {}, "1 unanswered", "--rewrite all"),
    ],
)
def test_what_a_person_should_know(
    counts: Counts, more: dict[str, Any], said: str, unsaid: str
) -> None:
    text = "\n".join(run(counts, **more))
    assert said in text
    assert unsaid not in text
