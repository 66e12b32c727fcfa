from __future__ import annotations

from typing import Any

import pytest

from moontap.findings.types import Party, Severity
from tests.findings.rig import Ex, answered, call, called, found, result, said, text, use, user

CODE = "result-unfit"
GO = [user("go")]
REFERENCE = {"type": "tool_reference", "tool_name": "WebFetch"}
ABSENT = {"type": "tool_result", "tool_use_id": "pwd_0"}
IMAGE = {"type": "image", "source": {"type": "url", "url": "http://example.com/a.png"}}


def messages(*results: Any) -> Ex:
    return Ex([*GO, said(use()), user(*results)])


def chat(content: Any = None, *, absent: bool = False) -> Ex:
    answer = answered(content=content)
    if absent:
        del answer["content"]
    return Ex([*GO, called(call()), answer], chat=True)


@pytest.mark.parametrize(
    ("exchange", "kind", "severity"),
    [
        (messages(ABSENT), "absent", Severity.WARNING),
        (messages(result(content=None)), "absent", Severity.WARNING),
        (messages(result(content=[REFERENCE])), "reference", Severity.WARNING),
        (messages(result(content=[text("found"), REFERENCE])), "reference", Severity.WARNING),
        (messages(result(content=[text("")])), "empty_text", Severity.WARNING),
        (messages(result(content=[IMAGE, text("")])), "empty_text", Severity.WARNING),
        (messages(result(content="")), "empty", Severity.INFO),
        (messages(result(content=[])), "empty", Severity.INFO),
        (chat(None), "absent", Severity.WARNING),
        (chat(absent=True), "absent", Severity.WARNING),
        (chat([text("")]), "empty_text", Severity.WARNING),
        (chat(""), "empty", Severity.INFO),
    ],
)
def test_a_result_that_cannot_be_used(exchange: Ex, kind: str, severity: Severity) -> None:
    (finding,) = found(CODE, exchange)
    assert (finding.evidence.facts["kind"], finding.severity) == (kind, severity)
    assert finding.party is (Party.TOOL if kind == "empty" else Party.CLIENT)
    assert (finding.evidence.message, finding.evidence.block) == (2, 0)


@pytest.mark.parametrize(
    "exchange",
    [
        messages(result(content=" ")),
        messages(result(content="null")),
        messages(result(content="[]")),
        messages(result(content=[text("x")])),
        messages(result(content=[IMAGE])),
        messages(result(content=[text('{"type": "tool_reference", "text": ""}')])),
        messages(result(content=[text('say ""')])),
        messages(result(content=[{**text("x"), "citations": "", "title": ""}])),
        messages(result(content="x", is_error=True)),
        chat("x"),
        chat([text("x")]),
        chat("[]"),
        Ex([*GO, said(""), user("")]),
    ],
)
def test_near_misses(exchange: Ex) -> None:
    assert found(CODE, exchange) == []


def test_each_kind_is_told_once() -> None:
    first = [*GO, said(use()), user(result(content=""))]
    second = [*first, said(use("pwd_1")), user(result("pwd_1", ""))]
    third = [*second, said(use("pwd_2")), user(result("pwd_2", [REFERENCE]))]
    findings = found(CODE, Ex(first), Ex(second), Ex(third))
    assert [(f.exchange, f.evidence.facts["kind"]) for f in findings] == [
        (1, "empty"),
        (3, "reference"),
    ]
