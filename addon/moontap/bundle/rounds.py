"""The sequence of a bundle in the form of a probe: round 1, round 2, verdict.

Exchanges as the diagnosis saw them in, rounds and a verdict out. Pure but for reading the flows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from moontap.capture import metadata
from moontap.capture.diagnosis import Looked
from moontap.capture.pairlog import request_id
from moontap.findings.turn import Turn
from moontap.findings.types import Finding
from moontap.moments import rfc3339

REUSED, STOPPED = "reused", "stopped"


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a reply. upstream_id: as the server sent it; id: as the client saw it."""

    tool: str
    arguments: str
    upstream_id: str | None
    id: str | None


@dataclass(frozen=True, slots=True)
class Round:
    """One exchange. number: from 1 on. history: the calls that its request shows, by id. ending:
    the stop reason, or how it failed. stopped: why moontap answered instead of the server."""

    number: int
    flow: str
    at: str | None
    request_id: str | None
    message_id: str | None
    status: int
    ending: str
    messages: int
    session: str
    calls: tuple[Call, ...]
    history: frozenset[str]
    stopped: str = ""


def rounds(exchanges: Iterable[Looked]) -> list[Round]:
    """Those of a paired protocol, in order."""
    turns = [(looked, looked.turn) for looked in exchanges]
    return [
        _round(number, looked, turn)
        for number, (looked, turn) in enumerate(((a, b) for a, b in turns if b), 1)
    ]


def reused(rounds: Sequence[Round]) -> tuple[Call, Round, Round] | None:
    """The first call of a conversation with an upstream id that came before in it, the round that
    had it first, and its own; None where there is none."""
    first: dict[tuple[str, str], Round] = {}
    for one in rounds:
        for call in one.calls:
            if call.upstream_id:
                before = first.setdefault((one.session, call.upstream_id), one)
                twice = sum(other.upstream_id == call.upstream_id for other in one.calls) > 1
                if before is not one or twice:
                    return call, before, one
    return None


def verdict(rounds: Sequence[Round], finding: Finding | None) -> list[str]:
    """What the sequence shows, a line each; last what it was cut for: the finding.

    That ids came back is said where the client saw it, or where it is what was asked for: it had
    no part in what befell a client that got unique ones.
    """
    said = []
    about_ids = bool(finding and finding.code.startswith("id-reused"))
    found = reused(rounds)
    seen = bool(found and found[0].id == found[0].upstream_id)
    if stopped := next((one for one in rounds if one.stopped), None):
        said.append(f"{STOPPED}: moontap stopped it in round {stopped.number} ({stopped.stopped})")
    if found and (seen or about_ids):
        healed = "" if seen else "; moontap made it unique for the client"
        said.append(f"{REUSED}: {_reuse(*found)}{healed}")
    if finding and not (found and about_ids):
        said.append(f"{finding.code}: {finding.message}")
    if said:
        return said
    return ["no id came twice for the client" if found else "no id came twice in these rounds"]


def _reuse(call: Call, first: Round, again: Round) -> str:
    if first is again:
        return f"{call.upstream_id} names several calls of round {again.number}"
    id_ = next(one.id for one in first.calls if one.upstream_id == call.upstream_id)
    came = f"{call.upstream_id} came in round {first.number} and again in round {again.number}"
    if id_ in again.history:
        return f"{came}, while its first call stands in the history"
    return f"{came}, when the history no longer showed its first call"


def _round(number: int, looked: Looked, turn: Turn) -> Round:
    got, sent = turn.got, turn.sent
    stopped = stopped_by(looked)
    calls = (
        tuple(
            Call(call.name, call.arguments, upstream_id, call.id)
            for call, upstream_id in zip(got.calls, got.upstream_ids, strict=True)
        )
        if got
        else ()
    )
    return Round(
        number,
        looked.flow.id,
        rfc3339(turn.at),
        request_id(looked.flow),
        got.reply.message_id if got else None,
        got.status if got else 0,
        stopped or ending(turn),
        len(sent.request.messages) if sent else 0,
        turn.session,
        calls,
        frozenset(sent.request.call_ids if sent else ()),
        stopped,
    )


def stopped_by(looked: Looked) -> str:
    """Why moontap's guard answered instead of the server; "" where it did not."""
    return str(looked.flow.metadata.get(metadata.BLOCKED, ""))


def ending(turn: Turn) -> str:
    """How a reply ended, in a few words."""
    got = turn.got
    if got is None:
        return "no reply"
    if got.is_refusal:
        return f"status {got.status}"
    if got.cut:
        return f"broke off: {got.trouble}" if got.trouble else "broke off"
    stops = [one.stop_reason for one in got.reply.choices.values() if one.stop_reason]
    if got.reply.error is not None:
        return "an error in the reply"
    return ", ".join(stops) or "no stop reason"
