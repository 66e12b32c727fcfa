from __future__ import annotations

from typing import Any

import pytest

from moontap.findings.types import Party
from tests.findings.rig import (
    Ex,
    answered,
    call,
    called,
    completion,
    found,
    result,
    said,
    use,
    user,
)

CODE = "legacy-functions"
GO = [user("go")]
FUNCTIONS = [{"name": "ls", "parameters": {"type": "object"}}]
ASKED = {"role": "assistant", "content": None, "function_call": {"name": "ls", "arguments": "{}"}}
ANSWER = {"role": "function", "name": "ls", "content": "a.py"}
SAID = completion({"role": "assistant", "content": "done"})


@pytest.mark.parametrize(
    ("messages", "ask", "says"),
    [
        (GO, {"functions": FUNCTIONS}, ["uses `functions`,"]),
        (
            GO,
            {"functions": FUNCTIONS, "function_call": "auto"},
            ["uses `functions` and `function_call`,"],
        ),
        ([*GO, ASKED], {}, ["Message 1 has `function_call`"]),
        ([*GO, ANSWER], {}, ["Message 1 has the role `function`"]),
        (
            [*GO, ASKED, ANSWER],
            {"functions": FUNCTIONS},
            ["uses `functions`,", "Message 1 has `function_call`"],
        ),
    ],
)
def test_the_form_before_tools(messages: Any, ask: dict[str, Any], says: list[str]) -> None:
    findings = found(CODE, Ex(messages, SAID, ask, chat=True))
    assert len(findings) == len(says)
    for finding, words in zip(findings, says, strict=True):
        assert words in finding.message
        assert finding.party is Party.CLIENT


@pytest.mark.parametrize(
    "exchange",
    [
        Ex([*GO, called(call()), answered()], SAID, {"tools": []}, chat=True),
        # The SDK's own objects, written out with all their members.
        Ex([*GO, called(call(), function_call=None), answered()], SAID, chat=True),
        Ex(GO, SAID, {"functions": None, "function_call": None}, chat=True),
        Ex(GO, SAID, {"functions": []}, chat=True),
        Ex([user("function_call and functions")], SAID, chat=True),
        Ex([*GO, said(use()), user(result())], ask={"functions": FUNCTIONS}),
    ],
)
def test_near_misses(exchange: Ex) -> None:
    assert found(CODE, exchange) == []


def test_it_is_told_once() -> None:
    ask = {"functions": FUNCTIONS}
    findings = found(
        CODE,
        Ex(GO, SAID, ask, chat=True),
        Ex([*GO, ASKED, ANSWER], SAID, ask, chat=True),
        Ex([*GO, ASKED, ANSWER, ASKED, ANSWER], SAID, ask, chat=True),
    )
    assert [f.exchange for f in findings] == [1, 2]
