"""The names under which moontap keeps things in `flow.metadata`, and what may stand there.

Values are what mitmproxy can serialise (bool, int, float, str, bytes, list). Short scalars are
for `~meta` filters; the rest is what `traffic.flow` needs to be the whole truth.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any

from mitmproxy import http

from moontap.kept import Chunks, Edits, Kept

UPSTREAM_BODY = "moontap.upstream_body"
"""bytes: what upstream sent as the response body, where the client got something else."""

UPSTREAM_ENCODING = "moontap.upstream_encoding"
"""str: its content-encoding header, where that was dropped because the tap decoded it."""

CHUNKS = "moontap.chunks"
"""list of [bytes, milliseconds since the response headers]: upstream's chunks as they arrived."""

HEALED = "moontap.healed"
"""list of [offset, length, bytes]: put these bytes there into the request body as it stands
(content encoding undone), and it is what the client sent. See `rewrite.unheal`."""

REMINDED = "moontap.reminded"
"""list of [offset, length, bytes]: the same for a reminder that the guard added. It was added last,
so it is taken out first."""

BLOCKED = "moontap.blocked"
"""str: why the guard answered instead of upstream, which never saw the request:
`blocked_no_progress` or `blocked_limit`. The response is moontap's own."""

REPEATS = "moontap.repeats"
"""int: how many times in a row the same had been done when the guard reminded or blocked."""

INCOMPLETE = "moontap.incomplete"
"""True: the reply broke off, or the run ended before it did; what arrived is kept."""

CALLS = "moontap.calls"
"""int: tool calls in the reply."""

REWRITTEN = "moontap.rewritten"
"""int: how many of them the client got under a new id."""

SESSION = "moontap.session"
"""str: the session it belongs to."""

LABELS = "moontap.labels"
"""str: words to filter by, `tool=Bash; id=Bash_0; unanswered=1;`, see `looking.labels`."""

FINDINGS = "moontap.findings"
"""str: what went wrong in it, `error id-reused, info id-reused-in-response`, worst first."""

ANSWERS = "moontap.answers"
"""list of [id as the client has it, what became of the call]: `ok in 0.4 s`, `unanswered`."""

NEW = "moontap.new"
"""int: the first message of the request that its conversation had not seen before."""

NOTED = "moontap.noted"
"""one [comment, mark] in a list, as moontap has set them on the flow. Any other is a person's, and
stays."""

MARKED = "moontap.marked"
"""str: the mark that a command of moontap's has set on the flow, to be taken away again."""

LIVE = (LABELS, FINDINGS, ANSWERS, NEW, NOTED, MARKED)
"""For who looks on. Not in `traffic.flow`: it is made anew from what stands there."""

FILE = "moontap.file"
"""str: `file=NAME;`, where `moontap look` shows several files."""

SCRUBBED = "moontap.scrubbed"
"""bytes: digests, of 8 bytes each, of what `moontap scrub` has put into the flow."""

ALL = (
    UPSTREAM_BODY,
    UPSTREAM_ENCODING,
    CHUNKS,
    HEALED,
    REMINDED,
    BLOCKED,
    REPEATS,
    INCOMPLETE,
    CALLS,
    REWRITTEN,
    SESSION,
    *LIVE,
)

NOTING = threading.Lock()
"""Held while a flow's comment and mark are set together with `NOTED`, which says whose they are,
and while they are copied: exchanges are saved on a thread of their own."""

_MOST = 1e15


def settled(kept: object) -> dict[str, Any]:
    """The metadata of a flow that was read back, without what moontap would not have put there.

    mitmproxy reads any value at all; who takes one out of what this returns need not ask again
    what it is. What other addons put there stays. The same dict where all is well.
    """
    if not isinstance(kept, dict):
        return {}
    odd = [name for name, value in kept.items() if not _fits(name, value)]
    return {name: value for name, value in kept.items() if name not in odd} if odd else kept


def noted(kept: Mapping[str, Any]) -> tuple[str, str]:
    """The comment and the mark that moontap has set last, `""` each where there is none."""
    value = kept.get(NOTED)
    if value and _texts(value):
        comment, mark = value[0]
        return comment, mark
    return "", ""


def shorten(kept: dict[str, Any]) -> None:
    """Have the bodies, chunks and edits of a flow that was read back be as short a text as those of
    a live one, see `kept.Kept`. In place; the values stay equal."""
    for name in ALL:
        value = kept.get(name)
        if type(value) is bytes:
            kept[name] = Kept(value)
    for name, kind in ((CHUNKS, Chunks), (HEALED, Edits), (REMINDED, Edits)):
        if type(value := kept.get(name)) is list:
            kept[name] = kind(value)


def strip(flow: http.HTTPFlow) -> None:
    """Take off a flow what moontap has put there for who looks on. What a person put there stays.

    flow: with metadata of its own, `dict`.
    """
    with NOTING:
        comment, mark = noted(flow.metadata)
        if flow.comment == comment:
            flow.comment = ""
        if flow.marked in (mark, flow.metadata.get(MARKED)):
            flow.marked = ""
        for name in LIVE:
            flow.metadata.pop(name, None)


def _fits(name: object, value: object) -> bool:
    if not isinstance(name, str):
        return False  # nothing can be sorted or filtered by it
    check = _CHECKS.get(name)
    return check is None or check(value)


def _count(value: object) -> bool:
    return type(value) is int and 0 <= value < _MOST  # a bool is an int


def _coding(value: object) -> bool:
    return isinstance(value, str) and value.isascii() and value.isprintable()  # goes into a header


def _chunks(value: object) -> bool:
    # Thousands of them in a long stream. No NaN, and nothing too large for a float, is in between.
    return isinstance(value, list) and all(
        isinstance(one, list)
        and len(one) == 2
        and type(one[0]) is int
        and 0 <= one[0] < _MOST
        and type(one[1]) in (int, float)
        and -_MOST < one[1] < _MOST
        for one in value
    )


def _edits(value: object) -> bool:
    if not isinstance(value, list):
        return False
    end = 0
    for one in value:
        if not isinstance(one, list) or len(one) != 3:
            return False
        at, length, old = one
        if not (_count(at) and _count(length) and isinstance(old, bytes) and at >= end):
            return False
        end = at + length
    return True


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, list) and len(one) == 2 and all(isinstance(part, str) for part in one)
        for one in value
    )


_CHECKS: dict[str, Callable[[object], bool]] = {
    UPSTREAM_BODY: lambda value: isinstance(value, bytes),
    UPSTREAM_ENCODING: _coding,
    CHUNKS: _chunks,
    HEALED: _edits,
    REMINDED: _edits,
    BLOCKED: lambda value: isinstance(value, str),
    REPEATS: _count,
    INCOMPLETE: lambda value: isinstance(value, bool),
    CALLS: _count,
    REWRITTEN: _count,
    SESSION: lambda value: isinstance(value, str),
    LABELS: lambda value: isinstance(value, str),
    FINDINGS: lambda value: isinstance(value, str),
    ANSWERS: _texts,
    NEW: _count,
    NOTED: _texts,
    MARKED: lambda value: isinstance(value, str),
    FILE: lambda value: isinstance(value, str),
    SCRUBBED: lambda value: isinstance(value, bytes),
}
