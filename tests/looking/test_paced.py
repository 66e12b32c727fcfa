"""Pages of streams under way: made as often as there is time for, and not more."""

from __future__ import annotations

from mitmproxy.test import tflow

from moontap.looking.board import SHARE
from moontap.looking.paced import Paced


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_page_that_took_long_is_shown_again_for_a_while() -> None:
    clock, made = Clock(), list[float]()
    paced, flow = Paced(clock), tflow.tflow()

    def make() -> str:
        made.append(clock.now)
        clock.now += 0.5
        return f"page {len(made)}"

    assert paced.page(flow, "reply", make, live=True) == "page 1"
    clock.now += SHARE * 0.5 - 0.01
    assert paced.page(flow, "reply", make, live=True) == "page 1"
    assert paced.page(flow, "events", make, live=True) == "page 2"  # a page of its own
    clock.now += 0.01
    assert paced.page(flow, "reply", make, live=True) == "page 3"
    assert paced.page(tflow.tflow(), "reply", make, live=True) == "page 4"
    # Once it has ended the page is whole, at once and each time.
    assert paced.page(flow, "reply", make, live=False) == "page 5"
    assert paced.page(flow, "reply", make, live=False) == "page 6"
    assert paced.page(flow, "reply", make, live=True) == "page 7"


def test_a_quick_page_is_always_new() -> None:
    clock, made = Clock(), list[int]()
    paced, flow = Paced(clock), tflow.tflow()

    def make() -> str:
        made.append(1)
        return str(len(made))

    assert [paced.page(flow, "reply", make, live=True) for _ in range(3)] == ["1", "2", "3"]
