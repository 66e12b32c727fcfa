"""A call that is not whole: the limit of tokens cut it, or the reply broke off within it."""

from collections.abc import Iterator

from moontap.findings.check import Check
from moontap.findings.cutoff import Cause, cut_calls
from moontap.findings.excerpts import excerpt
from moontap.findings.naming import tool_named
from moontap.findings.turn import Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity
from moontap.wire.types import ReplyCall


def look(turn: Turn) -> Iterator[Found]:
    """The calls of the reply that are not whole."""
    for number, cause in cut_calls(turn).items():
        assert turn.got
        call = turn.got.calls[number]
        yield _FOUND[cause](turn, call)


def _by_limit(turn: Turn, call: ReplyCall) -> Found:
    limit = turn.sent.request.asked.limit.decode("utf-8", "replace") if turn.sent else ""
    of = f" of {limit} tokens" if limit.isdigit() else ""
    return _found(
        turn,
        call,
        f"The reply reached its limit{of} within the arguments of {_tool(call)}.",
        party=Party.CLIENT if of else None,
        limit=int(limit) if of else None,
        by_limit=True,
    )


def _by_error(turn: Turn, call: ReplyCall) -> Found:
    says = f"The server sent an error before the arguments of {_tool(call)} were done."
    return _found(turn, call, says)


def _by_break(turn: Turn, call: ReplyCall) -> Found:
    says = f"The reply broke off before the arguments of {_tool(call)} were done."
    return _found(turn, call, says, party=Party.NETWORK)


def _tool(call: ReplyCall) -> str:
    return tool_named(call.name, "a call")


def _found(
    turn: Turn,
    call: ReplyCall,
    says: str,
    party: Party | None = None,
    limit: int | None = None,
    *,
    by_limit: bool = False,
) -> Found:
    facts: dict[str, object] = {"tool": call.name, "arguments_length": len(call.arguments)}
    return Found(
        says,
        about=(turn.number, call.choice, call.index),
        evidence=Evidence(
            choice=call.choice,
            index=call.index,
            ids=(call.id,),
            excerpt=excerpt(call.arguments),
            facts=facts | ({} if limit is None else {"limit": limit}),
        ),
        party=party,
        remedy=_RAISE if by_limit else None,
    )


_FOUND = {Cause.LIMIT: _by_limit, Cause.ERROR: _by_error, Cause.BROKEN: _by_break}
_RAISE = "Raise `max_tokens`; never run a call of a reply that ended with `length` or `max_tokens`."

CHECK = Check(
    code="call-truncated",
    needs=Part.REPLY,
    severity=Severity.ERROR,
    party=Party.API,
    title="A call that was cut off",
    explained="""\
The reply ended in the middle of a tool call. Either it reached the limit of tokens (stop reason
`length` or `max_tokens`; thinking counts as well, so a limit that is fine for text is soon too
small), or the stream broke off or brought an error before the call was done. A call whose
arguments are complete is not meant, whatever came after it.

What arrived looks like a call: it has an id and a name. A client that does not look at the stop
reason runs it with half its arguments or with `{}`, or fails on JSON that does not end. SDKs that
retry send the request once more instead, and the half call is gone.""",
    example="""\
{"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta",
 "partial_json": "{\\"file_path\\": \\"report.md\\", \\"content\\": \\"# Sum"}}
{"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}""",
    remedy="Do not run the call. Where the stop reason is `length` or `max_tokens`, raise "
    "`max_tokens`; else send the request again.",
    look=look,
)
