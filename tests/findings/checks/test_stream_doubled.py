from __future__ import annotations

import pytest

from tests.findings.checks.test_stream_cut import BLOCK, CALL, DONE, END, REASON, START, STOP
from tests.findings.rig import Ex, chunks, found, stream, user

SECOND = ({**BLOCK, "index": 1}, {**STOP, "index": 1})
TWICE = chunks(CALL, DONE) + b"data: [DONE]\n\n"


@pytest.mark.parametrize(
    ("reply", "chat", "expected"),
    [
        (stream(START, BLOCK, STOP, STOP, REASON, END), False, {"content_block_stop": 1}),
        (stream(START, BLOCK, STOP, REASON, END, END, END), False, {"message_stop": 2}),
        (TWICE, True, {"[DONE]": 1}),
        (stream(START, BLOCK, STOP, *SECOND, REASON, END), False, {}),
        (stream(START, BLOCK, STOP, BLOCK, STOP, REASON, END), False, {}),
        (chunks(CALL, DONE), True, {}),
    ],
)
def test_what_came_twice(reply: bytes, chat: bool, expected: dict[str, int]) -> None:
    one = Ex([user("go")], reply, chat=chat)
    findings = found("stream-doubled", one, one)
    facts = [f.evidence.facts for f in findings]
    assert {one["event"]: one["count"] for one in facts} == expected
    assert len(findings) == len(expected)
