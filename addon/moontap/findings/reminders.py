"""Texts and the reminders that clients put into them.

A text in, texts out. Pure, linear: a pattern with `.*?` costs the square of many openings that
nothing closes, which 1 MB of them showed.
"""

from collections.abc import Iterator

OPEN, _CLOSE = "<system-reminder>", "</system-reminder>"


def with_reminders(text: str) -> Iterator[str]:
    """The parts of a text in order: reminders, which begin with `OPEN`, and what stands between."""
    at = 0
    while (start := text.find(OPEN, at)) >= 0:
        yield text[at:start]
        end = text.find(_CLOSE, start)
        at = end + len(_CLOSE) if end >= 0 else len(text)
        yield text[start:at]
    yield text[at:]


def without_reminders(text: str) -> str:
    """What is left of it; one that nothing closes reaches to the end."""
    return "".join(part for part in with_reminders(text) if not part.startswith(OPEN))
