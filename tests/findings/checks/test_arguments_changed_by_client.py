from __future__ import annotations

from typing import Any

import pytest

from moontap.findings.types import Party, Severity
from tests.findings.rig import (
    Ex,
    answered,
    call,
    called,
    completion,
    found,
    message,
    result,
    said,
    use,
    user,
)
from tests.samples import dump

CODE = "arguments-changed-by-client"
GO = [user("go")]


def chat(delivered: str, back: Any) -> list[Ex]:
    return [
        Ex(GO, completion(called(call(arguments=delivered))), chat=True),
        Ex([*GO, called(call(arguments=back)), answered()], chat=True),
    ]


def messages(delivered: Any, back: Any) -> list[Ex]:
    return [
        Ex(GO, message({**use(), "input": delivered})),
        Ex([*GO, said({**use(), "input": back}), user(result())]),
    ]


@pytest.mark.parametrize(
    ("exchanges", "severity", "says"),
    [
        (chat('{"a":1}', "{}"), Severity.WARNING, "emptied in message 1"),
        (chat('{"a":1}', ""), Severity.WARNING, "emptied"),
        (chat('{"a":1}', "null"), Severity.WARNING, "emptied"),
        (chat('{"a":1}', '{"a":'), Severity.WARNING, "changed"),
        (chat('{"a":1}', '"a"'), Severity.WARNING, "changed"),
        (chat('{"a":1}', '{"a":2}'), Severity.INFO, "changed in message 1"),
        (chat('{"a":1}', '{"a":true}'), Severity.INFO, "changed"),
        (chat('{"a":12345678901234567891}', '{"a":12345678901234567000}'), Severity.INFO, "ch"),
        (chat("{}", '{"a":1}'), Severity.INFO, "changed"),
        (messages({"a": 1}, {}), Severity.WARNING, "emptied"),
        (messages({"a": "cd /w && ls"}, {"a": "ls"}), Severity.INFO, "changed"),
    ],
)
def test_other_arguments(exchanges: list[Ex], severity: Severity, says: str) -> None:
    (finding,) = found(CODE, *exchanges)
    assert (finding.severity, finding.party) == (severity, Party.CLIENT)
    assert says in finding.message
    assert finding.evidence.ids == ("pwd:0" if exchanges[0].chat else "pwd_0",)


@pytest.mark.parametrize(
    "exchanges",
    [
        chat('{"a":1}', '{"a":1}'),
        # But for the spelling.
        chat('{"b": 2, "a": 1}', '{"a":1,"b":2}'),
        chat('{"a":1.0}', '{"a":1}'),
        chat('{"a":"\\u00e9\\/"}', '{"a":"é/"}'),
        chat('{"a":"\\ud83d"}', '{"a":"\\ufffd"}'),
        chat('{"a":1}', {"a": 1}),
        chat("", "{}"),
        chat("{}", ""),
        chat("null", "{}"),
        messages({"b": 2, "a": 1.0}, {"a": 1, "b": 2}),
        # Nothing better can come back.
        chat('{"a":', "{}"),
        chat("[1]", "{}"),
        # Another call.
        [
            Ex(GO, message(use(a=1))),
            Ex([*GO, said(use("pwd_1")), user(result("pwd_1"))]),
        ],
        # Not delivered, or not to its end.
        [Ex([*GO, said(use()), user(result())])],
        [
            Ex(GO, message(use(a=1)), metadata={"moontap.incomplete": True}),
            Ex([*GO, said(use()), user(result())]),
        ],
    ],
)
def test_near_misses(exchanges: list[Ex]) -> None:
    assert found(CODE, *exchanges) == []


def test_calls_with_one_id_are_told_apart_by_their_arguments() -> None:
    one, two = use(a=1), use(a=2)
    exchanges = [
        Ex(GO, message(one, two)),
        Ex([*GO, said(two, one), user(result(), result())]),
    ]
    assert found(CODE, *exchanges) == []


def test_it_is_told_once_for_each_tool() -> None:
    history, exchanges = list(GO), []
    for n, name in enumerate(["ls", "ls", "cat", "cat"]):
        exchanges.append(Ex(list(history), message(use(f"x_{n}", name, n=n + 1))))
        history += [said(use(f"x_{n}", name)), user(result(f"x_{n}", str(n)))]
    exchanges.append(Ex(history))
    findings = found(CODE, *exchanges)
    assert [(f.exchange, f.evidence.facts["tool"]) for f in findings] == [(2, "ls"), (4, "cat")]


def test_long_arguments_are_shown_in_short() -> None:
    delivered = dump({"a": "x" * 5000}).decode()
    (finding,) = found(CODE, *chat(delivered, "{}"))
    assert len(finding.evidence.facts["delivered"]) < 200
