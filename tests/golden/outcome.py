"""What a run came to, in the few words that a sheet holds.

The folder of a run in, plain data out, the same for the same traffic: no times, no flow ids. What
is null, false, zero or empty is left out.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mitmproxy import http

from moontap import canonical
from moontap.capture import exchange as exchanges
from moontap.capture import metadata
from moontap.wire.encoding import decode_prefix
from moontap.wire.history import HistoryReader
from tests.golden.sheet import Expectation
from tests.proxying import flows_of

SHORT = 90
"""Longest arguments and results that are written out; what is longer is cut, and hashed."""

TIMED = frozenset({"stream-slow", "guard-stopped", "guard-reminded"})
"""Findings about how long something took, as a replay takes another time, and about what the guard
did, which a replay goes without."""

_BARE = re.compile(r"[\w:.$-]+")


def outcome(folder: Path) -> Expectation:
    """The exchanges, pairs and findings of one run's folder, in their order."""
    flows = flows_of(folder)
    numbers = {flow.id: number for number, flow in enumerate(flows, 1)}
    found: dict[str, Any] = {
        "exchanges": [_exchange(number, flow) for number, flow in enumerate(flows, 1)],
        "pairs": [_pair(line, numbers) for line in logged(folder / "pairs.jsonl")],
    }
    lines = [line for line in logged(folder / "findings.jsonl") if line["code"] not in TIMED]
    if lines:
        found["findings"] = list(map(_finding, lines))
    return found


def logged(file: Path) -> list[dict[str, Any]]:
    """The lines of a log; none where there is no file."""
    return [json.loads(line) for line in file.read_bytes().splitlines()] if file.exists() else []


def changes(flow: http.HTTPFlow) -> list[tuple[str | None, str | None]]:
    """The calls of a flow's reply as (upstream id, id), in the order they came."""
    exchange = exchanges.read(flow, HistoryReader())
    return [(call.upstream_id, call.call.id) for call in exchange.calls] if exchange else []


def sha256(data: bytes | None) -> str:
    return hashlib.sha256(data or b"").hexdigest()


def _exchange(number: int, flow: http.HTTPFlow) -> dict[str, Any]:
    found: dict[str, Any] = {"number": number}
    found["request"] = f"{flow.request.method} {flow.request.path}"
    response, calls = flow.response, []
    try:
        if exchange := exchanges.read(flow, HistoryReader()):
            found["protocol"] = exchange.wire.protocol.value
            calls = [
                f"{call.call.name}: {_change(call.upstream_id, call.call.id)}"
                for call in exchange.calls
            ]
    except ValueError as error:
        found["unread"] = str(error)
    found["status"] = response.status_code if response else "no answer"
    found["streamed"] = "event-stream" in (
        response.headers.get("content-type", "") if response else ""
    )
    found["calls"] = calls
    found["rewritten"] = flow.metadata.get(metadata.REWRITTEN, 0)
    found["healed"] = len(flow.metadata.get(metadata.HEALED, ()))
    found["incomplete"] = flow.metadata.get(metadata.INCOMPLETE, False)
    found["request_sha256"] = sha256(flow.request.raw_content)
    found["delivered_sha256"] = sha256(delivered(response))
    return _filled(found)


def delivered(response: http.Response | None) -> bytes:
    """The body as the client reads it. While rewriting is on, a live reply is decoded in any case,
    a loaded one only where an id in it changes."""
    if response is None or not response.raw_content:
        return b""
    return decode_prefix(response.raw_content, response.headers.get("content-encoding"))


def _change(upstream_id: str | None, id_: str | None) -> str:
    shown = [json.dumps(one, ensure_ascii=False) for one in (upstream_id, id_)]
    return shown[1] if shown[0] == shown[1] else " -> ".join(shown)


def _pair(line: Mapping[str, Any], numbers: Mapping[str, int]) -> dict[str, Any]:
    found: dict[str, Any] = {name: line[name] for name in ("status", "tool", "id")}
    found["upstream_id"] = line["upstream_id"] if line["rewritten"] else None
    found["duplicate"] = line["duplicate"]
    found["source"] = line["source"]
    found["session"] = "derived" if line["session"].startswith("conversation-") else "named"
    found["agent"] = line["agent"]
    for name in ("arguments", "result"):
        text = canonical.encode(line[name]).decode("utf-8", "replace")
        if line[f"{name}_sha256"] is None:
            continue
        found[name] = text if len(text) <= SHORT else f"{text[:SHORT]}…"
        if len(text) > SHORT:
            found[f"{name}_sha256"] = line[f"{name}_sha256"]
    found["call"] = numbers.get(line["call_flow"])
    found["answered"] = numbers.get(line["result_flow"])
    return _filled(found)


def _finding(line: Mapping[str, Any]) -> str:
    """`3: id-reused warning api Bash_0`: exchange, code, severity, party, ids."""
    evidence = line["evidence"]
    words = [line["code"], line["severity"], line["party"], *map(_word, evidence.get("ids", ()))]
    return f"{evidence['exchange']}: {' '.join(words)}"


def _word(id_: str | None) -> str:
    """An id, in quotes where it could be taken for something else."""
    if id_ and id_ != "null" and _BARE.fullmatch(id_):
        return id_
    return json.dumps(id_, ensure_ascii=False)


def _filled(found: Mapping[str, Any]) -> dict[str, Any]:
    # An empty id is a finding, not nothing.
    return {name: value for name, value in found.items() if value == "" or not _is_empty(value)}


def _is_empty(value: Any) -> bool:
    return (
        value is None or value is False or value == 0 or (isinstance(value, Sequence) and not value)
    )
