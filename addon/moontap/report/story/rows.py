"""Rows of exchanges in words. A row in, what happened in it out, as one line to be wrapped."""

from collections import Counter
from collections.abc import Sequence

from moontap.report.story.fold import Row
from moontap.report.story.told import Made, Told
from moontap.report.text import many, plain

_CALLS = 3
"""Calls of one reply that are written out."""
_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def numbers(row: Row) -> str:
    """`7`, `8-60`."""
    return str(row.first) if row.first == row.last else f"{row.first}-{row.last}"


def words(row: Row, before: Row | None) -> str:
    """What happened in the exchanges of a row. before: the row before it, for "the same"."""
    if not row.cycle:
        return _counted(row.exchanges)
    last = before.exchanges[-1] if before else None
    steps = []
    for one in row.exchanges[: row.cycle]:
        steps.append(_exchange(one, last))
        last = one
    if row.times == 1:
        return steps[0]
    told = steps[0] if row.cycle == 1 else "; ".join(f"({n}) {s}" for n, s in enumerate(steps, 1))
    return f"{row.times} times: {told}{_changing(row)}"


def _exchange(one: Told, last: Told | None) -> str:
    return f"{_request(one)} {_reply(one, last)}".strip()


def _request(one: Told) -> str:
    said = []
    if one.known:
        said.append(f"a history of {many(one.known, 'message')} is there from the start")
    if one.repeat:
        said.append("the same request again")
    if one.answered:
        came = "result comes" if one.answered == 1 else "results come"
        failed = f" ({one.failed} with an error)" if one.failed else ""
        said.append(f"{_count(one.answered)} {came} back{failed}")
    if one.dropped:
        its = "its result" if one.dropped == 1 else "their results"
        said.append(f"the client drops {_count(one.dropped, 'call')} with {its}")
    if one.lost:
        said.append(f"{_count(one.lost, 'call')} without a result")
    if one.orphans:
        said.append(f"{_count(one.orphans, 'result')} without a call")
    if one.empty:
        said.append(f"{_count(one.empty, 'empty user turn')}")
    if one.healed:
        said.append("moontap makes the ids of the history unique")
    if one.reminded:
        said.append("moontap reminds the model that it repeats itself")
    if one.spoken:
        said.append(f"the user says “{one.spoken}”")
    return ", ".join(said) + (";" if said else "")


def _reply(one: Told, last: Told | None) -> str:
    broke = ", then the reply breaks off" if one.cut else ""
    if one.stopped:
        return f"moontap stops it ({one.stopped})"
    if one.none:
        return "no reply"
    if one.status:
        return f"refused with {one.status}"
    if one.calls:
        return f"the model calls {_calls(one, last)}{broke}"
    if one.answer:
        return f"the model answers “{one.answer}”{broke}"
    return "the reply breaks off" if one.cut else "the reply is empty"


def _calls(one: Told, last: Told | None) -> str:
    if last and last.calls and last.asks == one.asks:
        tools = Counter(call.tool for call in one.calls)
        what = " and ".join(f"{_count(count)} {tool}" for tool, count in tools.items())
        ids = ", ".join(dict.fromkeys(_id(call) for call in one.calls[:_CALLS]))
        return f"the same again: {what}, as {ids}"
    said = [
        f"{call.tool} {call.arguments or '(no arguments)'} as {_id(call)}"
        for call in one.calls[:_CALLS]
    ]
    if (more := len(one.calls) - _CALLS) > 0:
        said.append(f"{more} more")
    return ", and ".join([*said[:-2], ", and ".join(said[-2:])]) if len(said) > 1 else said[0]


def _id(call: Made) -> str:
    shown = plain(call.id) if call.id else "no id"
    if call.id != call.upstream:
        shown += f" (sent as {plain(call.upstream) if call.upstream else 'no id'})"
    elif call.reused:
        shown += " (used before)"
    return shown


def _changing(row: Row) -> str:
    """Whether the results changed from time to time."""
    # The first ones bring the results of what was called before the row.
    heard = [tuple(one.results) for one in row.exchanges[row.cycle :] if one.results]
    if len(heard) < 2:
        return ""
    return "; the results differ" if len(set(heard)) > row.cycle else "; the results are the same"


def _counted(exchanges: Sequence[Told]) -> str:
    """Exchanges of many kinds, in figures."""
    tools = Counter(call.tool for one in exchanges for call in one.calls)
    said = [f"{many(len(exchanges), 'exchange')}"]
    if tools:
        total, most = sum(tools.values()), tools.most_common(_CALLS)
        named = ", ".join(f"{tool} {count}" for tool, count in most)
        others = "" if len(tools) <= _CALLS else f", {len(tools) - _CALLS} more tools"
        said.append(f"{many(total, 'call')} ({named}{others})")
    for name, what in _COUNTED.items():
        if count := sum(getattr(one, name) for one in exchanges):
            said.append(f"{count} {what}")
    if refused := sum(bool(one.status) for one in exchanges):
        said.append(f"{refused} refused")
    return "… " + ", ".join(said)


_COUNTED = {
    "answered": "answered",
    "dropped": "dropped by the client",
    "lost": "without a result",
    "orphans": "results without a call",
    "empty": "empty user turns",
    "repeat": "sent again",
    "cut": "broken off",
}


def _count(number: int, word: str = "") -> str:
    """`two calls`; figures from ten on."""
    shown = _WORDS[number] if number < len(_WORDS) else str(number)
    return f"{shown} {word}{'s' if word and number != 1 else ''}".strip()
