"""Secrets without a shape of their own, told by what stands before them: `Bearer …`,
`x-api-key: …`, `"api_key": "…"`, `MOONSHOT_API_KEY=…`.

A text in, their places out. Linear: a search for the ends of the names first, because a pattern of
all of them takes half a second a megabyte. Words are left alone: what is masked is long and looks
random.
"""

import re
from collections.abc import Iterator

from moontap.redact.secrets import Span

_ENDS = ("key", "Key", "KEY", "oken", "OKEN", "ecret", "ECRET")
_OF_HEADERS = ("horization", "HORIZATION", "earer", "EARER")
_NAME = re.compile(
    r"(?:api[-_]?key|(?:auth|access|bearer|refresh)[-_]?token"
    r"|(?:client|secret|access)[-_]?(?:secret|key)|\bauthorization|\b(bearer))\Z",
    re.I,
)
_LONGEST_NAME = 16
_VALUE = r"([A-Za-z0-9._~+/=-]{16,}+)"
# A name and its value may each be quoted, in JSON within JSON as well.
_IS = r"""["'\\]{0,6}[ \t]{0,3}[:=][ \t]{0,3}["'\\]{0,6}"""
_ASSIGNED = re.compile(rf"{_IS}(?:(?:Bearer|Basic|Token)[ \t]{{1,4}})?{_VALUE}", re.I)
_BORNE = re.compile(rf"[ \t]{{1,4}}{_VALUE}")
_MANY_DIGITS = 4


def spans(text: str) -> Iterator[Span]:
    """Where such secrets stand; one may come twice."""
    for end in (*_ENDS, *_OF_HEADERS):
        at = text.find(end)
        while at >= 0:
            at += len(end)
            found = _value(text, at)
            if found:
                if _looks_random(found[1]):
                    yield found.span(1)
                at = found.end()  # a value may hold many names
            at = text.find(end, at)


def _value(text: str, at: int) -> re.Match[str] | None:
    """What stands behind a name that ends there, if one does."""
    name = _NAME.search(text[max(0, at - _LONGEST_NAME) : at])
    if not name:
        return None
    return (_BORNE if name[1] else _ASSIGNED).match(text, at)


def _looks_random(value: str) -> bool:
    """Whether it is no word or name (`config.api_key_v2`): it has capitals and digits, or many
    digits."""
    digits = sum(map(str.isdigit, value))
    letters = any(map(str.isalpha, value))
    return letters and (digits >= _MANY_DIGITS or (digits > 0 and value.lower() != value))
