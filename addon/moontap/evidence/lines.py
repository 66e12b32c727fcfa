"""Files of one JSON object a line: each line with its number, the damaged ones left out and said.

Bytes in, objects out. Pure. Linear.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from moontap.evidence import partial
from moontap.evidence.damage import Damage
from moontap.wire import jsontext

_SAID = 20  # damaged lines that are named one by one


class Record(NamedTuple):
    """number: the line, from 1 on. value: the object. text: the line."""

    number: int
    value: dict[str, Any]
    text: bytes


def records(text: bytes, damage: list[Damage]) -> Iterator[Record]:
    """The objects of a file. damage: what was left out is added to it."""
    left_out = 0
    last = text.count(b"\n") + 1
    for number, line in enumerate(text.split(b"\n"), 1):
        line = line.strip(b" \t\r\0")
        if not line:
            continue
        try:
            value = jsontext.loads(line)
        except ValueError:
            value = None
        if isinstance(value, dict):
            yield Record(number, value, line)
            continue
        left_out += 1
        if left_out <= _SAID:
            what = partial.reason(line) if value is None else None
            what = what or ("it breaks off" if number == last else "it is no JSON object")
            damage.append(Damage(f"{what}, and is left out", number))
    if left_out > _SAID:
        damage.append(Damage(f"{left_out - _SAID} more such lines"))
