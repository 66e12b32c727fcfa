"""Texts without the reminders that clients put into them.

A text in, a text out. Pure, linear: a pattern with `.*?` costs the square of many openings that
nothing closes, which 1 MB of them showed.
"""

_OPEN, _CLOSE = "<system-reminder>", "</system-reminder>"


def without_reminders(text: str) -> str:
    """What is left of it; one that nothing closes reaches to the end."""
    kept, at = [], 0
    while (start := text.find(_OPEN, at)) >= 0:
        kept.append(text[at:start])
        end = text.find(_CLOSE, start)
        at = end + len(_CLOSE) if end >= 0 else len(text)
    kept.append(text[at:])
    return "".join(kept)
