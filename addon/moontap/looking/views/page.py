"""A page of YAML-like text, with names that stay the same so that people can grep for them.

Names and values in, lines out. What is long is folded, what could move a cursor or change a colour
stands as an escape, and no line is wider than the panes it is read in, save JSON that is shown in
full.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from moontap.looking.views import jsonlines
from moontap.looking.views.words import WIDE, columns, joined
from moontap.report.text import plain

FOLD = 600
"""Characters of a text that are shown; see `Page`."""

WIDTH = 76
"""Columns. mitmweb does not wrap; beside its list, a window of 1,280 pixels has so many."""

FULL = "see Moontap-full"

_TAB = 4
_MOST_LINES, _LAST = 24, 8  # of a folded text, however short they are; of those the last
_DEEPEST = 40  # columns of indents of folded JSON
_VALUE = 200  # characters of a value in one line: ids and reasons are shorter
_FIRST, _LAST_ONES = 20, 500  # of messages, calls and their like in a folded page
_MOST_FOLDED = 10_000  # lines of it; from there on far fewer of each are shown
_WIDES = re.compile(f"{WIDE.pattern}+")
_MARK = "\0"  # none of it is printable
_HALF = re.compile("[\ud800-\udbff][\udc00-\udfff]")


class Page:
    """Text as it grows. fold: how many characters of a text are shown; None shows all."""

    def __init__(self, fold: int | None = FOLD) -> None:
        self.fold = fold
        self._lines: list[str] = []
        self._indent = ""

    def __str__(self) -> str:
        return "\n".join([*self._lines, ""])

    @contextmanager
    def under(self) -> Iterator[None]:
        """What is added meanwhile stands further in."""
        before = self._indent
        self._indent += "  "
        try:
            yield
        finally:
            self._indent = before

    def line(self, text: str = "") -> None:
        """One line as it is, made harmless."""
        self._lines.append((self._indent + plain(text)).rstrip())

    def field(self, name: str, value: str | int, *notes: str) -> None:
        """`name: value`, perhaps with notes. A value of the wire: an endless one is cut, and words
        go on in the next line."""
        shown, about = str(value), list(filter(None, notes))
        if self.fold is not None and len(shown) > _VALUE:
            about.append(f"{len(shown):,} characters: {FULL}")
            shown = f"{shown[:_VALUE]}…"
        line = f"{name}: {shown}"
        whole = self.fold is None or any(len(word) > self.room - 2 for word in line.split(" "))
        first, *rest = [line] if whole else self._hanging(line)
        self.noted(first, () if rest else about)
        with self.under():
            for number, part in enumerate(rest, 1):
                self.noted(part, about if number == len(rest) else ())

    def _hanging(self, line: str) -> list[str]:
        """A line in parts that fit, also those that stand further in."""
        shown = plain(line)
        if columns(shown) <= self.room:
            return [shown]
        with self.under():
            return list(wrapped(shown, self.room))

    def noted(self, line: str, notes: Sequence[str]) -> None:
        """A line with `# note`, which gets lines of its own where there is no room beside it."""
        about, line = _about("; ".join(notes)), plain(line)
        fits = not notes or columns(line) + columns(about) <= self.room
        self.line(line + about if fits else line)
        with self.under():
            self.remarks(() if fits else notes)

    def remarks(self, notes: Iterable[str]) -> None:
        """Each in as many lines as it takes."""
        for note in notes:
            for part in wrapped(plain(note), self.room - 2):
                self.line(f"# {part}")

    def prose(self, name: str, text: str) -> None:
        """`name: words` over as many lines as they take; an endless text is cut."""
        shown = text if self.fold is None else f"{text[: self.fold]}{'…' * (len(text) > self.fold)}"
        with self.under():
            lines = list(wrapped(plain(" ".join(f"{name}: {shown}".split())), self.room))
        self.line(lines[0])
        with self.under():
            for line in lines[1:]:
                self.line(line)

    def text(self, name: str, text: str, note: str = "", *, share: int = 1) -> None:
        """A text of some lines under a name; folded, wrapped. share: what is of less interest is
        folded to that part of the length."""
        most = self.fold and self.fold // share
        shown, left = folded(paired(text), most)
        if left:
            note = joined(note, f"{len(text):,} characters, {left:,} left out: {FULL}")
        lines = shown.replace("\r\n", "\n").split("\n")
        if most is not None and (more := len(lines) - _MOST_LINES) > 0:
            note = note if left else joined(note, f"{more:,} lines left out: {FULL}")
            lines[_MOST_LINES - _LAST : -_LAST] = [f"[… {more:,} lines …]"]
        self.noted(f"{name}: |", [note] if note else [])
        with self.under():
            self._wrapped(lines)

    def lines(self, text: str) -> None:
        """The lines of a text, wrapped."""
        self._wrapped(text.replace("\r\n", "\n").split("\n"))

    def _wrapped(self, lines: Sequence[str]) -> None:
        for line in lines:
            if len(line) <= self.room and line.isascii() and line.isprintable():
                self._lines.append((self._indent + line).rstrip())
                continue
            # Escapes first: they are longer than what they stand for.
            tabbed = plain(line.expandtabs(_TAB))
            for part in wrapped(tabbed, self.room):
                self.line(part)

    @property
    def room(self) -> int:
        """Columns that a line has from here on."""
        return WIDTH - len(self._indent)

    def json(self, name: str, text: str, note: str = "") -> None:
        """A JSON text under a name, or beside it where it is short; folded, key order and numbers
        kept. One that is not valid stands there as a text, with why."""
        text = paired(text)
        if why := jsonlines.fault(text):
            about = why if why == jsonlines.DEEP else f"not valid JSON: {why}"
            self.text(name, text, joined(note, about))
            return
        lines, left = jsonlines.pretty(text, self.fold)
        note = joined(note, f"folded: {FULL}" if left else "")
        short = jsonlines.flat(lines, self.room - len(f"{name}: {_about(note)}"))
        if short is not None and columns(short) <= self.room - len(f"{name}: {_about(note)}"):
            self.line(f"{name}: {short}{_about(note)}")
            return
        self.noted(f"{name}:", [note] if note else [])
        with self.under():
            for line in lines:
                self._json_line(line)

    def _json_line(self, line: str) -> None:
        """Wrapped, save where all is shown: there it can be copied."""
        if self.fold is None or columns(line) <= self.room:
            self.line(line)
            return
        bare = line.lstrip(" ")
        indent = " " * min(len(line) - len(bare), _DEEPEST)
        first, *rest = wrapped(bare, self.room - len(indent) - 2)
        self.line(indent + first)
        for part in rest:
            self.line(f"{indent}  {part}")

    def some[T](self, items: Sequence[T], what: str) -> Iterator[T]:
        """The items; in a folded page of thousands the first and the last, with a line of how many
        are left out. what: they are."""
        first, last = (_FIRST, _LAST_ONES) if len(self._lines) < _MOST_FOLDED else (1, 1)
        left = len(items) - first - last
        if self.fold is None or left <= 0:
            yield from items
            return
        yield from items[:first]
        self.line(f"[… {left:,} {what}: {FULL} …]")
        yield from items[-last:]


def paired(text: str) -> str:
    """Halves of surrogate pairs that stand beside each other as the character that they are: a
    server may cut a text between them, and each piece is then decoded by itself."""
    if text.isascii() or not _HALF.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def folded(text: str, most: int | None) -> tuple[str, int]:
    """At most so many characters of a text, and how many were left out."""
    if most is None or len(text) <= most:
        return text, 0
    head, left, tail = jsonlines.cut(text, most)
    return f"{head}\n[… {left:,} characters …]\n{tail}", left


def wrapped(line: str, width: int) -> Iterator[str]:
    """A line in parts of at most `width` columns, at blanks where there are any.

    The standard library's `textwrap` takes time quadratic in the length of a word.
    """
    width = max(width, 20)
    at, size = 0, len(line)
    narrow = line.isascii() or not WIDE.search(line)
    wide = "" if narrow else _WIDES.sub(_marked, line)
    while size - at > width or not narrow:
        end = at + width if narrow else _fitting(wide, at, width)
        if end >= size:
            break
        blank = line.rfind(" ", at + 1, end + 1)
        # Not one of the blanks that the line begins with.
        inside = blank > at and not line[at:blank].isspace()
        yield line[at : blank if inside else end]
        at = blank + 1 if inside else end
    yield line[at:]


def _marked(run: re.Match[str]) -> str:
    return _MARK * (run.end() - run.start())


def _fitting(wide: str, at: int, width: int) -> int:
    """Where the part ends that begins there and takes at most `width` columns. wide: the line, with
    a mark for each character that takes two."""
    end = min(at + width, len(wide))
    while (over := end - at + wide.count(_MARK, at, end) - width) > 0:
        end -= (over + 1) // 2  # it cannot be less
    return max(end, at + 1)


def _about(note: str) -> str:
    return f"  # {note}" if note else ""
