"""A conversation as rows: what is told of each exchange."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moontap.report.story.fold import Row, fold
from moontap.report.story.rows import numbers, words
from moontap.report.story.told import Told
from moontap.rules import Rules, load_rules
from tests.findings.rig import (
    Ex,
    answered,
    call,
    called,
    completion,
    message,
    result,
    said,
    text,
    use,
    user,
)
from tests.report.story.telling import account, rounds


def told(exchanges: list[Ex]) -> list[str]:
    rows = fold(account(exchanges).exchanges, lambda one: False)
    pairs = zip(rows, [None, *rows], strict=False)
    return [f"{numbers(row)} {words(row, before)}" for row, before in pairs]


GO = [user("go")]
CALL = message(use("pwd_0"))
PWD = [*GO, said(use("pwd_0"))]


@pytest.mark.parametrize(
    ("exchanges", "rows"),
    [
        (
            rounds(["ls", "date"], final="Done."),
            [
                '1 the user says “go”; the model calls Bash {"command":"ls"} as Bash_0',
                '2 one result comes back; the model calls Bash {"command":"date"} as Bash_1',
                "3 one result comes back; the model answers “Done.”",
            ],
        ),
        (
            rounds(["ls", *["date"] * 4], id_="Bash_0", lost=True),
            [
                '1 the user says “go”; the model calls Bash {"command":"ls"} as Bash_0',
                '2 one result comes back; the model calls Bash {"command":"date"} as Bash_0 (used '
                "before)",
                "3-5 3 times: the client drops one call with its result, one empty user turn; the "
                "model calls the same again: one Bash, as Bash_0 (used before)",
            ],
        ),
        (
            rounds(["ls"] * 4),
            [
                '1 the user says “go”; the model calls Bash {"command":"ls"} as Bash_0',
                "2-4 3 times: one result comes back; the model calls the same again: one Bash, "
                "as Bash_1; the results are the same",
            ],
        ),
        (
            rounds(["ls"] * 3, results={1: "other"})[1:],
            [
                "1 a history of 3 messages is there from the start, the user says “go”; the model "
                'calls Bash {"command":"ls"} as Bash_1',
                "2 one result comes back; the model calls the same again: one Bash, as Bash_2",
            ],
        ),
        (
            [Ex(GO, CALL), Ex([*PWD, user(result("pwd_0", "no", is_error=True))], status=500)],
            [
                "1 the user says “go”; the model calls pwd {} as pwd_0",
                "2 one result comes back (1 with an error); no reply",
            ],
        ),
        (
            [
                Ex(GO, CALL),
                Ex([*PWD, user(result())], {"error": {"message": "x"}}, status=429),
                Ex([*PWD, user(result())], message(text(""))),
            ],
            [
                "1 the user says “go”; the model calls pwd {} as pwd_0",
                "2 one result comes back; refused with 429",
                "3 the same request again; the reply is empty",
            ],
        ),
        (
            [
                Ex(GO, CALL),
                Ex([*PWD, user("never mind")], message(text("Fine."))),
                Ex([*PWD, user("never mind"), said("Fine."), user("and?")], message(text("Well."))),
            ],
            [
                "1 the user says “go”; the model calls pwd {} as pwd_0",
                "2 the user says “never mind”; the model answers “Fine.”",
                "3 one call without a result, the user says “and?”; the model answers “Well.”",
            ],
        ),
        (
            [
                Ex(
                    GO,
                    completion(called(*(call(f"pwd:{n}", arguments=str(n)) for n in range(5)))),
                    chat=True,
                ),
                Ex([*GO, answered("elsewhere")], None, chat=True, error="gone"),
            ],
            [
                "1 the user says “go”; the model calls pwd 0 as pwd:0, and pwd 1 as pwd:1, and "
                "pwd 2 as pwd:2, and 2 more",
                "2 the client drops five calls with their results, one result without a call; the "
                "reply breaks off",
            ],
        ),
        (
            [
                Ex(
                    GO,
                    message(use("pwd_0_x")),
                    metadata={
                        "moontap.upstream_body": b'{"content":[{"type":"tool_use",'
                        b'"id":"pwd_0","name":"pwd","input":{}}]}'
                    },
                )
            ],
            ["1 the user says “go”; the model calls pwd {} as pwd_0_x (sent as pwd_0)"],
        ),
    ],
)
def test_each_exchange_is_told(exchanges: list[Ex], rows: list[str]) -> None:
    assert told(exchanges) == rows


def test_results_that_change_are_progress() -> None:
    polling = rounds(["ls"] * 6, results={n: f"{n} left" for n in range(6)})
    assert told(polling)[-1].endswith("; the results differ")


def test_what_the_rules_leave_out_makes_no_difference(tmp_path: Path) -> None:
    """A row said "the results differ" beside a finding that they were the same each time."""
    file = tmp_path / "rules.yaml"
    file.write_text("progress: {ignore: [{tool: Bash, arguments: [$.n], results: [$.at]}]}\n")
    results = {n: f'{{"at": {n}, "state": "running"}}' for n in range(6)}
    exchanges = rounds(["ls"] * 6, results=results)
    for rules, words_ in ((load_rules(str(file)), "are the same"), (Rules(), "differ")):
        rows = fold(account(exchanges, rules=rules).exchanges, lambda one: False)
        assert words(rows[-1], rows[0]).endswith(f"; the results {words_}")


def test_what_is_left_out_is_counted() -> None:
    varied = rounds([f"step {n}" for n in range(40)], final="Done.")
    assert "5-37 … 33 exchanges, 33 calls (Bash 33), 33 answered" in told(varied)


@pytest.mark.parametrize(
    ("did", "words_"),
    [
        ({"healed": True}, "moontap makes the ids of the history unique; the reply is empty"),
        (
            {"reminded": True},
            "moontap reminds the model that it repeats itself; the reply is empty",
        ),
        (
            {"stopped": "blocked_no_progress", "none": True},
            "moontap stops it (blocked_no_progress)",
        ),
    ],
)
def test_what_moontap_did_is_told(did: dict[str, Any], words_: str) -> None:
    assert words(Row([Told(1, None, **did)]), None) == words_
