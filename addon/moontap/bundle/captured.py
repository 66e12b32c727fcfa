"""What reproduce.py is to ask for: the tools, model and server of the captured sequence.

Exchanges as the diagnosis saw them in, `reproduce.Captured` out. Pure but for reading the flows.
"""

import json
from collections.abc import Sequence
from typing import Any

from mitmproxy import http

from moontap.bundle.reproduce import Captured
from moontap.bundle.rounds import Call, Round, reused
from moontap.capture.diagnosis import Looked
from moontap.findings.types import Finding
from moontap.tapping.upstream import DEFAULT, LOOPBACK
from moontap.wire.types import Protocol

_LONGEST_ABOUT = 300  # an agent's own descriptions take up to 10 KB a tool
_MODEL, _NAME = "kimi-k3", "pwd"


def captured(
    exchanges: Sequence[Looked], sequence: Sequence[Round], finding: Finding | None
) -> Captured | None:
    """What to ask for; None where nothing of it was an exchange with a model."""
    requests = [
        (one.flow, one.turn, one.turn.sent.request)
        for one in exchanges
        if one.turn and one.turn.sent
    ]
    if not requests:
        return None
    # An agent's side requests, for a title and the like, declare no tools.
    with_tools = [one for one in requests if one[2].asked.tools]
    flow, turn, request = (with_tools or requests)[-1]
    declared = _declared(request.asked.tools)
    found = reused(sequence)
    names = _concerned(sequence, found, finding) or list(declared)[:1] or [_NAME]
    at_once = len(found[2].calls) if found and found[1] is found[2] else 1
    return Captured(
        turn.protocol,
        _base_url(flow.request),
        turn.model or _MODEL,
        request.stream,
        [declared.get(name) or _tool(turn.protocol, name) for name in names],
        names,
        at_once,
    )


def _concerned(
    sequence: Sequence[Round],
    found: tuple[Call, Round, Round] | None,
    finding: Finding | None,
) -> list[str]:
    """The tools that it is about."""
    calls = [call for one in sequence for call in one.calls if call.tool]
    if found:
        id_ = found[0].upstream_id
        mine = [call for call in calls if call.upstream_id == id_]
    else:
        ids = finding.evidence.ids if finding else ()
        mine = [call for call in calls if call.id in ids] or calls[:1]
    return list(dict.fromkeys(call.tool for call in mine))


def _tool(protocol: Protocol, name: str) -> dict[str, Any]:
    """A declaration for a tool that the request does not declare."""
    takes = {"type": "object", "properties": {}}
    if protocol is Protocol.ANTHROPIC:
        return {"name": name, "input_schema": takes}
    return {"type": "function", "function": {"name": name, "parameters": takes}}


def _declared(tools: bytes) -> dict[str, Any]:
    """The declarations of a request's tools, by their names; long descriptions cut."""
    try:
        known = json.loads(tools or b"[]")
    except (ValueError, RecursionError):
        return {}
    found = {}
    for tool in known if isinstance(known, list) else ():
        inner = tool.get("function", tool) if isinstance(tool, dict) else None
        if isinstance(inner, dict) and isinstance(inner.get("name"), str):
            about = inner.get("description")
            if isinstance(about, str) and len(about) > _LONGEST_ABOUT:
                inner["description"] = about[:_LONGEST_ABOUT] + "…"
            found[inner["name"]] = tool
    return found


def _base_url(request: http.Request) -> str:
    """Where a client would be pointed; where that was this machine, the API itself."""
    path = request.path.partition("?")[0].rstrip("/")
    messages = path.endswith("/messages")
    suffix = "/v1/messages" if messages else "/chat/completions"
    base = path.removesuffix(suffix)
    if request.host in LOOPBACK:
        return DEFAULT + ("/anthropic" if messages else "/v1")
    host = f"[{request.host}]" if ":" in request.host else request.host
    port = "" if request.port in (80, 443) else f":{request.port}"
    origin = f"{request.scheme}://{host}{port}"
    whole = not messages and not base.endswith("/v1")
    return origin + (path if whole else base)
