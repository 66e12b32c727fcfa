"""What moontap's guard did in a conversation, in a line that goes before all else.

A conversation in, sentences out; none where the guard did nothing.
"""

from collections.abc import Iterator

from moontap.report.story.conversation import Account
from moontap.report.text import many

_LISTED = 6
_WHY = {
    "blocked_no_progress": "the same had been done {times} in a row, and nothing came of it",
    "blocked_limit": "a limit of the session was used up",
}


def guarded(account: Account) -> list[str]:
    """The sentences, the stop first: the reader is to know that the run did not end by itself."""
    return list(_guarded(account))


def _guarded(account: Account) -> Iterator[str]:
    if stops := account.stops:
        first = stops[0]
        times = many(first.repeats, "time") if first.repeats else "several times"
        why = _WHY.get(first.stopped, "").format(times=times)
        said = f"moontap stopped it at exchange {first.number}: {why or first.stopped}"
        said += f" ({first.stopped})" if why else ""
        if len(stops) > 1:
            said += f"; and it answered {many(len(stops) - 1, 'later request')} in the same way"
        if account.exchanges[-1].number > stops[-1].number:
            said += "; after that it went on"
        yield f"{said}."
    if told := [one.number for one in account.exchanges if one.reminded]:
        where = ", ".join(map(str, told[:_LISTED]))
        where += f" and {len(told) - _LISTED} more" if len(told) > _LISTED else ""
        yield f"moontap reminded the model that it repeats itself, in exchange {where}."
