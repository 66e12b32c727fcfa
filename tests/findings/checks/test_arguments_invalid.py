from __future__ import annotations

from typing import Any

import pytest

from moontap.findings.types import Party, Severity
from tests.findings.rig import (
    Ex,
    answered,
    call,
    called,
    chunks,
    completion,
    found,
    message,
    result,
    said,
    stream,
    use,
    user,
)

CODE = "arguments-invalid"
GO = [user("go")]


def chat(arguments: Any) -> Ex:
    return Ex(GO, completion(called(call(arguments=arguments))), chat=True)


def streamed(*parts: str, index: int = 0, stop: bool = True) -> bytes:
    """A Messages stream whose call has these pieces of arguments."""
    block = {"type": "tool_use", "id": "pwd_0", "name": "pwd", "input": {}}
    deltas = [
        {
            "type": "content_block_delta",
            "index": index,
            "delta": {"type": "input_json_delta", "partial_json": part},
        }
        for part in parts
    ]
    return stream(
        {"type": "message_start", "message": {"id": "msg_1"}},
        {"type": "content_block_start", "index": index, "content_block": block},
        *deltas,
        *([{"type": "content_block_stop", "index": index}] if stop else []),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    )


@pytest.mark.parametrize(
    ("exchange", "severity", "says"),
    [
        (chat('{"a": "b'), Severity.ERROR, "not JSON"),
        (chat("{'a': 1}"), Severity.ERROR, "not JSON"),
        (chat('{"a": "line\nbreak"}'), Severity.ERROR, "not JSON"),
        (chat('{"a": NaN}'), Severity.ERROR, "NaN is not JSON"),
        (chat('{"a":1}{"a":1}'), Severity.ERROR, "not JSON"),
        (chat('"{\\"a\\": 1}"'), Severity.WARNING, "a string, not an object"),
        (chat("[1]"), Severity.WARNING, "an array, not an object"),
        (chat(""), Severity.INFO, "no arguments at all"),
        (chat("null"), Severity.INFO, "no arguments at all"),
        (chat([1]), Severity.WARNING, "an array"),
        (Ex(GO, streamed('{"a": ', "oh no}")), Severity.ERROR, "not JSON"),
        (Ex(GO, message({**use(), "input": "x"})), Severity.WARNING, "a string"),
    ],
)
def test_a_reply(exchange: Ex, severity: Severity, says: str) -> None:
    (finding,) = found(CODE, exchange)
    assert (finding.severity, finding.party) == (severity, Party.API)
    assert says in finding.message
    assert finding.evidence.index == 0


@pytest.mark.parametrize(
    "exchange",
    [
        chat('{"a": 1}'),
        chat(" {} "),
        chat({"a": 1}),
        chat('{"a": "\\ud83d"}'),
        chat('{"a": 123456789012345678901234567890}'),
        Ex(GO, message(use(a=1))),
        Ex(GO, streamed()),
        Ex(GO, streamed('{"a": ', "1}")),
        Ex(GO, message()),
        Ex(GO, {"type": "error", "error": {"message": "{"}}, status=400),
        # Cut off: that is another finding.
        Ex(GO, streamed('{"a": "b', stop=False), metadata={"moontap.incomplete": True}),
        Ex(GO, completion(called(call(arguments='{"a": "b')), "length"), chat=True),
    ],
)
def test_near_misses(exchange: Ex) -> None:
    assert found(CODE, exchange) == []


def test_a_call_that_comes_back_is_not_told_again() -> None:
    bad = call(arguments="{'a': 1}")
    history = [*GO, called(bad), answered()]
    findings = found(
        CODE,
        Ex(GO, completion(called(bad)), chat=True),
        Ex(history, completion({"role": "assistant", "content": "x"}), chat=True),
    )
    assert [f.exchange for f in findings] == [1]


@pytest.mark.parametrize(
    ("exchange", "severities"),
    [
        (
            Ex([*GO, called(call(arguments="{'a': 1}")), answered()], chat=True),
            [Severity.ERROR],
        ),
        (Ex([*GO, called(call(arguments="")), answered()], chat=True), [Severity.INFO]),
        (Ex([*GO, said({**use(), "input": [1]}), user(result())]), [Severity.WARNING]),
        (Ex([*GO, called(call(arguments='{"a":1}')), answered()], chat=True), []),
        (Ex([*GO, said(use(a=1)), user(result())]), []),
    ],
)
def test_a_history_that_no_reply_delivered(exchange: Ex, severities: list[Severity]) -> None:
    findings = found(CODE, exchange)
    assert [f.severity for f in findings] == severities
    assert all(f.evidence.message == 1 for f in findings)


def test_fragments_of_a_stream_are_one_text() -> None:
    parts = [
        {"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": part}}]}}
        for part in ('{"a', '": 1', "}")
    ]
    first = {"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "x", "function": {}}]}}
    last = {"index": 0, "delta": {}, "finish_reason": "tool_calls"}
    body = chunks(*({"choices": [choice]} for choice in (first, *parts, last)))
    assert found(CODE, Ex(GO, body, chat=True)) == []
