"""A flow file that was changed, or was recorded elsewhere, does not pass unseen."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from mitmproxy import http

from moontap.capture import metadata
from moontap.capture.reader import FlowFile
from scripts.flows_lib.scene import write
from tests.golden import judge, sheet
from tests.proxying import HOST

FLOWS = Path(__file__).parents[2] / "flows"
NAME = "chat-parallel-whole"  # rewritten, so that upstream's body is saved apart


def changed(folder: Path, change: Callable[[http.HTTPFlow], None]) -> Path:
    """A copy of the flow whose first exchange was changed, with its sheet."""
    flows = list(FlowFile(FLOWS / f"{NAME}.flow"))
    change(flows[0])
    file = folder / f"{NAME}.flow"
    write(flows, file)
    shutil.copy(sheet.path_of(FLOWS / f"{NAME}.flow"), folder)
    return file


def flip(flow: http.HTTPFlow) -> None:
    assert flow.response
    body = flow.response.raw_content or b""
    assert metadata.UPSTREAM_BODY in flow.metadata
    flow.response.raw_content = body.replace(b"Bash", b"bash", 1)


def count_more(flow: http.HTTPFlow) -> None:
    flow.metadata[metadata.CALLS] += 1


def rename(flow: http.HTTPFlow) -> None:
    flow.metadata[metadata.SESSION] = "another"


@pytest.mark.parametrize("way", [judge.OFFLINE, judge.PROXY])
@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (flip, "exchange 1: its client got other bytes when it was recorded"),
        (count_more, "exchange 1: moontap.calls was 4 when it was recorded, now 3"),
        (rename, "exchange 1: moontap.session was 'another' when it was recorded, now 'conv"),
    ],
)
def test_what_was_delivered_then_is_delivered_now(
    tmp_path: Path, change: Callable[[http.HTTPFlow], None], complaint: str, way: str
) -> None:
    with pytest.raises(judge.Wrong, match=complaint):
        judge.check(changed(tmp_path, change), "x.flow", way)


def test_where_it_was_recorded_does_not_matter(tmp_path: Path) -> None:
    """README's own recordings are made before a stand-in on loopback."""

    def move(flow: http.HTTPFlow) -> None:
        flow.request.scheme, flow.request.host, flow.request.port = "http", "127.0.0.1", 8765

    file = changed(tmp_path, move)
    assert next(iter(FlowFile(file))).request.host != HOST
    for way in (judge.OFFLINE, judge.PROXY):
        judge.check(file, "x.flow", way)
