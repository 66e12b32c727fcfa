"""Values of the wire in one line, and lists of them in as few lines as they take.

Texts in, texts out. Pure. What is long is cut before it is looked at.
"""

import re
from collections.abc import Iterator, Sequence

from moontap.report.text import short

WIDE = re.compile(
    "[\u1100-\u115f\u2e80-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60"
    "\uffe0-\uffe6\U0001f300-\U0001f64f\U0001f680-\U0001f6ff\U0001f900-\U0001faff"
    "\U00020000-\U0003fffd]"
)
"""What takes two columns: East Asian scripts and emoji. Roughly Unicode's EastAsianWidth.txt."""

_ID = 100  # characters; the APIs take at most 64


def one_line(text: str, limit: int) -> str:
    """The first words of a text in at most `limit` columns; line breaks and runs of blanks become
    one blank."""
    if len(text) <= limit and text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()  # as thousands of them are
    if text[:1].isspace():
        text = text.lstrip()
    most = 2 * limit + 200  # enough where it has some runs of blanks
    start = " ".join(text[:most].split())
    if len(text) > most:
        start += "…"
    limit = max(limit, 2)
    line = short(start, limit)
    if columns(line) <= limit:
        return line
    while columns(line) > limit - 1:
        line = line[: -max(1, (columns(line) - limit) // 2)]
    return line + "…"


def columns(line: str) -> int:
    """How many columns a line takes; characters of East Asian scripts and emoji take two."""
    if line.isascii():
        return len(line)
    return len(line) + len(WIDE.findall(line))


def named(id_: str | None) -> str:
    """An id as it stands, or that there is none."""
    if id_ is None:
        return "(no id)"
    return short(id_, _ID) or "(empty id)"


def filled(words: Sequence[str], width: int) -> Iterator[str]:
    """Words with commas between, as many to a line as it holds."""
    line = ""
    for number, word in enumerate(words, 1):
        word += "," if number < len(words) else ""
        if line and len(line) + 1 + len(word) > width:
            yield line
            line = word
        else:
            line = f"{line} {word}" if line else word
    if line:
        yield line
