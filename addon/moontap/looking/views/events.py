"""A stream as its events, with when each arrived and how large it was.

A `ShownStream` in, a page of text out. Pure.

`events` says how many there are, `note` what is to be known of the table below: milliseconds since
the headers, bytes, what the event is. Runs of pieces of one text are one line (`text_delta
×61 [0]`), as are pings and comments; a pause is a line of its own. An id that the tap changed is
`Bash_0 -> Bash_0_tq4k2xw7m3a`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from moontap.looking.views.gist import Gist, Gists, quoted
from moontap.looking.views.page import FOLD, WIDTH, Page
from moontap.looking.views.shown import ShownStream
from moontap.looking.views.words import joined
from moontap.report.text import plain
from moontap.wire.protocol import event_texts
from moontap.wire.sse import Framer, plain_events

SILENCE = 1000.0
"""Milliseconds from one event to the next that are said."""

_TIME, _SIZE = 5, 5  # columns at the least
# Where a line may be broken: an id and what it has become stay together.
_BLANK = re.compile("(?<! id)(?<! ->) (?!->)")
_FIRST, _LAST = 500, 2000  # lines; a long reply has a few hundred
_EXCERPT = 20  # characters that a text has at least
_COMMENT = 40


@dataclass(slots=True)
class _Piece:
    """An event as it stands in the stream. texts: its JSON texts; none in a comment. end: where
    it ends in the stream. whole: its blank line has come."""

    raw: bytes
    texts: list[bytes]
    end: int
    whole: bool = True


@dataclass(slots=True)
class _Row:
    """A line of the table: an event, or a run of them. last: when the last of them came; None
    where that is not known."""

    gist: Gist
    size: int
    first: float | None
    last: float | None
    count: int = 1
    note: str = ""
    texts: list[str] = field(default_factory=list)


def events_page(shown: ShownStream, fold: int | None = FOLD) -> str:
    """The page. fold: None shows all of thousands of lines."""
    page = Page(None)
    pieces = _pieces(shown.upstream)
    theirs = pieces if shown.body == shown.upstream else _pieces(shown.body)
    _head(page, shown, pieces, theirs)
    rows = list(_folded(_rows(shown, pieces, theirs)))
    left = 0 if fold is None else max(0, len(rows) - _FIRST - _LAST)
    first, final = (rows[:_FIRST], rows[-_LAST:]) if left else (rows, [])
    columns = _Columns([*first, *final])
    page.line(columns.line("ms", "bytes", "event"))
    _table(page, columns, first)
    if left:
        page.line(columns.line("", "", f"[… {left:,} lines: moontap_fold=0 shows them …]"))
        _table(page, columns, final, rows[-_LAST - 1].last or 0.0)
    return str(page)


def _table(page: Page, columns: "_Columns", rows: list[_Row], last: float = 0.0) -> None:
    """last: when the event before them came."""
    for row in rows:
        if row.first is not None and row.first - last > SILENCE:
            silence = f"… {(row.first - last) / 1000:.1f} s of silence"
            page.line(columns.line("", "", silence))
        last = last if row.last is None else row.last
        for line in columns.lines(row):
            page.line(line)


def _head(page: Page, shown: ShownStream, pieces: list[_Piece], theirs: list[_Piece]) -> None:
    count = sum(1 for piece in pieces if piece.texts)
    about = [f"{count:,}"]
    if shown.chunks:
        about += [f"{len(shown.chunks):,} chunks", f"{shown.chunks[-1][1] / 1000:.2f} s"]
    about.append(f"{len(shown.upstream):,} bytes")
    if shown.live:
        about.append("still coming")
    elif shown.cut and not _has_end(pieces):
        about.append("broke off")
    page.field("events", ", ".join(about))
    if not shown.chunks and shown.untimed:
        page.prose("note", f"no times: {shown.untimed}")
    if shown.wire.passing:  # events have a name there
        bare = sum(1 for piece in pieces if piece.texts and b"event:" not in piece.raw)
        if bare:
            page.prose("note", f"{bare:,} of them have no event line")
    if theirs is not pieces:
        got = sum(1 for piece in theirs if piece.texts)
        if got != count:
            page.prose("note", f"the client got {got:,} of them")


def _has_end(pieces: list[_Piece]) -> bool:
    """Whether the stream has come to its end: the OpenAI SDK hangs up at `[DONE]`, and that is no
    loss."""
    texts = pieces[-1].texts if pieces else ()
    # In quotes: within a text that a model writes they are escaped.
    return any(text.strip() == b"[DONE]" or b'"message_stop"' in text for text in texts)


def _pieces(body: bytes) -> list[_Piece]:
    """The events of a stream; bytes between them that say nothing left out."""
    most = plain_events(body)
    ends = list(accumulate(len(raw) for raw, _ in most))
    pieces = [_Piece(raw, [data], end) for (raw, data), end in zip(most, ends, strict=True)]
    end = ends[-1] if ends else 0
    framer = Framer()
    events = framer.feed(body[end:])
    last = framer.flush()
    for event in [*events, last] if last else events:
        end += len(event.raw)
        if event.raw.strip():
            texts = [event.text(lines) for lines in event_texts(event)]
            pieces.append(_Piece(event.raw, texts, end, event is not last))
    return pieces


def _rows(shown: ShownStream, pieces: list[_Piece], theirs: list[_Piece]) -> Iterator[_Row]:
    gists = Gists(shown.wire.protocol)
    names = _Names() if shown.wire.passing else None  # only there events have a name
    times = _Times(shown)
    for number, piece in enumerate(pieces):
        raw, at = piece.raw, times.of(piece.end)
        note = "" if piece.whole else _ending(shown)
        if not piece.texts:
            yield _Row(_without_data(raw), len(raw), at, at, note=note)
            continue
        if raw.startswith(b":") or b"\n:" in raw:
            note = joined("with a comment", note)
        client = theirs[number] if number < len(theirs) else piece
        differs = client.raw != raw and len(client.texts) == len(piece.texts)
        size = len(raw)
        for position, text in enumerate(piece.texts):
            gist = gists.of(text, client.texts[position] if differs else None)
            named = names.of(raw, gist) if names else ""
            yield _Row(gist, size, at, at, note=joined(named, note) if named else note)
            size = 0  # several texts of one event


def _folded(rows: Iterator[_Row]) -> Iterator[_Row]:
    """The rows, runs of such that are alike as one."""
    run: _Row | None = None
    for row in rows:
        if run is not None and _goes_on(run, row):
            run.count += 1
            run.size += row.size
            run.last = row.last
        else:
            if run is not None:
                yield run
            run = row
        run.texts.append(row.gist.text)
    if run is not None:
        yield run


def _goes_on(run: _Row, row: _Row) -> bool:
    if not (row.gist.runs and run.gist.what == row.gist.what and run.note == row.note):
        return False
    return row.first is None or run.last is None or row.first - run.last <= SILENCE


class _Columns:
    """The table's columns, as wide as what stands in them."""

    def __init__(self, rows: list[_Row]) -> None:
        self._time = max([_TIME, *(len(_span(row)) for row in rows)])
        self._size = max([_SIZE, *(len(f"{row.size:,}") for row in rows)])
        self._room = WIDTH - self._time - self._size - 4

    def line(self, time: str, size: str, what: str) -> str:
        return f"{time:>{self._time}}  {size:>{self._size}}  {what}"

    def lines(self, row: _Row) -> Iterator[str]:
        """What an event is, over as many lines as it takes."""
        what = plain(self._what(row))
        parts = [what] if len(what) <= self._room else list(self._parts(what))
        yield self.line(_span(row), f"{row.size:,}", parts[0])
        for part in parts[1:]:
            yield self.line("", "", f"  {part}")

    def _parts(self, what: str) -> Iterator[str]:
        """No word is broken: ids are searched for."""
        line, *words = _BLANK.split(what)
        for word in words:
            if len(line) + 1 + len(word) > self._room - 2:
                yield line
                line = word
            else:
                line = f"{line} {word}"
        yield line

    def _what(self, row: _Row) -> str:
        what = row.gist.what
        if row.count > 1:
            name, bracket, place = what.partition(" [")
            what = f"{name} ×{row.count:,}{bracket}{place}"
        note = f"  # {row.note}" if row.note else ""
        if text := "".join(row.texts):
            room = self._room - len(what) - len(note) - 4
            what += f"  {quoted(text, max(room, _EXCERPT))}"
        return what + note


def _span(row: _Row) -> str:
    if row.first is None or row.last is None:
        return "-"
    first, last = f"{row.first:.0f}", f"{row.last:.0f}"
    return first if first == last else f"{first}-{last}"


class _Times:
    """When the byte before an offset came; asked in rising order."""

    def __init__(self, shown: ShownStream) -> None:
        self._times = [at for _, at in shown.chunks]
        self._ends = list(accumulate(size for size, _ in shown.chunks))
        self._chunk = 0

    def of(self, end: int) -> float | None:
        while self._chunk < len(self._ends) and self._ends[self._chunk] < end:
            self._chunk += 1
        return self._times[self._chunk] if self._chunk < len(self._times) else None


def _without_data(raw: bytes) -> Gist:
    text = raw.decode("utf-8", "backslashreplace").strip()
    if text.startswith(":"):
        return Gist(f"comment {quoted(text[1:].strip(), _COMMENT)}", "", True)
    return Gist(f"event without data {quoted(text, _COMMENT)}", "", True)


class _Names:
    """What `event:` lines say, where that is another than the data."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, str], str] = {}

    def of(self, raw: bytes, gist: Gist) -> str:
        if not raw.startswith(b"event:"):
            return ""
        key = raw[6 : raw.find(b"\n")], gist.what
        if key not in self._known:
            self._known[key] = self._compared(*key)
        return self._known[key]

    def _compared(self, line: bytes, what: str) -> str:
        name = line.strip().decode("utf-8", "backslashreplace")
        kind = what.split(" ", 1)[0]
        if kind == "unknown":
            kind = what.removeprefix("unknown ")
        same = name == kind or (name == "content_block_delta" and kind.endswith("_delta"))
        return "" if same or kind in ("no", "[DONE]") else f"event: {name[:40]}"


def _ending(shown: ShownStream) -> str:
    return "still coming" if shown.live else "unfinished"
