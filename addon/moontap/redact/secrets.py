"""What a secret looks like: the shapes of API keys, a person's patterns, values seen in headers.

Text goes in, the places of secrets come out. It never changes anything, and knows neither JSON
nor HTTP beyond the escapes that could hide a secret from a search in raw bytes.
"""

import json
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

Span = tuple[int, int]

_KEY = "PRIVATE KEY(?: BLOCK)?"


class Shape(NamedTuple):
    """How the keys of one issuer look.

    prefix: what they begin with, of one fixed length. body: the rest of a whole key.
    start: what follows the prefix at the least, without look-around, so that both together are a
    necessary condition in raw bytes and hold `RUN` key characters; empty where it is found in
    another way. source: where the shape is described.
    """

    prefix: str
    start: str
    body: str
    source: str


SHAPES = (
    # OpenAI, Anthropic (sk-ant-), Moonshot, Kimi Code (sk-kimi-), OpenRouter, DeepSeek. A digit or
    # a capital is asked for because of lower-case CSS classes: sk-toggleable__label-arrow.
    Shape(
        "sk-",
        "[A-Za-z0-9_-]{20}",
        "(?=[a-z_-]{0,250}+[A-Z0-9])[A-Za-z0-9_-]{20,}",
        "issuers' consoles; shorter than the shortest of their keys",
    ),
    Shape(
        "A[KS]IA",
        "[A-Z0-9]{16}",
        "[A-Z0-9]{16}(?![A-Za-z0-9])",
        "AWS IAM user guide, unique identifiers",
    ),
    Shape(
        "gh[pousr]_",
        "[A-Za-z0-9]{30}",
        "[A-Za-z0-9]{30,}",
        "GitHub engineering blog on token formats, 2021",
    ),
    Shape(
        "github_pat_",
        "[A-Za-z0-9_]{30}",
        "[A-Za-z0-9_]{30,}",
        "GitHub documentation, kinds of tokens and their prefixes",
    ),
    Shape(
        "xox[a-z]-",
        "[A-Za-z0-9-]{16}",
        "(?=[A-Za-z-]{0,250}+[0-9])[A-Za-z0-9-]{16,}",
        "Slack API documentation, token types",
    ),
    Shape(
        "AIza",
        "[A-Za-z0-9_-]{35}",
        "[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])",
        "Google Cloud documentation, API keys",
    ),
    Shape(
        "glpat-",
        "[A-Za-z0-9_-]{20}",
        r"[A-Za-z0-9_-]{20,}(?:\.[A-Za-z0-9_-]{2,}){0,2}",
        "GitLab documentation, token prefixes",
    ),
    Shape(
        "hf_",
        "[A-Za-z0-9]{30}",
        "[A-Za-z0-9]{30,}",
        "Hugging Face documentation, access tokens",
    ),
    # Up to the END line, or, where it is missing, over the lines that look like key material, with
    # or without the line numbers that file readers put in front.
    Shape(
        "-----BEGIN ",
        "",
        rf"(?:[A-Z0-9]+ )*{_KEY}-----"
        rf"(?:[^-]*+(?:-(?!----)[^-]*+)*+-----END (?:[A-Z0-9]+ )*{_KEY}-----"
        r"|(?:(?:\s|\\[nr])*+(?:[0-9]++[\t→|: ]++)?[A-Za-z0-9+/=]{16,}+)++"
        r"(?:(?:\s|\\[nr])*+(?:[0-9]++[\t→|: ]++)?[A-Za-z0-9+/=]++(?=\s*+\Z))?)",
        "RFC 7468",
    ),
)


def _standing_free(prefix: str) -> str:
    """A prefix that is not the middle of a word (`risk-…`).

    Right behind a percent escape, a terminal colour (`ESC[32m`) or a newline that was escaped once
    more it does stand free. Look-behind comes after the prefix: a search for letters is fast, one
    for conditions is not.
    """
    before = (r"%[0-9A-Fa-f]{2}", "[0-9]m", r"\\[nrtbf]")
    free = "|".join(f"(?<={one}{prefix})" for one in before)
    return f"{prefix}(?:(?<![A-Za-z0-9]{prefix})|{free})"


def _rare_first(prefix: str) -> str:
    """A prefix, searched by its last character where that is rare in text and base64."""
    return f"{prefix[-1]}(?<={prefix})" if prefix[-1] in "-_" else prefix


# Every start begins with this many key characters in a row, a JSON Web Token among them.
RUN = 20
_RUN_MARKS = b"k" * RUN
_KEY_CHARACTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_MARKS = bytes(0x6B if byte in _KEY_CHARACTERS else 0x20 for byte in range(256))
# A 5 MB picture in base64 has 80,000 runs; looking at each takes longer than one regex over all.
_MOST_RUNS = 4000

_START = re.compile(
    "|".join(_rare_first(one.prefix) + one.start for one in SHAPES if one.start).encode()
)
_ANY = re.compile("|".join(_standing_free(one.prefix) + one.body for one in SHAPES))

# JSON Web Tokens: RFC 7519; a JSON object in base64url begins with eyJ. What only begins like one
# is passed over to where its first part ends: looked for at each `eyJ` within it, a text of nothing
# else took time quadratic in its length. Group 1: of one that is whole, or could be.
_TOKEN = re.compile(
    _standing_free("eyJ")
    + r"[A-Za-z0-9_-]{17,}+(\.[A-Za-z0-9_-]*+\.[A-Za-z0-9_-]{20,}+(?:\.[A-Za-z0-9_-]+){0,2})?"
)
_TOKEN_START = re.compile(rb"eyJ[A-Za-z0-9_-]{17,}+(\.)?")
_PEM = _KEY.partition("(")[0].encode()
# A letter, digit or sign that was written as an escape, at any depth of JSON inside JSON. Encoders
# that are careful with HTML write " & ' < > so, and often; no key holds them.
_ESCAPE = re.compile(rb"\\u00(?!2[267]|3[cCeE])[2-7][0-9a-fA-F]")
_ESCAPE_START = b"\\u00"

SHORTEST_VALUE = 8
# RFC 3986, 2.3, without the tilde, which some encode.
_NEVER_QUOTED = re.compile(r"[A-Za-z0-9_.-]+")
_TO_QUOTE = re.compile(r"[^A-Za-z0-9_.-]")
# A run of a value that is shorter stands everywhere, and would only cost time.
_SHORTEST_RUN = 4


class Needles:
    """What to look for in one flow.

    patterns: a person's regular expressions. values: secrets known word for word; those with fewer
    than eight characters would hit ordinary text and are left out.
    """

    def __init__(
        self, patterns: Sequence[re.Pattern[str]] = (), values: Iterable[str] = ()
    ) -> None:
        self.patterns = tuple(patterns)
        kept = dict.fromkeys(
            value for value in values if len(value) >= SHORTEST_VALUE and value.strip("*")
        )
        # The longest first: one value may be a part of another.
        self._values = sorted(kept, key=len, reverse=True)
        self._raw = [raw for value in kept for raw in _encodings(value)]
        self._quoted = [_Quoted(value) for value in self._values if _TO_QUOTE.search(value)]

    @property
    def values(self) -> frozenset[str]:
        """The values that are looked for."""
        return frozenset(self._values)

    def find(self, text: str, patterns: bool = True, known: bool = True) -> list[Span]:
        """Where secrets stand in a decoded text: spans in order, none overlapping another.

        patterns: look for the person's patterns. known: look for shapes and values.
        """
        spans: list[Span] = []
        if known:
            spans += [match.span() for match in _ANY.finditer(text)]
            spans += [match.span() for match in _TOKEN.finditer(text) if match[1]]
            for value in self._values:
                start = text.find(value)
                while start >= 0:
                    spans.append((start, start + len(value)))
                    start = text.find(value, start + len(value))
            for quoted in self._quoted:
                spans += quoted.find(text)
        if patterns:
            for pattern in self.patterns:
                spans += [match.span() for match in pattern.finditer(text)]
        return merged(spans)

    def candidates(self, body: bytes) -> list[int]:
        """Offsets near which a secret may stand, shapes and values only; empty: there is none.

        Goal: a few milliseconds for 5 MB without secrets. An alternation of all prefixes takes
        ten times as long, and a search for each prefix four times; but every key has a run of
        `RUN` key characters, which ordinary text has not, and a search for a long needle skips.
        """
        found: list[int] = []
        marks = body.translate(_MARKS)
        position = marks.find(_RUN_MARKS)
        for _ in range(_MOST_RUNS):
            if position < 0:
                break
            end = marks.find(b" ", position + RUN)
            end = len(marks) if end < 0 else end
            if _START.search(body, position, end) or _begins_token(body, position, end):
                found.append(position)
            position = marks.find(_RUN_MARKS, end)
        else:
            if position >= 0:
                found += [match.start() for match in _START.finditer(body, position)]
                tokens = _TOKEN_START.finditer(body, position)
                found += [match.start() for match in tokens if match[1]]
        found += escaped_letters(body)
        for raw in (_PEM, *self._raw):
            position = body.find(raw)
            while position >= 0:
                found.append(position)
                position = body.find(raw, position + len(raw))
        for quoted in self._quoted:
            found += quoted.candidates(body)
        return sorted(found)


class _Quoted:
    """A value as it may stand in a URL or a form.

    Encoders differ in what they leave as it is (`/`, `!'()*`, `~`), in the case of the digits and
    in what a blank becomes, and one may have encoded what another had: one pattern for all.
    """

    def __init__(self, value: str) -> None:
        self._value = value
        # No encoder touches these, so that they stand in the raw body as well.
        self._run = max(_NEVER_QUOTED.findall(value) or [""], key=len)
        self._raw = self._run.encode()

    # Most flows need neither pattern, and a small exchange would pay for them.

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("".join(map(_quoted, self._value)))

    @cached_property
    def _escape(self) -> re.Pattern[bytes]:
        """An escape that every encoded spelling holds one of."""
        odd = {byte for one in _TO_QUOTE.findall(self._value) for byte in _bytes(one)}
        digits = "|".join(f"{byte:02X}" for byte in sorted(odd))
        blank = r"|\+" if " " in self._value else ""
        return re.compile(rf"%(?:25)*(?:{digits}){blank}".encode(), re.I)

    def find(self, text: str) -> list[Span]:
        """Where it stands in a decoded text."""
        if self._run not in text or ("%" not in text and "+" not in text):  # a blank becomes `+`
            return []
        return [match.span() for match in self._pattern.finditer(text)]

    def candidates(self, body: bytes) -> list[int]:
        """Offsets in raw bytes near which it may stand."""
        if b"%" not in body and b"+" not in body:
            return []
        if len(self._raw) < _SHORTEST_RUN:
            return [match.start() for match in self._escape.finditer(body)]
        found: list[int] = []
        position = body.find(self._raw)
        while position >= 0:
            found.append(position)
            position = body.find(self._raw, position + len(self._raw))
        return found


def _begins_token(body: bytes, start: int, end: int) -> bool:
    """Whether the run of key characters between may be the first part of a JSON Web Token."""
    at = body.find(b"eyJ", start, end) if body[end : end + 1] == b"." else -1
    return 0 <= at <= end - RUN


def has_escaped_letter(body: bytes) -> bool:
    """Whether any letter, digit or sign is written as an escape, so that a search may miss it."""
    return _ESCAPE_START in body and _ESCAPE.search(body) is not None


def escaped_letters(body: bytes) -> list[int]:
    """Where letters, digits and signs are written as escapes, so that a search misses them."""
    if _ESCAPE_START not in body:
        return []
    return [match.start() for match in _ESCAPE.finditer(body)]


def _encodings(value: str) -> list[bytes]:
    """How a value can stand in a raw body, save for escapes of letters."""
    quoted = json.dumps(value, ensure_ascii=False)[1:-1]
    careful = quoted
    for character in "&<>'":
        careful = careful.replace(character, f"\\u{ord(character):04x}")
    forms = (value, quoted, quoted.replace("/", "\\/"), careful, json.dumps(value)[1:-1])
    return [*dict.fromkeys(form.encode("utf-8", "surrogateescape") for form in forms)]


def _bytes(character: str) -> bytes:
    return character.encode("utf-8", "surrogateescape")


def _quoted(character: str) -> str:
    """A character of a value, as it is or encoded any number of times, as a pattern."""
    if _NEVER_QUOTED.fullmatch(character):
        return re.escape(character)
    if character == "%":
        return "%(?:25)*"
    digits = "".join(
        "%(?:25)*" + "".join(f"[{digit}{digit.lower()}]" for digit in f"{byte:02X}")
        for byte in _bytes(character)
    )
    blank = r"|\+" if character == " " else ""
    return f"(?:{re.escape(character)}|{digits}{blank})"


def merged(spans: list[Span]) -> list[Span]:
    """The spans in order, those that overlap as one; empty ones left out."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if start == end:
            continue
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
