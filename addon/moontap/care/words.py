"""What the rules name, found in decoded texts, and what it becomes.

Texts in, spans and replacements out. What a value becomes depends on the value, the rules and the
salt alone, never on where it stands. It knows neither JSON nor HTTP.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from enum import StrEnum
from urllib.parse import quote

from moontap.care.likeness import like
from moontap.care.made import digest
from moontap.care.protocol_words import KEPT
from moontap.redact.secrets import Needles, Span, escaped_letters, merged
from moontap.rules.scrub import Scrub


class Kind(StrEnum):
    """Why something is replaced."""

    SECRET = "secret"
    NAME = "name"
    PATH = "path"
    TEXT = "text"
    SELECTED = "JSON path"
    IDENTITY = "identity"
    CONNECTION = "connection"
    UNREADABLE = "unreadable"


_LETTER = r"[^\W\d_]"
# A word begins where no letter stands before it, or where that letter belongs to an escape: of a
# URL, of JSON or source code inside a text, of a terminal's colours.
_BEGINS = (
    r"(?:(?<!{})|(?<=%[0-9A-Fa-f][0-9A-Fa-f])|(?<=\\[nrtbf])|(?<=\[[0-9]m)|(?<=[\[;][0-9][0-9]m))"
)

# How a path goes on: up to a blank, a quote, a colon and the like. In a POSIX path a backslash
# belongs to the slash or the blank behind it; CJK punctuation ends a path in a CJK text.
_STOPS = r"\s\x00-\x1f\"'`<>|*?:;,&\u3000-\u303f\uff08-\uff0f\uff1a-\uff20\u2018-\u201f\u2026"
_SLASH = r"(?:\\*/|%2F)"
_ANY_SLASH = r"(?:[\\/]|%5C|%2F)"
_POSIX_REST = rf"(?:{_SLASH}|\\ |[^\\{_STOPS}])*+"
_WINDOWS_REST = rf"[^{_STOPS}]*+"
_SEGMENT = re.compile(r"((?:\\*/|\\(?! )|%2F|%5C)+)", re.I)
_SIGNS = ".-_~@#"
_TRAILING = ".!)]}=#$"
_EXTENSION = re.compile(r"(.*[^.\\/].*)(\.[A-Za-z][A-Za-z0-9]{0,4})", re.DOTALL)

_ID = re.compile(
    r"(?<![0-9A-Za-z])(?:[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{32,})"
    r"(?![0-9A-Za-z])"
)
_RAW_ID = re.compile(_ID.pattern.encode())
# Numbers as short as this are the protocols' own: indexes, counts, limits.
_SHORT_NUMBER = re.compile(r"-?[0-9]{1,3}")
# Looking for names in what a long text becomes finds some by chance, each time others.
_MOST_LOOKED_AT = 200
_MOST_REMEMBERED = 50_000


class Words:
    """The `scrub` section of the rules, ready for use.

    ids: values that name a person's account or session, word for word. salt: a part of what every
    replacement is made of.
    """

    def __init__(self, scrub: Scrub, ids: Iterable[str] = (), salt: str = "") -> None:
        self._salt = salt
        ids = sorted(set(ids), key=len, reverse=True)
        self._ids = frozenset(ids)
        self._plain_ids = [one for one in ids if not _ID.fullmatch(one)]
        self._other_ids = _pattern([_id_pattern(one) for one in self._plain_ids], 0)
        self._hex_ids = len(self._plain_ids) < len(ids)
        self._names = _pattern(_longest_first(map(_name_pattern, scrub.names)))
        self._paths = _pattern(_longest_first(map(_path_pattern, scrub.paths)))
        self._heads = _pattern(_longest_first(map(_head_pattern, scrub.paths)))
        self._texts = scrub.texts
        words = [*scrub.names, *scrub.paths]
        self._keys = frozenset(key for word in words for key in _keys(word))
        self._raw_keys = frozenset(
            key for word in (*words, *self._plain_ids) for key in _raw_keys(word)
        )
        self._segments = frozenset(
            segment.casefold()
            for path in scrub.paths
            for segment in re.split(r"[\\/]+", path)
            if segment
        )
        self._secrets = Needles()
        self._made: Set[bytes] = frozenset()
        self._new: set[bytes] = set()
        self._remembered: dict[str, str] = {}

    @property
    def patterns(self) -> Sequence[object]:
        """Those that no search in raw bytes can stand for."""
        return self._texts

    def candidates(self, body: bytes) -> list[int]:
        """Offsets near which a name, path or id may stand; empty: there is none."""
        if not self._raw_keys and not self._ids:
            return []
        found = escaped_letters(body)
        small = body.lower()
        for key in self._raw_keys:
            position = small.find(key)
            while position >= 0:
                found.append(position)
                position = small.find(key, position + len(key))
        if self._hex_ids:
            ids = self._ids
            found += [one.start() for one in _RAW_ID.finditer(body) if one[0].decode() in ids]
        return sorted(found)

    def begin(self, made: Set[bytes]) -> None:
        """A new flow. made: what `made` gave when it was scrubbed before."""
        self._made, self._new = made, set()

    @property
    def made(self) -> Set[bytes]:
        """Digests of all that was put into this flow so far: found again, it is left alone."""
        return self._made | self._new

    def is_made(self, value: str) -> bool:
        """Whether a value was put into this flow by an earlier run."""
        return bool(self._made) and digest(value) in self._made

    def find(self, text: str, patterns: bool = True, known: bool = True) -> list[Span]:
        """Where something is to be replaced: spans in order, none overlapping another."""
        if text in KEPT or (len(text) <= 4 and _SHORT_NUMBER.fullmatch(text)):
            return []
        return [span for span in self._spans(text) if not self.is_made(text[slice(*span)])]

    def kind(self, value: str) -> Kind:
        """What a value found by `find` is; SELECTED where no rule but a JSON path names it."""
        if value in self._ids:
            return Kind.IDENTITY
        if self._paths and self._paths.fullmatch(value):
            return Kind.PATH
        if self._names and self._names.search(value):
            return Kind.NAME
        found = any(pattern.search(value) for pattern in self._texts)
        return Kind.TEXT if found else Kind.SELECTED

    def replacement(self, value: str) -> str:
        """What a value becomes; the value itself where it has no likeness, or was put there."""
        if self.is_made(value):
            return value
        new = self._remembered.get(value)
        if new is None:
            path = self._paths.fullmatch(value) if self._paths else None
            new = self._path(value) if path else self._like(value)
            if len(self._remembered) > _MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[value] = new
        if new != value:
            self._put(new)
        return new

    def sub(self, text: str, told: Callable[[Kind], None]) -> str:
        """A whole text with all that `find` finds replaced; told: the kind of each."""
        spans = self.find(text)
        for start, end in reversed(spans):
            value = text[start:end]
            new = self.replacement(value)
            if new != value:
                told(self.kind(value))
                text = text[:start] + new + text[end:]
        if spans and self.asks_for_forms:
            for start, end in self._spans(text):
                self.note(text[start:end])
        return text

    @property
    def asks_for_forms(self) -> bool:
        """Whether a rule names a form of values, which their replacements may have as well."""
        return bool(self._texts)

    def note(self, value: str) -> None:
        """Remember a value as one that was put there."""
        self._new.add(digest(value))

    def _spans(self, text: str) -> list[Span]:
        spans: list[Span] = []
        if self._may_hold(text):
            if self._names:
                spans += [match.span() for match in self._names.finditer(text)]
            if self._paths:
                spans += [self._whole_path(match) for match in self._paths.finditer(text)]
        for pattern in self._texts:
            spans += [match.span() for match in pattern.finditer(text)]
        if self._hex_ids:
            spans += [match.span() for match in _ID.finditer(text) if match[0] in self._ids]
        if self._other_ids:
            spans += [match.span() for match in self._other_ids.finditer(text)]
        return merged(spans) if spans else spans

    def _may_hold(self, text: str) -> bool:
        """A search for letters is a hundred times as fast as one that looks around, too."""
        small = text.lower()
        return any(key in small for key in self._keys)

    def _whole_path(self, match: re.Match[str]) -> Span:
        """A path without what ends the sentence it stands in."""
        start, end = match.span()
        assert self._heads
        head = self._heads.match(match.string, start, end)
        least = head.end() if head else start
        return start, max(least, start + len(match[0].rstrip(_TRAILING)))

    def _path(self, value: str) -> str:
        """Segment by segment, so that what lies in one folder still does; extensions stay."""
        assert self._heads
        head = self._heads.match(value)
        beginning = head.end() if head else 0
        out: list[str] = []
        position = 0
        parts = _SEGMENT.split(value)
        for number, part in enumerate(parts):
            if number % 2:
                out.append(part)
            else:
                last = number == len(parts) - 1 and position >= beginning
                out.append(self._segment(part, last))
            position += len(part)
        return "".join(out)

    def _segment(self, segment: str, last: bool) -> str:
        signs = len(segment) - len(segment.lstrip(_SIGNS))
        if signs:
            return segment[:signs] + self._segment(segment[signs:], last)
        parts = _EXTENSION.fullmatch(segment) if last else None
        if parts and not (self._names and self._names.search(parts[2])):
            return self._like(parts[1]) + parts[2]
        return self._like(segment)

    def _like(self, value: str) -> str:
        return like(value, self._salt, self._refused if len(value) <= _MOST_LOOKED_AT else _never)

    def _refused(self, new: str) -> bool:
        """A replacement that would be replaced, or masked, in its turn."""
        return bool(
            new in KEPT
            or new.casefold() in self._segments
            or (self._names and self._names.search(new))
            or (self._paths and self._paths.search(new))
            or self._secrets.find(new)
        )

    def _put(self, new: str) -> None:
        """Remember what was put in, and what a rule would find in that."""
        if (mine := digest(new)) in self._new:
            return
        self._new.add(mine)
        self._new.update(digest(new[start:end]) for start, end in self._spans(new))


def _never(_: str) -> bool:
    return False


def _pattern(alternatives: Sequence[str], flags: int = re.I) -> re.Pattern[str] | None:
    return re.compile("|".join(alternatives), flags) if alternatives else None


def _longest_first(patterns: Iterable[str]) -> list[str]:
    return sorted(set(patterns), key=lambda one: (-len(one), one))


def _forms(text: str) -> Iterator[str]:
    """The ways in which a text can be spelled, as patterns without boundaries."""
    seen = dict.fromkeys(unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    for one in seen:
        yield r"(?:\s+|%20|\+)".join(map(re.escape, one.split()))
        if (quoted := quote(one)) != one and not one.isascii():
            yield re.escape(quoted).replace(r"%20", r"(?:%20|\+)")


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """A name, or the segments of a path, in each spelling; and the same without escapes of URLs.

    Each spelling of one of them holds one of its spellings here.
    """
    longest = max(re.split(r"[\\/\s]+", text), key=len)
    for form in dict.fromkeys(unicodedata.normalize(one, longest) for one in ("NFC", "NFD")):
        yield form, form
        if not form.isascii():
            yield quote(form), form


def _keys(text: str) -> set[str]:
    """In small letters: a text that holds none of them holds no spelling of the name or path."""
    return {spelled.lower() for spelled, _ in _parts(text)}


def _raw_keys(text: str) -> Iterator[bytes]:
    """The same for raw bytes, in which a character may be an escape.

    Of ASCII letters only those of a run are sure to stand together; of another character its
    bytes, or the digits of its escape, at any depth of JSON inside JSON.
    """
    for spelled, plain in _parts(text):
        run = max(re.findall("[0-9A-Za-z]+", plain) or [""], key=len)
        if spelled != plain:
            yield spelled.lower().encode()
        elif len(run) >= 2 or plain.isascii():
            yield run.lower().encode()
        else:
            odd = next(one for one in plain if not one.isascii())
            for case in {odd.lower(), odd.upper(), odd}:
                yield case.encode()
                yield b"u" + case.encode("utf-16-be")[:2].hex().encode()


def _edges(text: str) -> tuple[str, str]:
    """What must not stand before and behind: by a letter no letter, by a digit no digit either.

    Where letters have no cases, as in Chinese, there are no blanks between words.
    """

    def forbidden(character: str) -> str:
        if character.isdigit():
            return r"[^\W_]"
        return _LETTER if character.lower() != character.upper() else ""

    before, after = forbidden(text[0]), forbidden(text[-1])
    return _BEGINS.format(before) if before else "", f"(?!{after})" if after else ""


def _name_pattern(name: str) -> str:
    before, after = _edges(name)
    return f"{before}(?:{'|'.join(_forms(name))}){after}"


def _id_pattern(value: str) -> str:
    return f"(?<![0-9A-Za-z]){re.escape(value)}(?![0-9A-Za-z])"


def _is_posix(path: str) -> bool:
    return "\\" not in path and not re.match(r"[A-Za-z]:", path)


def _head_pattern(path: str) -> str:
    """The beginning that a rule names."""
    slash = _SLASH if _is_posix(path) else _ANY_SLASH
    segments = re.split(r"[\\/]+", path)
    while not segments[-1]:
        segments.pop()
    forms = ["|".join(_forms(segment)) for segment in segments if segment]
    lead = f"{slash}++" if not segments[0] else _edges(segments[0])[0]
    return lead + f"{slash}++".join(f"(?:{form})" for form in forms) + _edges(segments[-1])[1]


def _path_pattern(path: str) -> str:
    return _head_pattern(path) + (_POSIX_REST if _is_posix(path) else _WINDOWS_REST)
