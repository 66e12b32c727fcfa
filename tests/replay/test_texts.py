from __future__ import annotations

import re

import pytest

from moontap.replay.texts import Texts
from moontap.rules.replay import Replacement, Replay


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("  text \n", "text"),
        # dates and times, as tools print them
        ("Sun Nov 29 16:41:30 UTC 2026", "[date]"),
        ("Sun, 29 Nov 2026 16:41:30 GMT", "[date]"),
        ("built 2026-11-29T16:41:30.123Z.", "built [date]."),
        ("2026-11-29 16:41:30+01:00", "[date]"),
        ("2026/11/29 16:41", "[date]"),
        ("Today is Sunday, November 29, 2026.", "Today is [date]."),
        ("since November 2026", "since [date]"),
        ("-rw-r--r-- 1 u u 4096 Nov 29 16:41 a", "-rw-r--r-- 1 u u 4096 [date] a"),
        ("at 9:05 PM", "at [time]"),
        ("16:41:30,123 INFO", "[time] INFO"),
        ("1790000000 1790000000.25 1790000000123", "[date] [date] [date]"),
        # ids
        ("927d3e36-6ca2-4fcb-93c8-ebedc68d5c53", "[id]"),
        ("req_0123456789abcdefXYZ and toolu_01AbCdEfGhIjKlMnOp", "[id] and [id]"),
        ("chatcmpl-tool-0123456789abcdef0123", "[id]"),
        ("msg_abcdefghijklmnopqrs1 msg_abcdefghijklmnopqrst", "[id] msg_abcdefghijklmnopqrst"),
        # masks of any length
        ("key ******** and ***************", "key [secret] and [secret]"),
        # reminders
        ("<system-reminder>x\ny</system-reminder>", ""),
        ("a\n\n<system-reminder>x</system-reminder>\n\nb", "a\nb"),
        ("a<system-reminder>1</system-reminder><system-reminder>2</system-reminder>", "a"),
    ],
)
def test_what_changes_from_run_to_run_is_a_placeholder(text: str, counted: str) -> None:
    assert Texts()(text) == counted


@pytest.mark.parametrize(
    "text",
    [
        "a.py:12:30: error",  # a line and a column
        "ratio 16:9",
        "May I? March on, Mark 12",
        "127.0.0.1:8080",
        "version 2026.11.29",
        "12345 1234567890123456",
        "**bold**",
        "<system-reminder>not closed",
        "my_call_12",
        "0123456789abcdef",
        # A name that somebody gave; with a digit elsewhere as well as without.
        "call_handleIncomingRequest()",
        "1 call_handleIncomingRequest()",
    ],
)
def test_what_only_looks_like_it_stays(text: str) -> None:
    assert Texts()(text) == text


def test_to_the_letter() -> None:
    text = " on 2026-11-29 16:41 req_0123456789abcdefXYZ key ********\n"
    text += "<system-reminder>2026-11-29</system-reminder>"
    exact = "on 2026-11-29 16:41 req_0123456789abcdefXYZ key [secret]"
    assert Texts(changing=False)(text) == exact


def test_rules_come_first_and_in_order() -> None:
    rules = (
        Replacement(re.compile(r"/tmp/[a-z0-9]+"), r"\1 is no group"),
        Replacement(re.compile("group"), "end"),
        Replacement(re.compile(r"on \d{4}-\d{2}-\d{2}"), "then"),
    )
    texts = Texts(Replay(replace=rules))
    assert texts("in /tmp/x1 on 2026-11-29") == r"in \1 is no end then"


def test_every_string_of_a_value_and_no_name() -> None:
    value = {"2026-11-29": ["2026-11-29", 1, None, {"a": " b "}]}
    assert Texts().value(value) == {"2026-11-29": ["[date]", 1, None, {"a": "b"}]}


def test_a_long_text_is_read_in_linear_time() -> None:
    text = "1 " * 2_000_000 + "12:3" * 100_000
    assert Texts()(text) == text.strip()
