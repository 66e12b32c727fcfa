"""The same request sent again, and by whom."""

from collections.abc import Iterator

from moontap.findings.check import Check
from moontap.findings.conversation import Last
from moontap.findings.repeats import Repeat, is_opening, repeat_of
from moontap.findings.turn import Sent, Turn
from moontap.findings.types import Ending, Evidence, Found, Part, Party, Severity
from moontap.report.text import short


def look(turn: Turn) -> Iterator[Found]:
    """Once for each request and each kind of again."""
    sent, last = turn.sent, turn.before.last
    kind = repeat_of(turn, last)
    if kind is None or sent is None or last is None:
        return
    lost = bool(sent.again) and not is_opening(sent.request)
    again = kind is Repeat.SENT_AGAIN
    yield Found(
        _message(kind, turn, sent, last),
        about=(kind, len(sent.request.messages)),
        evidence=Evidence(
            message=len(sent.request.messages) - 1,
            ids=tuple(call.id for call in sent.again) if again else (),
            facts={
                "kind": kind.value,
                "before": last.exchange,
                "before_flow": last.flow,
                "before_status": last.status or None,
                "retry": sent.retry,
            },
        ),
        severity=Severity.WARNING if again and lost else Severity.INFO,
        party=_PARTIES[kind],
        remedy=_remedy(kind, last),
    )


_PARTIES = {
    Repeat.SDK_RETRY: Party.SDK_RETRY,
    Repeat.CLIENT_RETRY: Party.CLIENT,
    Repeat.NETWORK_RETRY: Party.NETWORK,
    Repeat.FALLBACK: Party.CLIENT,
    Repeat.TWO_CLIENTS: Party.CLIENT,
    Repeat.SENT_AGAIN: Party.CLIENT,
}


def _message(kind: Repeat, turn: Turn, sent: Sent, last: Last) -> str:
    after = _before(last)
    match kind:
        case Repeat.SDK_RETRY:
            return f"The SDK sent the same request again (retry {sent.retry}) after {after}."
        case Repeat.CLIENT_RETRY:
            return (
                f"The same request came again after {after}; the SDK's count says that this is no "
                "retry of its own, so the agent asked again."
            )
        case Repeat.NETWORK_RETRY:
            return (
                f"The same request came again after {after}; no header says who sent it, so it was "
                "a proxy, the network layer, or a client that does not count."
            )
        case Repeat.FALLBACK:
            return f"The client asked the same again without streaming after {after}."
        case Repeat.TWO_CLIENTS:
            return _two_clients(turn, sent, last)
        case Repeat.SENT_AGAIN:
            kept = "the client did not keep the reply" if sent.again else "it is asked once more"
            calls = f" with its calls ({_calls(sent)})" if sent.again else ""
            whole = " It had asked for a stream, and the reply came whole." if _whole(last) else ""
            return (
                f"The same request came again although exchange {last.exchange} had answered it in "
                f"full: {kept}{calls}.{whole}"
            )


def _two_clients(turn: Turn, sent: Sent, last: Last) -> str:
    early = turn.at is not None and last.ended is not None and turn.at < last.ended
    when = "at the same time" if early else "one after the other"
    if sent.agent == last.agent:
        return f"The same request was sent twice {when}: two clients, or one that did not wait."
    who = f"{short(last.agent, 40)} and {short(sent.agent, 40)}"
    return f"Two clients sent the same request {when}: {who}."


def _before(last: Last) -> str:
    match last.ending:
        case Ending.REFUSED:
            return f"a {last.status} answer"
        case None:
            return "a reply that is not known"
        case ending:
            return _BEFORE[ending]


_BEFORE = {
    Ending.WHOLE: "a whole reply",
    Ending.ERROR: "an error in the middle of a reply",
    Ending.EMPTY: "an empty reply",
    Ending.LEFT: "the client itself had hung up",
    Ending.BROKEN: "a reply that was not whole",
    Ending.NONE: "no reply at all",
}


def _whole(last: Last) -> bool:
    return last.stream and not last.streamed


def _calls(sent: Sent) -> str:
    named = ", ".join(short(call.id or call.name, 40) for call in sent.again[:3])
    return f"{named}, …" if len(sent.again) > 3 else named


def _remedy(kind: Repeat, last: Last) -> str | None:
    if kind is Repeat.SENT_AGAIN:
        if _whole(last):
            return "Have the server stream where a stream is asked for, or ask without streaming."
        return "Append each reply to the history, with its calls, and one result for each call."
    if kind is Repeat.TWO_CLIENTS:
        return "Nothing, where both were meant to run; else see who else uses this address."
    if kind is Repeat.FALLBACK and last.ending is Ending.WHOLE:
        return (
            "See what the client did not like in the stream: its log says it, and other findings "
            "of that exchange may."
        )
    return None


CHECK = Check(
    code="request-retried",
    needs=Part.HISTORY | Part.TURNS,
    severity=Severity.INFO,
    party=Party.NETWORK,
    title="The same request was sent again",
    explained="""\
The messages are those of the request before, word for word. `kind` in the evidence says who did it,
as far as the traffic tells:

| `kind` | how it is told | |
|---|---|---|
| `sdk-retry` | `x-stainless-retry-count` counts it | after a 5xx, a 429, a lost connection |
| `client-retry` | after a failure, and that header says 0 | Claude Code does this itself |
| `network-retry` | after a failure, and without that header | a proxy, or a bare HTTP client |
| `fallback` | a stream, then the same without | Claude Code, where it could not use the stream |
| `two-clients` | another User-Agent, or before the first had its reply | |
| `sent-again` | the reply before was whole and good | the agent did not keep it |

All but the last are `info`: what made them necessary is found by itself. `sent-again` is a warning
where the reply had tool calls and the conversation was under way: an agent that drops what it gets
will get the same for ever. That the model calls the same tool again is none of these: then the
history has grown.""",
    example="""\
POST /v1/chat/completions   {"messages":[…3…]}                            500
POST /v1/chat/completions   {"messages":[…3…]}   x-stainless-retry-count: 1   200""",
    remedy="Nothing, if it is rare; else look at what failed before it.",
    look=look,
)
