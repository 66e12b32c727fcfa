"""What stands in saved flows more than once, and what only shares an id."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from mitmproxy import http
from mitmproxy.test import tflow

from moontap.commands.look import labels
from moontap.commands.snapshots import Snapshots

ID = "1b0dd5a0-0000-4000-8000-000000000001"


def exchange(
    begun: float = 5.0, body: bytes | None = b"whole", *, id_: str = ID, whole: bool = True
) -> http.HTTPFlow:
    flow = tflow.tflow(resp=body is not None)
    flow.id, flow.request.timestamp_start = id_, begun
    if flow.response:
        flow.response.raw_content = body
    if not whole:
        flow.metadata["moontap.incomplete"] = True
    return flow


@pytest.mark.parametrize(
    ("flows", "shown", "ids"),
    [
        ([exchange(), exchange()], [0], 1),  # in two files
        ([exchange(body=b"wh"), exchange()], [1], 1),
        ([exchange(), exchange(body=b"wh")], [0], 1),
        ([exchange(body=None), exchange(body=b"wh", whole=False), exchange(body=b"w")], [2], 1),
        ([exchange(body=b"long, broken off", whole=False), exchange()], [1], 1),
        ([exchange(5.0), exchange(6.0)], [0, 1], 2),  # a client replay
        ([exchange(5.0), exchange(6.0), exchange(6.0), exchange(5.0)], [0, 1], 2),
        ([exchange(0.0), exchange(0.0, b"another")], [0, 1], 2),
        ([exchange(0.0), exchange(0.0)], [0], 1),
    ],
)
def test_each_exchange_is_shown_once(
    flows: list[http.HTTPFlow], shown: list[int], ids: int
) -> None:
    snapshots = Snapshots()
    flows = [flow_of(flow) for flow in flows]
    for flow in flows:
        snapshots.note(flow)
    chosen = [number for number, flow in enumerate(flows) if snapshots.shows(flow)]
    assert chosen == shown
    found = [flows[number].id for number in chosen]
    assert len(set(found)) == ids
    assert found[0] == ID


def flow_of(flow: http.HTTPFlow) -> http.HTTPFlow:
    copied: http.HTTPFlow = flow.copy()
    copied.id = flow.id
    return copied


@pytest.mark.parametrize("id_", ["har-1", "flow/1 <b>", "at-17", "DEADBEEF"])
def test_an_id_that_mitmweb_cannot_open_is_another(id_: str) -> None:
    snapshots, flow = Snapshots(), exchange(id_=id_)
    snapshots.note(flow)
    assert snapshots.shows(flow)
    assert re.fullmatch("[0-9a-f-]+", flow.id)


def test_one_written_since_is_shown() -> None:
    snapshots = Snapshots()
    assert snapshots.shows(exchange())


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["flows/chat.flow"], []),
        (["flows/chat.flow", "flows/more.har"], ["chat.flow", "more.har"]),
        (["a/x.flow", "b/x.flow"], ["a/x.flow", "b/x.flow"]),
        (["c/2026-1/traffic.flow", "c/2026-2/traffic.flow"], ["2026-1", "2026-2"]),
        (["a b;c.flow", "d.flow"], ["a_b_c.flow", "d.flow"]),
    ],
)
@pytest.mark.parametrize("root", ["", "/tmp"])
def test_the_word_for_a_file(files: list[str], names: list[str], root: str) -> None:
    made: Callable[[str], Path] = Path(root).joinpath
    assert list(labels([made(file) for file in files]).values()) == [
        f"file={name};" for name in names
    ]
