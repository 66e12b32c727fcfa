"""Pairs made anew of files that hold anything at all."""

from pathlib import Path
from typing import Any

import pytest

from moontap.capture import metadata
from moontap.capture.reader import FlowFile
from moontap.care.relog import Seen, relog
from tests.saved import conversation, write

FLOWS = conversation(["pwd", "ls", "date"])


def test_an_exchange_that_cannot_be_read_costs_no_other() -> None:
    flows = [flow.copy() for flow in FLOWS]
    # Not as `FlowFile` gives them, but as anything else may.
    flows[1].metadata = {metadata.HEALED: [[0]]}
    flows[2].comment = 5
    seen = Seen()
    lines = list(relog(flows, seen))
    assert [line["tool"] for line in lines if line["tool"]]
    assert seen.exchanges == len(flows) == len(seen.sessions)
    assert [session is None for session in seen.sessions] == [False, True, True, False]
    assert len(seen.unread) == 2
    assert all(why.startswith("POST /") for why in seen.unread)


def test_an_error_that_is_not_for_people_is_named_alone() -> None:
    flow = FLOWS[0].copy()
    flow.request.content = b'{"messages": "made-up-secret"}'
    flow.comment = 5
    seen = Seen()
    assert list(relog([flow], seen)) == []
    assert "made-up-secret" not in seen.unread[0]
    assert seen.unread[0].endswith("TypeError")


@pytest.mark.parametrize("odd", [None, 7, "text", [[0]], [[1, 2, 3, 4]], {"a": 1}])
def test_odd_metadata_in_a_file_changes_no_line(tmp_path: Path, odd: Any) -> None:
    plain = list(relog(FlowFile(write(tmp_path / "a.flow", FLOWS)), Seen()))
    flows = [flow.copy() for flow in FLOWS]
    for name, flow in zip(FLOWS, flows, strict=True):
        flow.id = name.id
        flow.metadata = dict.fromkeys((*metadata.ALL, metadata.SCRUBBED), odd)
        flow.metadata.pop(metadata.SESSION) if isinstance(odd, str) else None
        flow.metadata.pop(metadata.UPSTREAM_ENCODING) if isinstance(odd, str) else None
    seen = Seen()
    assert list(relog(FlowFile(write(tmp_path / "b.flow", flows)), seen)) == plain
    assert not seen.unread
