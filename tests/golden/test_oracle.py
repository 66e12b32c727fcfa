"""The oracle sees what a sheet could be updated to overlook."""

import json
from typing import Any

import pytest
from mitmproxy import http
from mitmproxy.test import tflow

from tests.golden.oracle import complaints
from tests.samples import MESSAGES, dump, messages_events, messages_request

NEW = b"Bash_0_tabcdefghij"
OLD = b"Bash_0"
SENT = b"".join(messages_events("Bash_0", "Bash_1"))
HISTORY = messages_request([("Bash_0", "pwd", "1"), ("Bash_0", "ls", "2")])


def flow(request: bytes, reply: bytes | None, **more: Any) -> http.HTTPFlow:
    made = tflow.tflow()
    made.request = http.Request.make("POST", f"https://api.moonshot.cn{MESSAGES}", request)
    if reply is not None:
        made.response = http.Response.make(200, reply, {"content-type": "text/event-stream"})
    made.metadata.update(more)
    return made


def said(before: http.HTTPFlow, after: http.HTTPFlow) -> str:
    return "; ".join(complaints([before], [after]))


def test_changed_ids_are_no_complaint() -> None:
    assert said(flow(b"{}", SENT), flow(b"{}", SENT)) == ""
    request = messages_request()
    got = SENT.replace(b'"%s"' % OLD, b'"%s"' % NEW)
    made = flow(request, got)
    # What tells the oracle which ids changed is the flow itself, as the tap saved it.
    made.metadata["moontap.upstream_body"] = SENT
    assert said(flow(request, SENT), made) == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"\n\n", b"\n"),
        (b"event: ping\n", b""),
        (b'"type": "message_stop"', b'"type":"message_stop"'),
        (b"pwd", b"ls"),
        (b'"Bash"', b'"bash"'),
    ],
)
def test_any_other_byte_is(old: bytes, new: bytes) -> None:
    request = messages_request()
    got = SENT.replace(b'"%s"' % OLD, b'"%s"' % NEW).replace(old, new, 1)
    made = flow(request, got)
    made.metadata["moontap.upstream_body"] = SENT
    assert said(flow(request, SENT), made) == (
        "exchange 1: the client got other bytes than upstream's with the ids changed"
    )


def test_a_reply_that_broke_off_may_lack_its_end_and_nothing_else() -> None:
    request, part = messages_request(), SENT[:-40]
    assert said(flow(request, SENT), flow(request, part, **{"moontap.incomplete": True})) == ""
    assert "other bytes" in said(flow(request, SENT), flow(request, part))
    broken = flow(request, SENT[40:], **{"moontap.incomplete": True})
    assert "other bytes" in said(flow(request, SENT), broken)


def healed(**changes: str) -> bytes:
    """The history with its second call and result renamed, and what else is asked for."""
    body = json.loads(HISTORY)
    body["messages"][3]["content"][0]["id"] = changes.get("call", NEW.decode())
    body["messages"][4]["content"][0]["tool_use_id"] = changes.get("result", NEW.decode())
    if "content" in changes:
        body["messages"][4]["content"][0]["content"] = changes["content"]
    return dump(body)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, ""),
        ({"content": "3"}, "exchange 1: the request was changed at content"),
        (
            {"call": "Bash_0", "result": "Bash_9"},
            "exchange 1: a healed history still has duplicate ids",
        ),
    ],
)
def test_a_request_may_change_in_its_ids(changes: dict[str, str], says: str) -> None:
    assert said(flow(HISTORY, None), flow(healed(**changes), None)) == says


def test_a_reply_that_is_not_there_is_a_complaint() -> None:
    assert "one way has a reply" in said(flow(b"{}", SENT), flow(b"{}", None))
    assert list(complaints([flow(b"{}", SENT)], [])) == [
        "1 exchanges were recorded, 0 came of them"
    ]
