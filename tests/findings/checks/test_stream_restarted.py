from __future__ import annotations

import pytest

from tests.findings.checks.test_stream_cut import BLOCK, CALL, DONE, END, REASON, START, STOP, chunk
from tests.findings.rig import Ex, chunks, found, stream, user

TEXT = chunk({"content": "hm"})
OTHER = {**START, "message": {"id": "msg_2", "role": "assistant", "content": []}}


@pytest.mark.parametrize(
    ("reply", "chat", "restarts"),
    [
        (stream(START, BLOCK, OTHER, BLOCK, STOP, REASON, END), False, 1),
        (stream(START, START, START, END), False, 2),
        (chunks(CALL, TEXT, {**CALL, "id": "d"}, {**DONE, "id": "d"}), True, 1),
    ],
)
def test_it_began_anew(reply: bytes, chat: bool, restarts: int) -> None:
    one = Ex([user("go")], reply, chat=chat)
    [finding] = found("stream-restarted", one, one)
    assert finding.evidence.facts["restarts"] == restarts
    assert finding.severity.value == "warning"


@pytest.mark.parametrize(
    ("reply", "chat"),
    [
        (stream(START, BLOCK, STOP, REASON, END), False),
        (stream(START, END, START, END), False),  # stream-doubled
        (chunks(CALL, DONE), True),
        # A server that gives every chunk an id of its own.
        (chunks(*({**CALL, "id": str(n)} for n in range(9)), DONE), True),
        (chunks(CALL, {**DONE, "id": "d"}), True),
        (chunks(CALL, *({**TEXT, "id": str(n)} for n in range(90)), {**DONE, "id": "d"}), True),
    ],
)
def test_it_did_not(reply: bytes, chat: bool) -> None:
    assert found("stream-restarted", Ex([user("go")], reply, chat=chat)) == []
