from __future__ import annotations

from typing import Any

import pytest

from tests.findings.checks.test_stream_cut import END, START
from tests.findings.rig import Ex, chunks, found, stream, user


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize(
    ("reply", "status", "error", "expected"),
    [
        (b"", 200, None, 1),
        (b" \r\n\n", 200, None, 1),
        (b"", 204, None, 1),
        (b"", 500, None, 0),
        (b"", 200, "peer closed connection", 0),
        (None, 200, None, 0),
        (b'{"error":{}}', 200, None, 0),
    ],
)
def test_nothing_came(
    chat: bool, reply: Any, status: int, error: str | None, expected: int
) -> None:
    one = Ex([user("go")], reply, chat=chat, status=status, error=error)
    findings = found("reply-empty", one)
    assert [f.severity.value for f in findings] == ["warning"] * expected


@pytest.mark.parametrize(("reply", "chat"), [(stream(START, END), False), (chunks(), True)])
def test_an_end_is_something(reply: bytes, chat: bool) -> None:
    assert found("reply-empty", Ex([user("go")], reply, chat=chat)) == []
