"""Turns for the checks, from exchanges that were read from saved flows.

What the pair log made of a flow in, a `Turn` out. Reads what was saved alone, so that a live run
and its saved flows give the same findings.
"""

from contextlib import suppress
from itertools import pairwise
from typing import Any

from mitmproxy import http

from moontap.capture import metadata
from moontap.capture.exchange import Exchange
from moontap.capture.pairlog import Logged, ended, request_id
from moontap.findings.turn import Got, Sent, Stopped, Turn
from moontap.findings.types import Part
from moontap.rules import Rules
from moontap.wire import encoding, jsontext
from moontap.wire.protocol import read_stream
from moontap.wire.types import Reply

_ASKED = Part.HISTORY | Part.TOOLS | Part.TURNS


def turn_of(logged: Logged, number: int, rules: Rules) -> Turn:
    """An exchange as the checks see it. number: which one of the run it is, from 1 on."""
    exchange, placed = logged.exchange, logged.placed
    flow = exchange.flow
    got = _got(flow, logged)
    return Turn(
        number=number,
        conversation=placed.number,
        protocol=exchange.wire.protocol,
        session=placed.label,
        agent=exchange.identity.agent,
        model=exchange.request.model,
        parts=_ASKED | _parts(got),
        rules=rules,
        sent=Sent(
            exchange.request,
            placed.new,
            placed.pairing,
            placed.again,
            len(flow.request.raw_content or b""),
            retry_count(flow),
            flow.request.headers.get("user-agent", ""),
            bool(flow.metadata.get(metadata.HEALED)),
        ),
        got=got,
        delivered=logged.delivered,
        outcomes=tuple(placed.outcomes),
        flow=flow.id,
        at=flow.request.timestamp_start or None,
        stopped=_stopped(flow),
        reminded=_reminded(flow),
    )


def _stopped(flow: http.HTTPFlow) -> Stopped | None:
    code = flow.metadata.get(metadata.BLOCKED)
    if not code:
        return None
    error: Any = None
    with suppress(ValueError):
        error = jsontext.loads((flow.response.raw_content if flow.response else None) or b"")
    for name in ("error", code):
        error = error.get(name) if isinstance(error, dict) else None
    return Stopped(code, error if isinstance(error, dict) else {})


def _reminded(flow: http.HTTPFlow) -> int | None:
    return flow.metadata.get(metadata.REPEATS) if metadata.REMINDED in flow.metadata else None


def _parts(got: Got | None) -> Part:
    if got is None:
        return Part(0)
    parts = Part.ANSWER | Part.TIMES
    if not got.is_refusal:
        parts |= Part.REPLY
    return parts | Part.EVENTS if got.streamed else parts


def _got(flow: http.HTTPFlow, logged: Logged) -> Got | None:
    response, exchange = flow.response, logged.exchange
    broken = flow.error.msg if flow.error else None
    cut = bool(flow.metadata.get(metadata.INCOMPLETE) or flow.error)
    if metadata.BLOCKED in flow.metadata:
        return None  # the guard's answer says nothing of the API
    if response is None:
        return Got(Reply(), cut=True, trouble=broken, ended=ended(flow)) if cut else None
    started, asked = response.timestamp_start, flow.request.timestamp_end
    return Got(
        reply=exchange.reply or Reply(),
        upstream_ids=tuple(call.upstream_id for call in exchange.calls),
        status=response.status_code,
        streamed=exchange.streamed,
        kind=response.headers.get("content-type", ""),
        cut=cut,
        trouble=broken,
        unnamed=_unnamed(flow, response),
        first_byte_s=max(0.0, started - asked) if started and asked else None,
        silence_s=_silence(flow),
        ended=ended(flow),
        request_id=request_id(flow),
        read_body=lambda: exchange.body,
        read_text=lambda: _text(exchange),
    )


def _unnamed(flow: http.HTTPFlow, response: http.Response) -> str | None:
    """The encoding that upstream's body had and its headers did not name."""
    if response.headers.get("content-encoding") or metadata.UPSTREAM_ENCODING in flow.metadata:
        return None
    return encoding.sniffed(
        flow.metadata.get(metadata.UPSTREAM_BODY) or response.raw_content or b""
    )


def _text(exchange: Exchange) -> dict[int, str]:
    wire, body = exchange.wire, exchange.body
    reply = read_stream(wire, body) if exchange.streamed else wire.reader().whole(body)
    return {number: choice.text for number, choice in reply.choices.items()}


def _silence(flow: http.HTTPFlow) -> float | None:
    """Seconds of the longest time without a chunk, from the headers to the end; None where the
    times of the chunks are not known."""
    chunks, response = flow.metadata.get(metadata.CHUNKS), flow.response
    if not chunks or response is None:
        return None
    times: list[float] = [0.0, *(chunk[1] / 1000 for chunk in chunks)]
    end, start = ended(flow), response.timestamp_start
    if end and start:  # a stream that stalls is given up by somebody
        times.append(end - start)
    return max(max(b - a for a, b in pairwise(times)), 0.0)


def retry_count(flow: http.HTTPFlow) -> int | None:
    """Which retry the SDK says that a request is; None where it says nothing."""
    text = flow.request.headers.get("x-stainless-retry-count", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else None
