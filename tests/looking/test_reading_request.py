from __future__ import annotations

import gzip
from typing import Any

import pytest
from mitmproxy import http
from mitmproxy.test import tflow

from moontap.capture import metadata
from moontap.looking import reading
from moontap.rewrite import splice
from tests.looking.views.asked import known
from tests.samples import CHAT, MESSAGES, chat_request, dump, messages_request

BODY = messages_request([("Bash_0", "ls", "a.txt")])


def _flow(body: bytes | None, path: str = MESSAGES, **headers: str) -> http.HTTPFlow:
    flow = tflow.tflow()
    flow.request.method, flow.request.path = "POST", path
    flow.request.headers = http.Headers()
    flow.request.headers.update({name.replace("_", "-"): one for name, one in headers.items()})
    flow.request.raw_content = body
    return flow


@pytest.mark.parametrize("path", [MESSAGES, CHAT])
@pytest.mark.parametrize(
    ("body", "why"),
    [
        (None, "the request body is not there"),
        (b"", "no JSON object with a list of messages"),
        (b"{", "no JSON object with a list of messages"),
        (b"[]", "no JSON object with a list of messages"),
        (b"{}", "no JSON object with a list of messages"),
        (b"\xff\xfe", "no JSON object with a list of messages"),
        (dump({"messages": "go"}), "no JSON object with a list of messages"),
        (dump({"messages": {"role": "user"}}), "no JSON object with a list of messages"),
        (b'{"messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "list of messages"),
    ],
)
def test_says_why_a_request_cannot_be_read(path: str, body: bytes | None, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        reading.request_of(_flow(body, path))


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", MESSAGES), ("POST", f"{MESSAGES}/count_tokens"), ("POST", "/v1/models")],
)
def test_other_requests_are_not_read(method: str, path: str) -> None:
    flow = _flow(BODY, path)
    flow.request.method = method
    with pytest.raises(ValueError, match="moontap does not read these"):
        reading.request_of(flow)


@pytest.mark.parametrize(
    ("path", "body"), [(MESSAGES, BODY), (CHAT, chat_request([("Bash:0", "ls", "a.txt")]))]
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_request_without_anything_of_moontap(path: str, body: bytes, packed: bool) -> None:
    sent = gzip.compress(body) if packed else body
    headers = {"content_encoding": "gzip"} if packed else {}
    shown = reading.request_of(_flow(sent, path, **headers))
    assert (shown.body, shown.size) == (body, len(sent))
    assert [message.role for message in shown.request.messages][:2] == ["user", "assistant"]
    assert (shown.new, shown.session, shown.agent) == (None, None, None)
    assert (list(shown.findings), shown.healed, shown.reminded, shown.blocked) == (
        [],
        0,
        False,
        None,
    )


def test_a_body_that_cannot_be_unpacked() -> None:
    with pytest.raises(ValueError, match="when decoding"):
        reading.request_of(_flow(BODY, content_encoding="gzip"))


def test_what_moontap_keeps_of_a_request() -> None:
    at = BODY.rindex(b"Bash_0")
    flow = _flow(splice(BODY, [(at, at + 6, b"Bash_0_healed")]))
    flow.metadata.update(
        {
            metadata.HEALED: [[at, 13, b"Bash_0"]],
            metadata.REMINDED: [],
            metadata.BLOCKED: "blocked_limit",
            metadata.NEW: 1,
            metadata.FINDINGS: "error id-reused, info stream-slow",
            metadata.SESSION: "s",
        }
    )
    shown = reading.request_of(flow)
    assert shown.body == BODY  # as the client sent it
    assert (shown.healed, shown.reminded, shown.blocked, shown.new) == (1, True, "blocked_limit", 1)
    assert list(shown.findings) == [known("error", "id-reused"), known("info", "stream-slow")]
    assert shown.session == "s"


@pytest.mark.parametrize(
    "kept",
    [
        {metadata.HEALED: "nonsense"},
        {metadata.HEALED: [[1, 2]]},
        {metadata.REMINDED: [["a", "b", "c"]]},
        {metadata.NEW: "one"},
        {metadata.FINDINGS: 5},
        {metadata.SESSION: []},
        {5: 6},
    ],
)
def test_metadata_of_another_make_does_no_harm(kept: dict[Any, Any]) -> None:
    flow = _flow(BODY)
    flow.metadata.update(kept)
    shown = reading.request_of(flow)
    assert (shown.body, shown.new, shown.healed, shown.session) == (BODY, None, 0, None)


def test_who_it_is_from() -> None:
    headers = {"X_Claude_Code_Session_Id": "session-1", "X_Claude_Code_Agent_Id": "agent-2"}
    shown = reading.request_of(_flow(BODY, **headers))
    assert (shown.session, shown.agent) == ("session-1", "agent-2")
