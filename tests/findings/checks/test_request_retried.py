from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.findings.checks.test_stream_cut import BLOCK, CALL, CLOSED, END, ERROR, LEFT, START
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
    text,
    use,
    user,
)

FAILED = {"error": {"message": "no", "type": "api_error"}}
GOOD = message(use("pwd_0"))
ASKED = [user("go"), said(use("a")), user(result("a"))]
LONG = [*ASKED, *[said("hm"), user("more")] * 20]
STREAM = {"stream": True}
CLAUDE = {"user-agent": "claude-cli/2.1", "x-stainless-retry-count": "0"}


def retry(count: int) -> dict[str, str]:
    return {"user-agent": "Anthropic/Python 1", "x-stainless-retry-count": str(count)}


def pair(
    reply: Any, again: Any = GOOD, /, history: Any = ASKED, chat: bool = False, **first: Any
) -> list[Ex]:
    """A request and the same once more. first: of the first exchange; names that begin with `to_`
    are of the second alone."""
    second = {key[3:]: first.pop(key) for key in list(first) if key.startswith("to_")}
    one = Ex(history, reply, chat=chat, **first)
    kept = Ex(history, again, one.ask, chat, request_headers=one.request_headers)
    return [one, replace(kept, **second)]


@pytest.mark.parametrize(
    ("exchanges", "kind", "severity", "party"),
    [
        pytest.param(
            pair(FAILED, status=500, request_headers=retry(0), to_request_headers=retry(1)),
            *("sdk-retry", "info", "sdk-retry"),
            id="an SDK after a 500",
        ),
        pytest.param(
            pair(None, error=CLOSED, request_headers=retry(0), to_request_headers=retry(1)),
            *("sdk-retry", "info", "sdk-retry"),
            id="an SDK after no reply",
        ),
        pytest.param(
            pair(stream(START), error=LEFT, ask=STREAM, to_request_headers=retry(1)),
            *("sdk-retry", "info", "sdk-retry"),
            id="an SDK after its time limit",
        ),
        pytest.param(
            pair(FAILED, status=529, request_headers=CLAUDE),
            *("client-retry", "info", "client"),
            id="Claude Code by itself",
        ),
        pytest.param(
            pair(FAILED, status=502), "network-retry", "info", "network", id="after a 502"
        ),
        pytest.param(
            pair(stream(START, BLOCK), error=CLOSED, ask=STREAM),
            *("network-retry", "info", "network"),
            id="after a broken stream",
        ),
        pytest.param(
            pair(stream(START, ERROR), ask=STREAM), "network-retry", "info", "network", id="error"
        ),
        pytest.param(pair(b"", ask=STREAM), "network-retry", "info", "network", id="empty"),
        pytest.param(
            pair(stream(START), ask=STREAM, error=CLOSED, to_ask={"stream": False}),
            *("fallback", "info", "client"),
            id="fallback",
        ),
        pytest.param(
            pair(stream(START, BLOCK, END), ask=STREAM, to_ask={"max_tokens": 9}),
            *("fallback", "info", "client"),
            id="fallback from a whole stream",
        ),
        pytest.param(
            pair(GOOD, wait=9.0), "two-clients", "info", "client", id="before the first was done"
        ),
        pytest.param(
            pair(
                FAILED, status=500, request_headers=CLAUDE, to_request_headers={"user-agent": "b"}
            ),
            *("two-clients", "info", "client"),
            id="another client after a failure",
        ),
        pytest.param(
            pair(GOOD, request_headers={"user-agent": "a"}, to_request_headers={"user-agent": "b"}),
            *("two-clients", "info", "client"),
            id="another client after a good reply",
        ),
        pytest.param(pair(GOOD), "sent-again", "warning", "client", id="a reply that was not kept"),
        pytest.param(pair(GOOD, history=LONG), "sent-again", "warning", "client", id="a long one"),
        pytest.param(
            pair(GOOD, request_headers=CLAUDE), "sent-again", "warning", "client", id="retry 0"
        ),
        pytest.param(
            pair(GOOD, history=[user("go")]), "sent-again", "info", "client", id="a second run"
        ),
        pytest.param(
            pair(message(text("done"))), "sent-again", "info", "client", id="a reply without calls"
        ),
    ],
)
def test_who_sent_it_again(exchanges: list[Ex], kind: str, severity: str, party: str) -> None:
    [finding] = found("request-retried", *exchanges)
    assert finding.evidence.facts["kind"] == kind
    assert (finding.severity.value, finding.party.value) == (severity, party)
    assert finding.evidence.facts["before_flow"] == "flow-1"
    assert (finding.flow, finding.evidence.message) == ("flow-2", len(exchanges[0].messages) - 1)


HISTORY = [user("go"), called(call("a")), answered("a")]
COMPLETION = completion(called(call("b")))


@pytest.mark.parametrize(
    ("exchanges", "kind"),
    [
        (pair(FAILED, COMPLETION, HISTORY, True, status=500), "network-retry"),
        (
            pair(FAILED, COMPLETION, HISTORY, True, status=500, to_request_headers=retry(2)),
            "sdk-retry",
        ),
        (
            pair(chunks(CALL, done=False), COMPLETION, HISTORY, True, ask=STREAM, to_ask={}),
            "fallback",
        ),
        (pair(COMPLETION, COMPLETION, HISTORY, True), "sent-again"),
    ],
)
def test_with_chat_completions(exchanges: list[Ex], kind: str) -> None:
    [finding] = found("request-retried", *exchanges)
    assert finding.evidence.facts["kind"] == kind


EDITED = [*ASKED[:2], user(result("a"), text("and now?"))]
TOOLS = {"tools": [{"name": "pwd", "input_schema": {}}]}


@pytest.mark.parametrize(
    "exchanges",
    [
        pytest.param(
            [Ex([user("go")], GOOD), Ex([user("go"), said(use()), user(result())], GOOD)],
            id="a new decision",
        ),
        pytest.param([Ex(ASKED, GOOD), Ex(EDITED, GOOD)], id="another last message"),
        pytest.param([Ex(ASKED, GOOD), Ex(ASKED[:1], GOOD)], id="a rewind"),
        pytest.param([Ex(LONG, GOOD), Ex([*LONG[:-1], user("b")], GOOD)], id="so in a long one"),
        pytest.param(pair(GOOD, to_ask=TOOLS), id="with other tools"),
        pytest.param(pair(GOOD, to_ask={"model": "kimi-k2.6"}), id="with another model"),
        pytest.param(pair(GOOD, to_ask={"response_format": {}}), id="asked for in another form"),
        pytest.param([Ex([user("a")], GOOD), Ex([user("b")], GOOD)], id="another question"),
        pytest.param([Ex(ASKED, None), Ex(ASKED, GOOD)], id="nobody knows the first reply"),
        pytest.param(
            [
                Ex(ASKED, FAILED, status=500),
                Ex([*ASKED, said("I try again"), user("go on")], GOOD),
            ],
            id="a person goes on after a failure",
        ),
    ],
)
def test_what_is_not_again(exchanges: list[Ex]) -> None:
    assert found("request-retried", *exchanges) == []


def test_each_request_and_kind_is_said_once() -> None:
    failed = Ex(ASKED, FAILED, status=500)
    tries = [replace(failed, request_headers=retry(count)) for count in range(5)]
    findings = found("request-retried", *tries, Ex(ASKED, GOOD), Ex(ASKED, GOOD))
    assert [(f.exchange, f.evidence.facts["kind"]) for f in findings] == [
        (2, "sdk-retry"),
        (6, "network-retry"),
        (7, "sent-again"),
    ]


@pytest.mark.parametrize(
    ("exchanges", "says"),
    [
        (
            pair(FAILED, status=500, to_request_headers=retry(2)),
            "again (retry 2) after a 500 answer.",
        ),
        (pair(stream(START), error=LEFT), "after the client itself had hung up; no header"),
        (pair(GOOD, ask=STREAM), "(pwd_0). It had asked for a stream, and the reply came whole."),
        (
            pair(GOOD, wait=9.0),
            "sent twice at the same time: two clients, or one that did not wait",
        ),
    ],
)
def test_what_it_says(exchanges: list[Ex], says: str) -> None:
    [finding] = found("request-retried", *exchanges)
    assert says in finding.message
