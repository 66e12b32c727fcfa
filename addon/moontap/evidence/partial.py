"""JSON that is damaged: as much of it as can be used.

Bytes in, JSON bytes out that a strict decoder reads, and what was wrong. Pure. Linear.
"""

import json
import re
from typing import Any

from moontap.evidence.damage import Damage, line_of
from moontap.wire import jsontext

# The names that JavaScript and Python write and JSON does not know, outside strings.
_NAMES = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|(-?(?:NaN|Infinity))', re.DOTALL)
_TOKENS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{},:]|[^\s\[\]{},:"]++|"', re.DOTALL)
_NUMBER = re.compile(rb"[0-9]{4301,}")  # more digits than Python reads

_CLOSE = {b"{": b"}", b"[": b"]"}


class Absurd(ValueError):
    """It is JSON, and nobody can read it: a phrase that says why."""


def reason(text: bytes) -> str | None:
    """Why a text that may well be JSON cannot be read: a phrase; None where it is no JSON."""
    try:
        json.loads(text.decode("utf-8", "replace"))
    except json.JSONDecodeError:
        return None
    except RecursionError:
        return "it is nested too deeply"
    except ValueError:
        long = _NUMBER.search(text)
        return f"it holds a number of {len(long[0]):,} digits" if long else None
    return None


def whole(text: bytes) -> tuple[bytes, Any, list[Damage]]:
    """A JSON text as far as it goes, what it says, and what was wrong with it.

    Of one that breaks off, the members and elements that are whole are kept, two levels deep: no
    half message is made up. Raises ValueError where nothing can be used, Absurd where that is not
    because it is no JSON.
    """
    damage: list[Damage] = []
    fault = _fault(text)
    if fault is not None:
        text, damage = _salvaged(text, *fault)
    mended, names = _without_names(text)
    try:
        return mended, jsontext.loads(mended), damage + names
    except ValueError:
        raise ValueError("it is no JSON") from None


def _fault(text: bytes) -> tuple[int, str] | None:
    """Where a text stops being JSON, and why; None where it is JSON."""
    try:
        # In Latin-1 a character is a byte, so that the place is an offset.
        json.loads(text.decode("latin-1"))
    except json.JSONDecodeError as error:
        return error.pos, error.msg
    except (RecursionError, ValueError):
        raise Absurd(reason(text) or "it cannot be read") from None
    return None


def _salvaged(text: bytes, at: int, why: str) -> tuple[bytes, list[Damage]]:
    if why.startswith("Extra data"):
        left = len(text) - at
        return text[:at], [
            Damage(f"{left:,} bytes behind the JSON are left out", line_of(text, at), at)
        ]
    end, stack = _last_whole(text, at)
    if not end:
        raise ValueError(f"it is no JSON ({why.lower()} at byte {at:,})")
    closed = text[:end] + b"".join(_CLOSE[one] for one in reversed(stack))
    cut = at >= len(text.rstrip()) or why.startswith("Unterminated string")
    what = "it breaks off" if cut else f"it is damaged ({why.lower()})"
    lost = len(text) - end
    damage = Damage(
        f"{what}; the {lost:,} bytes behind the last whole part are left out", line_of(text, at), at
    )
    return closed, [damage]


def _last_whole(text: bytes, at: int) -> tuple[int, tuple[bytes, ...]]:
    """The end of the last whole element before an offset, and what is open there; 0: none."""
    stack: list[bytes] = []
    valued = [False]  # whether what comes next in each open object is a value
    best: tuple[int, tuple[bytes, ...]] = (0, ())
    for found in _TOKENS.finditer(text):
        token, end = found[0], found.end()
        if found.start() >= at or token == b'"':
            break
        if token in _CLOSE:
            stack.append(token)
            valued.append(False)
            if _is_cut_here(stack):
                best = (end, tuple(stack))
            continue
        if token in b",:":
            valued[-1] = token == b":"
            continue
        if token in b"]}":
            if not stack:
                break
            stack.pop()
            valued.pop()
        elif stack and stack[-1] == b"{" and not valued[-1]:
            continue  # a member's name
        elif end == len(text) and token[:1] != b'"':
            break  # a number may go on
        valued[-1] = False
        if _is_cut_here(stack):
            best = (end, tuple(stack))
    return best


def _is_cut_here(stack: list[bytes]) -> bool:
    """Whether what is open may be closed: half a message or block would be a made-up one."""
    return len(stack) == 1 or (len(stack) == 2 and stack[-1] == b"[")


def _without_names(text: bytes) -> tuple[bytes, list[Damage]]:
    """NaN and its like as null."""
    if b"NaN" not in text and b"Infinity" not in text:
        return text, []
    places = [found.start() for found in _NAMES.finditer(text) if found[1]]
    if not places:
        return text, []
    mended = _NAMES.sub(lambda found: b"null" if found[1] else found[0], text)
    what = "NaN or Infinity is no JSON, and is read as null"
    return mended, [Damage(what, line_of(text, places[0]), places[0])]
