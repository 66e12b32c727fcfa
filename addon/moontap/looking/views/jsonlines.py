"""A JSON text as lines that people can read: two blanks a level, key order and numbers kept.

JSON text in, lines out, long strings and long values folded. Only strings that are long or hold
`\\u` escapes are spelled anew. Pure.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import NoReturn

import msgspec

from moontap.report.text import spelled
from moontap.wire import jsontext

DEEP = "nested too deeply to be set out"

_DEEPEST = 100  # levels; the indents take the square of them
_MOST_LINES = 100
"""Of a folded value. mitmweb shows 512 lines of a page at first."""
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]', re.DOTALL)
_LINE = re.compile(r'([ ]*+)("[^"\\]*+(?:\\.[^"\\]*+)*+": )?+')
_SURROGATE = re.compile("[\ud800-\udfff]")
_ANY = msgspec.json.Decoder()
_STRING = msgspec.json.Decoder(str)


def fault(text: str) -> str:
    """Why a text is not valid JSON, with where; `""` for one that is, `DEEP` where it is too deep.

    As a browser's `JSON.parse` judges: half surrogates pass, `NaN` does not.
    """
    if _is_deep(text):
        return DEEP
    try:
        _ANY.decode(text.encode("utf-8", "surrogatepass"))
        return ""
    except (msgspec.MsgspecError, UnicodeDecodeError):
        pass  # the other parser takes more, and says where
    try:
        # Numbers as texts: Python refuses to read one of more than 4,300 digits.
        json.loads(text, parse_constant=_refuse, parse_int=str, parse_float=str)
    except json.JSONDecodeError as error:
        return f"{error.msg.removesuffix(' starting at')}, character {error.pos:,}"
    except ValueError as error:
        return str(error)
    return ""


def pretty(text: str, fold: int | None) -> tuple[list[str], bool]:
    """The lines of a JSON text that `fault` finds nothing in, and whether anything was left out.

    fold: how many characters of a string are shown; None shows all of everything. Half a surrogate
    pair becomes `\\ufffd`.
    """
    whole = jsontext.mended(_SURROGATE.sub("\ufffd", text).encode())
    most = -1 if fold is None else _MOST_LINES
    lines = msgspec.json.format(whole, indent=2).decode().split("\n", most)
    more = lines.pop().count("\n") + 1 if 0 < most < len(lines) else 0
    shown, left = [], bool(more)
    for line in lines:
        line, cut_short = _shown(line, fold)
        shown.append(line)
        left = left or cut_short
    if more:
        shown.append(f"[… {more:,} lines …]")
    return shown, left


def flat(lines: Sequence[str], width: int) -> str | None:
    """Lines as one, where that is not wider."""
    if len(lines) > width or sum(len(line.lstrip()) for line in lines) > width:
        return None
    one = "".join(f"{line.strip()} " if line.endswith(",") else line.strip() for line in lines)
    return one if len(one) <= width else None


def cut(text: str, most: int) -> tuple[str, int, str]:
    """The beginning of a text, how many characters were left out, and its end: for a text that is
    longer than `most`, which both together have.

    The end is kept too: what went wrong stands there in most tools' output.
    """
    tail = most // 3
    return text[: most - tail], len(text) - most, text[len(text) - tail :]


def _is_deep(text: str) -> bool:
    if text.count("[") + text.count("{") <= _DEEPEST:
        return False
    depth = 0
    for token in _brackets(text):
        depth += 1 if token in "[{" else -1
        if depth > _DEEPEST:
            return True
    return False


def _brackets(text: str) -> Iterator[str]:
    return (found[0] for found in _TOKEN.finditer(text) if len(found[0]) == 1)


def _shown(line: str, fold: int | None) -> tuple[str, bool]:
    """A line as it is shown, and whether something of it is not."""
    long = fold is not None and len(line) > fold
    if not long and "\\u" not in line and line.isprintable():
        return line, False
    found = _LINE.match(line)
    indent, key = found.groups() if found else ("", None)
    value = line[found.end() if found else 0 :]
    comma = "," if value.endswith(",") else ""
    parts = [(key[:-2], ": ")] if key else []
    parts.append((value.removesuffix(","), comma))
    shown, left = [indent], False
    for token, after in parts:
        text, cut_short = _token(token, fold)
        shown += [text, after]
        left = left or cut_short
    return "".join(shown), left


def _token(token: str, fold: int | None) -> tuple[str, bool]:
    """A string, a number or a bracket; every character of it can be printed."""
    is_string = token.startswith('"')
    text = _STRING.decode(token) if is_string else token
    left = fold is not None and len(text) > fold
    if left and fold is not None:
        head, count, tail = cut(text, fold)
        text = f"{head}[… {count:,} characters …]{tail}"
    shown = json.dumps(text, ensure_ascii=False) if is_string else text
    if not shown.isprintable():
        shown = spelled(shown, lambda one: json.dumps(one)[1:-1])
    return shown, left


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
