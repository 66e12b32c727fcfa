"""Text from the wire, made safe and short for a terminal.

Any value in, one line out. What would move a cursor or change a colour is shown as an escape.
"""

import json
import re
from collections.abc import Callable
from typing import Any

_FEW = 16
_COMMAND = re.compile(r"^((?:[^\S\n]|\x1b\[[\d;]*+m)*+)(::)", re.M)


def plain(text: str) -> str:
    """The text with everything that is not printable as an escape: a tool result may hold `ESC[2J`,
    and printing it would let the model's tools write to the person's screen."""
    if text.isprintable():
        return text
    return spelled(text, _escaped)


def spelled(text: str, escape: Callable[[str], str]) -> str:
    """A text with what is not printable spelled by `escape`, which says something printable."""
    odd = {ord(one): escape(one) for one in set(text) if not one.isprintable()}
    if len(odd) > _FEW:
        return text.translate(odd)
    for one, said in odd.items():  # megabytes of them in a hundredth of the time
        text = text.replace(chr(one), said)
    return text


def harmless(text: str) -> str:
    """Lines of which none is a command to whoever runs the workflow (GitHub, Azure) whose log they
    go to: a tool result may hold `::add-mask::`, and a line that is broken may begin with it.

    Source: `ActionCommand` of actions/runner: `::` where a line begins, `##[` anywhere in one.
    """
    return _COMMAND.sub(r"\1\\\2", text).replace("##[", "#\\#[")


def many(number: int, what: str) -> str:
    """`1 call`, `2 calls`: of things whose plural takes an s."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def short(value: Any, limit: int) -> str:
    """A value of `arguments` or `result` in at most `limit` characters; "" for None."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else _flat(value)
    cut = text[: limit + 1]  # a result may be megabytes
    line = plain(cut)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def latency(seconds: float | None) -> str:
    """Seconds as a person compares them, in a column of a table; "" for None."""
    if seconds is None:
        return ""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def lasted(seconds: float) -> str:
    """Seconds as a person reads them among words, as short as can be: `0.4 s`, `11 s`, `2 h`."""
    if seconds < 0.095:
        return f"{max(0.0, seconds) * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.0f} h"


def _flat(value: Any) -> str:
    """The text of content blocks where there is nothing else, else JSON."""
    if isinstance(value, list):
        texts = [block.get("text") for block in value if isinstance(block, dict)]
        if texts and len(texts) == len(value) and all(isinstance(text, str) for text in texts):
            return "\n".join(map(str, texts))
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
