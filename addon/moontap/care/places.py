"""Where in a body something stands, said without saying what: `$.messages[3].content[0].text`.

A body and offsets in, JSON paths out; in an event stream with the number of the event before
them. Give it the body as it is once cleaned: the names of members are a part of a path.
"""

import re
from collections.abc import Iterable, Sequence

from moontap.wire.sse import Framer

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}:,]', re.DOTALL)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_JSON = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*[\[{]")
_LONGEST_NAME = 40


def places(body: bytes, offsets: Iterable[int], event_stream: bool) -> dict[int, str]:
    """The place of each of some bytes. event_stream: the body is read as one."""
    wanted = sorted(set(offsets))
    return _in_events(body, wanted) if event_stream else _in_text(body, wanted)


def _in_text(text: bytes, wanted: Sequence[int]) -> dict[int, str]:
    if not _JSON.match(text):
        return {offset: f"byte {offset}" for offset in wanted}
    return dict(zip(wanted, json_paths(text, wanted), strict=True))


def _in_events(body: bytes, wanted: Sequence[int]) -> dict[int, str]:
    found: dict[int, str] = {}
    framer, start, at = Framer(), 0, 0
    last = framer.feed(body)
    number = 0
    for event in [*last, *filter(None, [framer.flush()])]:
        end = start + len(event.raw)
        number += bool(event.lines)
        here = f"event {number}" if event.lines else f"before event {number + 1}"
        mine: list[int] = []
        while at < len(wanted) and wanted[at] < end:
            mine.append(wanted[at])
            at += 1
        if mine:
            inside = {one: _inside(event.lines, one - start) for one in mine}
            data = event.data
            known = [one for one in inside.values() if one is not None]
            paths = _in_text(data, known) if _JSON.match(data) else {}
            for one, offset in inside.items():
                path = paths.get(offset) if offset is not None else None
                found[one] = f"{here} {path}" if path else here
        start = end
    return found


def _inside(lines: Sequence[tuple[int, int]], offset: int) -> int | None:
    """Where in an event's data a byte of the event stands."""
    before = 0
    for start, end in lines:
        if start <= offset < end:
            return before + offset - start
        before += end - start + 1
    return None


def json_paths(text: bytes, offsets: Sequence[int]) -> list[str]:
    """The JSON path of each byte; offsets in rising order. A name's own path is its member's."""
    paths: list[str] = []
    stack: list[str | int] = []  # for each open container the name or index it is at
    is_name = False
    for token in _TOKEN.finditer(text):
        while len(paths) < len(offsets) and offsets[len(paths)] < token.start():
            paths.append(_path(stack))
        sign = text[token.start()]
        if sign == 0x7B:  # {
            stack.append("")
            is_name = True
        elif sign == 0x5B:  # [
            stack.append(0)
            is_name = False
        elif sign in b"]}":
            if stack:
                stack.pop()
            is_name = False
        elif sign == 0x2C and stack:  # ,
            top = stack[-1]
            if isinstance(top, int):
                stack[-1] = top + 1
            else:
                is_name = True
        elif sign == 0x22 and is_name and stack:  # "
            stack[-1] = token[0].strip(b'"').decode("utf-8", "replace")
            is_name = False
        while len(paths) < len(offsets) and offsets[len(paths)] < token.end():
            paths.append(_path(stack))
        if len(paths) == len(offsets):
            break
    return paths + [_path(stack)] * (len(offsets) - len(paths))


def _path(stack: Sequence[str | int]) -> str:
    out = ["$"]
    for step in stack:
        if isinstance(step, int):
            out.append(f"[{step}]")
        elif _PLAIN.fullmatch(step):
            out.append(f".{step}")
        elif step:
            shown = step if len(step) <= _LONGEST_NAME else step[:_LONGEST_NAME] + "…"
            out.append(f"[{shown!r}]")
    return "".join(out)
