"""Calls without an id, and results that name none."""

from collections.abc import Iterator

from moontap.findings.check import Check
from moontap.findings.naming import is_empty, tool_named
from moontap.findings.turn import Sent, Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity


def look(turn: Turn) -> Iterator[Found]:
    """Once for each way of being empty: in replies, in calls of the history, in its results."""
    yield from _in_reply(turn)
    if turn.sent:
        yield from _in_calls(turn, turn.sent)
        yield from _in_results(turn.sent)


def _in_reply(turn: Turn) -> Iterator[Found]:
    got = turn.got
    for call, upstream in zip(got.calls, got.upstream_ids, strict=True) if got else ():
        if not is_empty(upstream):
            continue
        if got and not upstream and (got.cut or not got.reply.complete):
            continue  # the id may have been still to come
        yield Found(
            f"The API sent a call of {_tool(call.name)} {_way(upstream)}.",
            about=("call", upstream),
            evidence=Evidence(
                choice=call.choice,
                index=call.index,
                ids=(call.id,),
                facts={"tool": call.name, "upstream_id": upstream},
            ),
        )


def _in_calls(turn: Turn, sent: Sent) -> Iterator[Found]:
    came_so = None
    for position, message in sent.fresh:
        for call in message.calls:
            if not is_empty(call.id):
                continue
            came_so = _came_so(turn) if came_so is None else came_so
            if not came_so:
                # In a history from before the tap, nobody knows who left it empty.
                party = Party.CLIENT if turn.before.last else Party.API
                yield Found(
                    f"Message {position} has a call of {_tool(call.name)} {_way(call.id)}.",
                    about=("history", call.id),
                    evidence=Evidence(
                        message=position,
                        block=call.block,
                        ids=(call.id,),
                        facts={"tool": call.name},
                    ),
                    party=party,
                )


def _came_so(turn: Turn) -> bool:
    """Whether a reply had calls without an id: the client can only say them again."""
    keys = ((code, about) for code, about in turn.before.found if code == CHECK.code)
    return any(isinstance(about, tuple) and about[0] == "call" for _, about in keys)


def _in_results(sent: Sent) -> Iterator[Found]:
    """Only of results without a call: the others name what their call is named."""
    for position, number in sent.pairing.orphans:
        result = sent.request.messages[position].results[number]
        if position >= sent.new and is_empty(result.id):
            yield Found(
                f"Message {position} has a result {_way(result.id)}, which no call has.",
                about=("result", result.id),
                evidence=Evidence(message=position, block=result.block, ids=(result.id,)),
                party=Party.CLIENT,
                remedy="Have the client put the id of the call into each result.",
            )


def _tool(name: str) -> str:
    return tool_named(name)


def _way(id_: str | None) -> str:
    if id_ is None:
        return "without an id, or with one that is null or empty"
    return f'with the id "{id_}"'


CHECK = Check(
    code="id-empty",
    needs=Part(0),
    severity=Severity.ERROR,
    party=Party.API,
    title="A call or a result has no id",
    explained=(
        'An id that is missing, null, `""`, or a word such as `undefined` or `None` names '
        "nothing. The words come from programs that wrote down a variable which was never set. "
        "Two such calls cannot be told apart, and APIs refuse the result: Moonshot's 400 says "
        "`tool_call_id  not found`, with two blanks where the id should be.\n\n"
        "Reported once for each way of being empty, where it came up first: in a reply (the "
        "API's fault), or in a history or a result although the reply had an id (the client's)."
    ),
    example='{"index": 0, "id": "", "type": "function", "function": {"name": "get_weather"}}',
    remedy=(
        "Ask the provider for ids, or leave streaming off if they are missing in streams only; "
        "`moontap_rewrite=all` gives words such as `undefined` a name of their own, but not what "
        "is missing."
    ),
    look=look,
)
