"""What the views show of a flow, read from the flow alone.

A mitmproxy flow in, the plain data of `views.shown` out; live, finished, broken off or loaded, with
or without moontap's metadata. Raises ValueError, with the reason, for what it cannot read.
"""

import logging
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mitmproxy import http

from moontap import ids
from moontap.capture import metadata
from moontap.capture.exchange import (
    client_request,
    looks_streamed,
    upstream_ids,
    upstream_reply,
)
from moontap.capture.pairlog import ended, request_id
from moontap.findings.types import Severity
from moontap.identity import identify
from moontap.looking.facts import Facts, FindingFact
from moontap.looking.views.shown import ShownReply, ShownRequest, ShownStream
from moontap.wire import encoding
from moontap.wire.protocol import Wire, of_request, read_stream
from moontap.wire.types import Reply

logger = logging.getLogger(__name__)


def wire_of(flow: http.HTTPFlow) -> Wire | None:
    """The protocol of a flow; None where moontap does not read it."""
    return of_request(flow.request.method, flow.request.path)


def request_of(flow: http.HTTPFlow, facts: Facts | None = None) -> ShownRequest:
    """What was sent. facts: what the run has come to know of it. Raises ValueError."""
    wire, kept = _paired(flow), metadata.settled(flow.metadata)
    body = client_request(flow, kept)
    request = wire.read_request(body)
    identity = identify(flow.request.headers, request.session)
    return ShownRequest(
        wire=wire,
        request=request,
        body=body,
        size=len(flow.request.raw_content or b""),
        new=kept.get(metadata.NEW),
        session=kept.get(metadata.SESSION) or identity.session,
        agent=identity.agent,
        exchange=facts.number if facts else None,
        conversation=facts.conversation if facts else None,
        findings=_findings(facts, kept.get(metadata.FINDINGS)),
        healed=len(kept.get(metadata.HEALED, ())),
        reminded=metadata.REMINDED in kept,
        blocked=kept.get(metadata.BLOCKED),
    )


def reply_of(flow: http.HTTPFlow, facts: Facts | None = None) -> ShownReply:
    """What came back, as far as it came; facts as above. Raises ValueError."""
    wire, kept = _paired(flow), metadata.settled(flow.metadata)
    response, body = _response(flow)
    streamed = looks_streamed(response, body)
    reply = _read(wire, body, streamed)
    ids = upstream_ids(upstream_reply(wire, response, kept) or reply, reply)
    end, asked = ended(flow), flow.request.timestamp_end
    live = is_live(flow)
    # What breaks off after its end is no loss: the OpenAI SDK hangs up at `[DONE]`.
    cut = bool(kept.get(metadata.INCOMPLETE) or flow.error) and not live and not reply.complete
    return ShownReply(
        wire=wire,
        reply=reply,
        body=body,
        status=response.status_code,
        streamed=streamed,
        upstream_ids=ids,
        used=_used(wire, flow, kept, ids),
        live=live,
        cut=cut,
        trouble=flow.error.msg if flow.error and cut else None,
        seconds=max(0.0, end - asked) if end and asked and not live else None,
        request_id=request_id(flow),
        exchange=facts.number if facts else None,
        findings=_findings(facts, kept.get(metadata.FINDINGS)),
        results=_results(kept.get(metadata.ANSWERS, ()), reply),
        blocked=kept.get(metadata.BLOCKED),
    )


def is_stream(flow: http.HTTPFlow) -> bool:
    """Whether its reply is an event stream."""
    return looks_streamed(*_response(flow))


def stream_of(flow: http.HTTPFlow) -> ShownStream:
    """A streamed reply as it came. Raises ValueError, also where it is no stream."""
    wire, kept = _paired(flow), metadata.settled(flow.metadata)
    response, body = _response(flow)
    if not looks_streamed(response, body):
        raise ValueError("this is no event stream")
    upstream, coding = kept.get(metadata.UPSTREAM_BODY), kept.get(metadata.UPSTREAM_ENCODING)
    if upstream is None:
        upstream, coding = response.raw_content or b"", response.headers.get("content-encoding")
    plain = encoding.decode_prefix(upstream, coding)
    chunks = [(size, at) for size, at in kept.get(metadata.CHUNKS, ())]
    untimed = ""
    if not chunks:
        untimed = "the tap did not record this"
    elif sum(size for size, _ in chunks) != len(plain):
        untimed = "the body came compressed, and its chunks do not tell when an event came"
    live = is_live(flow)
    return ShownStream(
        wire=wire,
        body=body,
        upstream=plain,
        chunks=[] if untimed else chunks,
        untimed=untimed,
        live=live,
        cut=bool(kept.get(metadata.INCOMPLETE) or flow.error) and not live,
    )


def _paired(flow: http.HTTPFlow) -> Wire:
    wire = wire_of(flow)
    if wire is None:
        raise ValueError(f"{flow.request.method} {flow.request.path}: moontap does not read these")
    return wire


def _response(flow: http.HTTPFlow) -> tuple[http.Response, bytes]:
    response = flow.response
    if response is None:
        raise ValueError("there is no response")
    coding = response.headers.get("content-encoding")
    return response, encoding.decode_prefix(response.raw_content or b"", coding)


def _read(wire: Wire, body: bytes, streamed: bool) -> Reply:
    return read_stream(wire, body) if streamed else wire.reader().whole(body)


def is_live(flow: http.HTTPFlow) -> bool:
    """Whether its reply is still coming."""
    response = flow.response
    return bool(flow.live and response and not response.timestamp_end and not flow.error)


def _used(
    wire: Wire, flow: http.HTTPFlow, kept: Mapping[str, Any], upstream_ids: Sequence[str | None]
) -> frozenset[str]:
    """The ids that the history holds, and those of the reply that it holds as the tap made them
    anew: it was told of `Bash_0_tq4k2xw7m3a`, and upstream had sent `Bash_0`."""
    try:
        history = set(wire.read_request(client_request(flow, kept)).call_ids)
    except Exception as error:  # whatever it is, the reply can be shown all the same
        logger.debug("moontap: a history was not read", exc_info=error)
        return frozenset()
    readable = {ids.readable(id_) for id_ in history}
    again = {id_ for id_ in upstream_ids if id_ and ids.safe(id_) in readable}
    return frozenset(history | again)


def _results(answers: Iterable[Sequence[str]], reply: Reply) -> list[str | None]:
    """What became of each call. Of several with one id the first has the first answer; where not
    all of them have one, nobody can tell which."""
    by_id: dict[str | None, deque[str]] = {}
    for id_, answer in answers:
        by_id.setdefault(id_, deque()).append(answer)
    calls = Counter(call.id for call in reply.calls)
    certain = {id_ for id_, found in by_id.items() if len(found) == calls[id_]}
    return [by_id[call.id].popleft() if call.id in certain else None for call in reply.calls]


def _findings(facts: Facts | None, kept: str | None) -> Sequence[FindingFact]:
    """kept: see `capture.metadata.FINDINGS`."""
    if facts and facts.findings:
        return tuple(facts.findings)
    said = (one.partition(" ") for one in kept.split(", ")) if kept else ()
    return [
        FindingFact(code, severity, "", "", f"docs/findings.md#{code}")
        for severity, _, code in said
        if severity in set(Severity)
    ]
