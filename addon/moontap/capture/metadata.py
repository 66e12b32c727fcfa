"""The names under which moontap keeps things in `flow.metadata`, and what may stand there.

Values are what mitmproxy can serialise (bool, int, float, str, bytes, list). Short scalars are
for `~meta` filters; the rest is what `traffic.flow` needs to be the whole truth. Pure.
"""

from collections.abc import Callable
from typing import Any

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
)

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
    SCRUBBED: lambda value: isinstance(value, bytes),
}
