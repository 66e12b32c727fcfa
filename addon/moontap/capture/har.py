"""The exchanges of a HAR file, as mitmproxy itself reads them.

Bytes in, flows with their place out. Not by mitmproxy's own reader, which gives the rest up at the
first entry that it cannot read: here that one is lost alone. Never writes.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, cast

from mitmproxy import http
from mitmproxy.io import har

_BOM = b"\xef\xbb\xbf"
_BLANKS = b" \t\r\n"
_BETWEEN = re.compile(r"[ \t\r\n,]*+")
_COLON = re.compile(r"[ \t\r\n]*+:[ \t\r\n]*+")
_ENTRIES = re.compile(r'"entries"\s*+:\s*+\[')
_ENTRY = re.compile(r'\{\s*+"startedDateTime"')
_STRUCTURE = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}"]', re.DOTALL)
_TIMES = 8  # how often, all in all, what cannot be parsed may be gone through

_DECODER = json.JSONDecoder()

type _Lost = Callable[[int, int], None]
"""Told where something begins that cannot be read, and its size."""


def looks_like(start: bytes) -> bool:
    """Whether a file that begins so is JSON: no flow file of mitmproxy's begins like it."""
    return start.removeprefix(_BOM).lstrip(_BLANKS).startswith(b"{")


def flows(data: bytes, lost: _Lost) -> Iterator[tuple[int, int, http.HTTPFlow]]:
    """The exchanges of a file: their number from 0, the bytes read by then, the flow."""
    text = data.decode("utf-8-sig", "replace")
    for number, (start, end, entry) in enumerate(_entries(text, lost)):
        try:
            one = har.request_to_flow(cast(Any, entry))
        except Exception:  # whatever is missing in it
            lost(start, end - start)
            continue
        one.id = f"har-{number + 1}"  # mitmproxy would give another at each reading
        yield number, len(data) * end // len(text), one


def _entries(text: str, lost: _Lost) -> Iterator[tuple[int, int, object]]:
    """The entries with their place, one by one: what a cut took, or a fault in one, is lost alone.

    Where an entry cannot be parsed, it goes on at the next that begins as mitmproxy's do.
    """
    begin = _first(text)
    if begin is None:
        lost(0, len(text))
        return
    at, patience = _between(text, begin), _TIMES * len(text)
    while text[at : at + 1] != "]":
        try:
            entry, end = _DECODER.raw_decode(text, at)
            yield at, end, entry
        except (ValueError, RecursionError) as error:
            deep = _end(text, at) if isinstance(error, RecursionError) else None
            patience -= _cost(error, text, at)
            found = _ENTRY.search(text, at + 1) if patience > 0 and deep is None else None
            end = deep or (found.start() if found else len(text))
            lost(at, end - at)
            if end == len(text):
                return
        at = _between(text, end)


def _cost(error: Exception, text: str, at: int) -> int:
    """About how many characters a failure to parse has gone through."""
    if isinstance(error, json.JSONDecodeError):
        return error.pos - at + error.pos // 64  # its maker counts the lines from the text's start
    return len(text) - at


def _first(text: str) -> int | None:
    """Where the entries of `log` begin."""
    try:
        return _list_of(text, _value_of(text, _between(text, 0), "log"), "entries")
    except (ValueError, RecursionError):  # damaged before them
        found = _ENTRIES.search(text)
        return found.end() if found else None


def _list_of(text: str, at: int, name: str) -> int:
    at = _value_of(text, at, name)
    if text[at : at + 1] != "[":
        raise ValueError(f"{name} is no list")
    return at + 1


def _value_of(text: str, at: int, wanted: str) -> int:
    """Where, in the object that begins there, the value of a member begins. Raises ValueError."""
    if text[at : at + 1] != "{":
        raise ValueError("no object")
    at = _between(text, at + 1)
    while text[at : at + 1] == '"':
        name, at = _DECODER.raw_decode(text, at)
        colon = _COLON.match(text, at)
        if not colon:
            break
        if name == wanted:
            return colon.end()
        at = _between(text, _DECODER.raw_decode(text, colon.end())[1])
    raise ValueError(f"no {wanted}")


def _end(text: str, at: int) -> int | None:
    """Where something ends that is nested too deeply to be parsed."""
    depth = 0
    for token in _STRUCTURE.finditer(text, at):
        if token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
            if depth == 0:
                return token.end()
    return None


def _between(text: str, at: int) -> int:
    found = _BETWEEN.match(text, at)
    return found.end() if found else at
