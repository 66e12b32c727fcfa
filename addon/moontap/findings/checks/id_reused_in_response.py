"""The same id for two calls of one response."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from moontap.findings.check import Check
from moontap.findings.naming import is_empty, named
from moontap.findings.turn import Got, Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity
from moontap.wire.types import ReplyCall

_SHOWN = 8  # ids in a sentence


def look(turn: Turn) -> Iterator[Found]:
    """Once for each id: in the reply, and in the new messages of the history."""
    if turn.got and len(turn.got.calls) > 1:
        yield from _in_reply(turn.got)
    if turn.sent:
        for position, message in turn.sent.fresh:
            if len(message.calls) < 2:
                continue
            for id_, count in _repeated(call.id for call in message.calls):
                healed = turn.sent.healed
                made = "; the tap made them unique on the way to the server" if healed else ""
                yield Found(
                    f"Message {position} has the id {named(id_)} for {count} calls{made}.",
                    about=id_,
                    evidence=Evidence(message=position, ids=(id_,), facts={"count": count}),
                    severity=Severity.INFO if healed else None,
                )


def _in_reply(got: Got) -> Iterator[Found]:
    # A stream that began anew says its calls again, at the same indexes.
    places = {
        (call.choice, call.index, "" if got.reply.restarts else n): (call, upstream)
        for n, (call, upstream) in enumerate(zip(got.calls, got.upstream_ids, strict=True))
    }
    repeated = _repeated((call.choice, upstream) for call, upstream in places.values())
    alike: dict[tuple[int, str | None], list[ReplyCall]] = {}
    for call, upstream in places.values() if repeated else ():
        alike.setdefault((call.choice, upstream), []).append(call)
    for (choice, id_), count in repeated:
        calls = alike[choice, id_]
        seen = [call.id for call in calls]
        apart = len(set(seen)) == count
        made = f"; the client got {_some(seen)}" if apart else ""
        yield Found(
            f"One response has the id {named(id_)} for {count} calls{made}.",
            about=id_,
            evidence=Evidence(
                choice=choice,
                index=calls[1].index,
                ids=tuple(seen),
                facts={"upstream_id": id_, "count": count, "tools": [c.name for c in calls]},
            ),
            severity=Severity.INFO if apart else None,
        )


def _some(ids: Sequence[str | None]) -> str:
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return ", ".join(map(named, ids[:_SHOWN])) + more


def _repeated[T: (str | None, tuple[int, str | None])](ids: Iterable[T]) -> list[tuple[T, int]]:
    """What comes more than once, empty ids left out, and how often."""
    counts = Counter(ids)
    return [
        (one, count)
        for one, count in counts.items()
        if count > 1 and not is_empty(one[1] if isinstance(one, tuple) else one)
    ]


CHECK = Check(
    code="id-reused-in-response",
    needs=Part(0),
    severity=Severity.ERROR,
    party=Party.API,
    title="Two calls of one response have the same id",
    explained=(
        "Parallel calls of one response are told apart by their ids alone. Where two share one, "
        "both results name it, and which belongs to which is a guess. Clients keep one of the "
        "calls, or give both the same result; Anthropic answers 400 `tool_use ids must be unique` "
        "when such a history is sent there.\n\n"
        "It comes from servers that make ids from the tool's name without counting. `info`: the "
        "tap has given the calls ids of their own. Calls of several choices are not compared: a "
        "client goes on with one of them."
    ),
    example=(
        '{"type": "tool_use", "id": "Bash_0", "name": "Bash", "input": {"command": "pwd"}}\n'
        '{"type": "tool_use", "id": "Bash_0", "name": "Bash", "input": {"command": "ls"}}'
    ),
    remedy=(
        "Run the agent behind `moontap run -- COMMAND`, or set `moontap_rewrite=all` (in "
        "mitmproxy, type `moontap.rewrite all`): the second call then gets an id of its own."
    ),
    look=look,
)
