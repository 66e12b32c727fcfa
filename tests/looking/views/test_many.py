"""Pages of thousands of messages, calls or events: bounded, and what is left out is said."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from moontap.looking.views.events import events_page
from moontap.looking.views.page import FOLD, WIDTH, Page, wrapped
from moontap.looking.views.reply import reply_page
from moontap.looking.views.request import request_page
from moontap.looking.views.shown import ShownReply, ShownStream
from moontap.looking.views.words import columns
from moontap.wire.protocol import ANTHROPIC, OPENAI, read_stream
from tests.looking.views.asked import assistant, chat, messages, result, tool, use, user
from tests.looking.views.asked import calls as chat_calls
from tests.samples import dump, messages_events

MANY = 2000
PAIR = [assistant(use("B")), user(result("B"))]
USES = [use("B") for _ in range(MANY)]
RESULTS = [result("B") for _ in range(MANY)]


def reply_of(*ids: str) -> ShownReply:
    body = b"".join(messages_events(*ids))
    return ShownReply(ANTHROPIC, read_stream(ANTHROPIC, body), body, 200, True)


def choices() -> ShownReply:
    entries = [{"index": at, "delta": {"content": "x"}} for at in range(MANY)]
    body = b"data: %s\n\n" % dump({"id": "c", "choices": entries})
    return ShownReply(OPENAI, read_stream(OPENAI, body), body, 200, True)


@pytest.mark.parametrize(
    ("page", "left_out", "most"),
    [
        (lambda fold: request_page(messages([user("x")] * MANY), fold), "messages", 1800),
        (lambda fold: request_page(messages(PAIR * MANY, new=1), fold), "messages", 4000),
        (
            lambda fold: request_page(messages([*PAIR * MANY, user("x")], new=2 * MANY), fold),
            "messages",
            4000,
        ),
        (
            lambda fold: request_page(messages([assistant(*USES), user(*RESULTS)]), fold),
            "parts",
            5000,
        ),
        (
            lambda fold: request_page(
                messages([user("x"), assistant(*USES), user(*RESULTS), user("y")], new=3), fold
            ),
            "calls",
            2000,
        ),
        (
            lambda fold: request_page(messages([assistant(use("B")), user(*RESULTS)]), fold),
            "results",
            2000,
        ),
        (
            lambda fold: request_page(
                chat([chat_calls(*[("B", "{}")] * MANY), *[tool("B")] * MANY]), fold
            ),
            "parts",
            6000,
        ),
        (lambda fold: reply_page(reply_of(*["B"] * MANY), fold), "calls", 3000),
        (lambda fold: reply_page(choices(), fold), "choices", 2000),
    ],
)
def test_the_first_and_the_last_are_shown(
    page: Callable[[int | None], str], left_out: str, most: int
) -> None:
    shown = page(FOLD)
    assert f" {left_out}: see Moontap-full …]" in shown
    assert shown.count("\n") < most
    full = page(None)
    assert "see Moontap-full" not in full
    assert full.count("\n") >= MANY


def test_a_page_of_many_lists_is_bounded() -> None:
    history = [assistant(*USES[:600]), user("x")] * 60
    assert request_page(messages(history, new=1)).count("\n") < 30_000


def test_an_id_of_a_call_that_is_left_out_was_used_before() -> None:
    shown = reply_page(reply_of(*[f"B{number}" for number in range(MANY)], "B300"))
    assert shown.count("used before in this reply") == 1


def test_of_thousands_of_events_the_first_and_the_last() -> None:
    body = b"".join(messages_events(*["B"] * 3000))
    shown = ShownStream(ANTHROPIC, body, body)
    lines = events_page(shown).splitlines()
    assert len(lines) < 3000
    assert any("lines: moontap_fold=0 shows them …]" in line for line in lines)
    assert lines[-1].endswith("message_stop")
    assert len(events_page(shown, None).splitlines()) > 9000


@pytest.mark.parametrize("line", ["你" * 1000, "a你 " * 500, "✅x" * 300, "x" * 100 + "语" * 100])
def test_wide_lines_fit_and_are_whole(line: str) -> None:
    parts = list(wrapped(line, WIDTH))
    assert all(columns(part) <= WIDTH for part in parts)
    assert "".join(parts).replace(" ", "") == line.replace(" ", "")


def test_some_of_few_is_all() -> None:
    page = Page()
    assert list(page.some(range(520), "numbers")) == list(range(520))
    assert list(page.some(range(521), "numbers")) == [*range(20), *range(21, 521)]
    assert str(page) == "[… 1 numbers: see Moontap-full …]\n"
