"""Values of the wire in one line, and lists of them in as few lines as they take.

Texts in, texts out. Pure. What is long is cut before it is looked at.
"""

import re
from collections.abc import Iterator, Sequence

from moontap.report.text import short

WIDE = re.compile(
    "[\u1100-\u115f\u2e80-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f"
    "\uff00-\uff60\uffe0-\uffe6\U00016fe0-\U0001b2fb\U0001f18e-\U0001f19a\U0001f200-\U0001f64f"
    "\U0001f680-\U0001f6ff\U0001f7e0-\U0001f7f0\U0001f900-\U0001faff\U00020000-\U0003fffd"
    # Emoji among older signs: tools print ✅ and ❌.
    "\u231a\u231b\u2329\u232a\u23e9-\u23ec\u23f0\u23f3\u25fd\u25fe\u2614\u2615\u2648-\u2653\u267f\u2693"
    "\u26a1\u26aa\u26ab\u26bd\u26be\u26c4\u26c5\u26ce\u26d4\u26ea\u26f2\u26f3\u26f5\u26fa\u26fd\u2705\u270a"
    "\u270b\u2728\u274c\u274e\u2753-\u2755\u2757\u2795-\u2797\u27b0\u27bf\u2b1b\u2b1c\u2b50\u2b55"
    "\U0001f004\U0001f0cf]"
)
"""What takes two columns: East Asian scripts and emoji. All that is wide in Unicode's
EastAsianWidth.txt, and some neighbours of it."""

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


def joined(*notes: str) -> str:
    """Those of the notes that say something, as one."""
    return "; ".join(filter(None, notes))


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
