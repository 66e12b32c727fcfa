"""The lines that end a run."""

from __future__ import annotations

from typing import Any

import pytest

from moontap.capture.recorder import Counts
from moontap.report.summary import MOST_TROUBLES, Ended, summary


def run(counts: Counts, **more: Any) -> list[str]:
    given = {"rewrite": "all", "capture": "c/1", "look": "mitmweb -nr c/1/traffic.flow"} | more
    return summary(Ended(counts=counts, **given))


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
        (Counts(exchanges=1, orphans=2), "0 unanswered, 2 without their call in 1 request"),
        (Counts(exchanges=1, healed=2), "2 healed"),
        (Counts(exchanges=1, incomplete=2), "2 broken off"),
        (Counts(exchanges=1, lost=2), "2 RECORDS LOST"),
    ],
)
def test_what_is_rare_is_named_when_it_happens(counts: Counts, said: str) -> None:
    assert said in run(counts)[0]


def test_troubles_come_first_and_are_bounded() -> None:
    troubles = {f"t{number}": number for number in range(1, MOST_TROUBLES + 3)}
    lines = run(FINE, troubles=troubles, behind_proxy=True)
    assert lines[:2] == ["warning: t1", "warning: t2 (2 times)"]
    assert lines[MOST_TROUBLES] == "warning: and 2 more of other kinds"
    assert "HTTPS_PROXY are not used" in lines[MOST_TROUBLES + 1]
    assert lines[-3].startswith("3 calls")


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
