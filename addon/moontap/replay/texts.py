"""Texts without what changes from run to run: dates, times, ids, reminders, masks.

A text in, the text with placeholders out. Pure. What it makes equal that is not equal is told
apart again where two recorded requests come out the same (see `server`).
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from moontap.rules import Replay

# Claude Code puts these in and takes them out again as it sees fit, within texts, tool results
# and as blocks of their own (seen on 2.1.328).
_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_OPEN = "<system-reminder>"

_MONTH = (
    "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|"
    "Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_DAY = (
    "(?:Mon(?:day)?|Tue(?:sday)?|Wed(?:nesday)?|Thu(?:rsday)?|Fri(?:day)?|Sat(?:urday)?|"
    "Sun(?:day)?)"
)
_CLOCK = r":[0-5][0-9](?::[0-5][0-9](?:[.,][0-9]+)?)?(?: ?[AaPp][Mm]\b)?"
_TIME = rf"(?:[01]?[0-9]|2[0-3]){_CLOCK}"
_ZONE = r"(?: ?(?:Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2})\b)?"
# Behind the first character, because a pattern that begins with one is searched far faster. A word
# starts there, and not behind `:` or `.`: the 12:30 of `a.py:12:30` is no time.
_START = r"(?<![\w.:].)"

_IDS = ("toolu_", "msg_", "req_", "call_", "chatcmpl-", "cmpl-", "resp_", "sess_")


_ANY = re.compile(r"[0-9]|\*{6}")  # most short texts have neither, and so nothing of the table

_RECENT, _LONG = 256, 64 * 1024


class _Changing(NamedTuple):
    """maybe: quick to search for, and where none of it is found the slow pattern is not either."""

    maybe: tuple[re.Pattern[str] | str, ...]
    pattern: re.Pattern[str]
    placeholder: str


_TABLE: Sequence[_Changing] = (
    _Changing(
        (re.compile(r"-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-"),),
        re.compile(
            rf"[0-9a-fA-F]{_START}[0-9a-fA-F]{{7}}-(?:[0-9a-fA-F]{{4}}-){{3}}[0-9a-fA-F]{{12}}\b"
        ),
        "[id]",
    ),
    _Changing(
        _IDS,
        # With a digit: `call_handleIncomingRequest` is a name that somebody gave.
        re.compile(rf"\b(?:{'|'.join(_IDS)})(?:tool-)?(?=[A-Za-z]*[0-9])[0-9A-Za-z]{{16,}}\b"),
        "[id]",
    ),
    _Changing(
        (re.compile(r"-[01][0-9]-[0-3][0-9]"), re.compile(r"/[01][0-9]/[0-3][0-9]")),
        re.compile(
            rf"[0-9]{_START}[0-9]{{3}}([-/])[01][0-9]\1[0-3][0-9](?:[T ]{_TIME}{_ZONE})?(?![0-9])"
        ),
        "[date]",
    ),
    _Changing(
        (re.compile(r"[JFMASOND](?:an|eb|ar|pr|ay|un|ul|ug|ep|ct|ov|ec)[a-z]*\.?,? +[0-9]"),),
        re.compile(
            rf"\b(?:{_DAY},? +)?(?:[0-9]{{1,2}} +)?{_MONTH}\.?,? +[0-9]{{1,4}}\b"
            rf"(?:,? +[0-9]{{4}}\b)?(?:,? +{_TIME}(?: +[A-Z]{{3,4}}\b)?(?: +[0-9]{{4}}\b)?)?"
        ),
        "[date]",
    ),
    _Changing(
        (re.compile(r":[0-5][0-9]"),),
        re.compile(rf"[0-9]{_START}(?:(?<=[01])[0-9]|(?<=2)[0-3])?{_CLOCK}{_ZONE}(?![0-9:])"),
        "[time]",
    ),
    _Changing(  # seconds since 1970, or thousandths and so on of them
        (re.compile(r"1[5-9][0-9]{8}"),),
        re.compile(
            rf"1{_START}[5-9][0-9]{{8}}(?:[0-9]{{3}}|[0-9]{{6}}|[0-9]{{9}})?(?:\.[0-9]+)?\b"
        ),
        "[date]",
    ),
)

# A capture has as many as the secret was long, and another key has another length.
_SECRET = _Changing(("******",), re.compile(r"\*{6,}"), "[secret]")


class Texts:
    """What counts of a text, by the rules and by what always holds.

    changing: whether dates, times and ids become placeholders.
    """

    def __init__(self, rules: Replay | None = None, *, changing: bool = True) -> None:
        self._replace = (rules or Replay()).replace
        self._table = (*_TABLE, _SECRET) if changing else (_SECRET,)
        # A client sends its last message once more, without the cache mark: the same text.
        self._recent = lru_cache(_RECENT)(self._counted)

    def __call__(self, text: str) -> str:
        """The text that counts: stripped, changing parts as placeholders in brackets."""
        return self._recent(text) if len(text) < _LONG else self._counted(text)

    def _counted(self, text: str) -> str:
        for one in self._replace:
            text = one.pattern.sub(one.text.replace("\\", "\\\\"), text)
        if _OPEN in text:
            pieces = (piece.strip() for piece in _REMINDER.split(text))
            text = "\n".join(piece for piece in pieces if piece)
        if not _ANY.search(text):
            return text.strip()
        for maybe, pattern, placeholder in self._table:
            for sign in maybe:
                if sign in text if isinstance(sign, str) else sign.search(text):
                    text = pattern.sub(placeholder, text)
                    break
        return text.strip()

    def value(self, value: object) -> object:
        """The same for every string of a decoded JSON value; names of members stay."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, dict):
            return {name: self.value(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self.value(one) for one in value]
        return value
