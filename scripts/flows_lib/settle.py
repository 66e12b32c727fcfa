"""What changes from run to run, made the same: ids of flows and connections, and times.

Saved flows in, the same flows out, edited in place; addresses and the like go when they are
scrubbed. Statuses and the order of starts and ends are
never changed; of bodies only ids of flows in what the guard answered, of headers only the date.
"""

import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from mitmproxy import http
from mitmproxy.connection import Connection

from moontap.capture import metadata
from tests.golden.ways import schedule

START = datetime(2026, 1, 5, 9, tzinfo=UTC).timestamp()
STEP = 1.0
"""Seconds from one start or end to the next."""

WAIT = 0.2
"""Seconds from the end of a request to the headers of its reply."""

CHUNK = 0.005
"""Seconds from one chunk to the next."""

_NAMES = uuid.uuid5(uuid.NAMESPACE_URL, "moontap/flows")


def settle(name: str, flows: Sequence[http.HTTPFlow]) -> None:
    """Settle the flows of a file, given in the order in which they ended."""
    now = START
    for starts, number in schedule(flows):
        now += STEP
        flow = flows[number]
        if starts:
            flow.request.timestamp_start = now
            flow.request.timestamp_end = now + 0.01
        else:
            now = _end(flow, now)
    ids = {flow.id: _id(name, number) for number, flow in enumerate(flows, 1)}
    for number, flow in enumerate(flows, 1):
        flow.id = ids[flow.id]
        _answer(flow, ids)
        flow.timestamp_created = flow.request.timestamp_start
        flow._backup = None
        _connection(flow.client_conn, _id(name, number, "client"), flow.timestamp_created)
        _connection(flow.server_conn, _id(name, number, "server"), flow.timestamp_created)
        if flow.server_conn.timestamp_tcp_setup:
            flow.server_conn.timestamp_tcp_setup = flow.timestamp_created
        if flow.response and "date" in flow.response.headers:
            moment = datetime.fromtimestamp(flow.request.timestamp_start, UTC)
            flow.response.headers["date"] = moment.strftime("%a, %d %b %Y %H:%M:%S GMT")


def _answer(flow: http.HTTPFlow, ids: Mapping[str, str]) -> None:
    """What the guard answered names the exchanges that it counted."""
    if flow.response and metadata.BLOCKED in flow.metadata:
        body = flow.response.raw_content or b""
        for old, new in ids.items():
            body = body.replace(old.encode(), new.encode())
        flow.response.raw_content = body


def _end(flow: http.HTTPFlow, now: float) -> float:
    """Settle a reply; when it ends, at the earliest now."""
    chunks = flow.metadata.get(metadata.CHUNKS) or []
    flow.metadata[metadata.CHUNKS] = [
        [size, round(number * CHUNK * 1000, 1)] for number, (size, _) in enumerate(chunks, 1)
    ]
    if not chunks:
        del flow.metadata[metadata.CHUNKS]
    started = (flow.request.timestamp_end or 0) + WAIT
    now = max(now, started + (len(chunks) + 1) * CHUNK)
    if flow.response:
        flow.response.timestamp_start = started
        if flow.response.timestamp_end:
            flow.response.timestamp_end = now
    if flow.error:
        flow.error.timestamp = now
    return now


def _connection(connection: Connection, id_: str, moment: float) -> None:
    connection.id = id_
    connection.timestamp_start = moment
    connection.timestamp_end = None
    if connection.timestamp_tls_setup:
        connection.timestamp_tls_setup = moment


def _id(*parts: object) -> str:
    return str(uuid.uuid5(_NAMES, "/".join(map(str, parts))))
