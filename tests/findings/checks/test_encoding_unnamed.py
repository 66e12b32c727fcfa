from __future__ import annotations

import gzip
import zlib

import pytest

from tests.findings.checks.test_stream_cut import CALL, DONE, END, START
from tests.findings.rig import Ex, chunks, found, stream, user

MESSAGES, CHAT = stream(START, END), chunks(CALL, DONE)
SSE = {"content-type": "text/event-stream"}


@pytest.mark.parametrize(("body", "chat"), [(MESSAGES, False), (CHAT, True)])
@pytest.mark.parametrize(
    ("pack", "headers", "expected"),
    [
        (gzip.compress, {}, ["gzip"]),
        (gzip.compress, {"content-encoding": "gzip"}, []),
        (zlib.compress, {"content-encoding": "deflate"}, []),
        (bytes, {}, []),
    ],
)
def test_whether_the_headers_say_so(
    body: bytes, chat: bool, pack: type[bytes], headers: dict[str, str], expected: list[str]
) -> None:
    one = Ex([user("go")], pack(body), chat=chat, headers={**SSE, **headers})
    findings = found("encoding-unnamed", one, one)
    assert [f.evidence.facts["encoding"] for f in findings] == expected
    assert all(f.severity.value == "warning" for f in findings)
