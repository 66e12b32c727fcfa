"""The messages of a history, for a person: in detail, or in a line or two each; a result stands
under its call.

Messages with their marks in, lines on a page out. Pure.
"""

from collections.abc import Iterable, Sequence

from moontap.findings.reminders import OPEN, with_reminders, without_reminders
from moontap.looking.views.marks import Marks, of_odd
from moontap.looking.views.page import FULL, Page, folded
from moontap.looking.views.parts import (
    CallAt,
    Other,
    Part,
    ResultAt,
    Text,
    Thinking,
    parts_of,
    said_in,
)
from moontap.looking.views.words import columns, named, one_line
from moontap.pairing import Place
from moontap.report.text import many
from moontap.wire.types import Message, Protocol, Result

_TOOL = 64
"""Characters of a tool's name that are shown; the API takes no more."""

_LEAST = 30
"""Columns that arguments and result of a call have together, in brief."""


class History:
    """Shows messages by their position. raws: their JSON texts, in order."""

    def __init__(
        self,
        page: Page,
        protocol: Protocol,
        messages: Sequence[Message],
        raws: Sequence[bytes],
        marks: Marks,
    ) -> None:
        self._page = page
        self._protocol = protocol
        self._messages = messages
        self._raws = raws
        self._marks = marks
        self._doubles: dict[Place, list[Place]] = {}  # by the call that has a result already
        for result, call in marks.again.items():
            self._doubles.setdefault(call, []).append(result)

    def detail(self, position: int, first: int) -> None:
        """All of a message, long texts folded. first: the first one that is shown so: what answers
        an earlier call stands here, not there."""
        page, message = self._page, self._messages[position]
        above = sum(
            self._is_above(position, number, first) for number in range(len(message.results))
        )
        parts = self._put(parts_of(self._protocol, self._raws[position], message), position, first)
        about = self._about(position, above) or ("" if parts else _SILENT)
        page.field(f"message {position}", message.role or "(no role)", about)
        # Claude Code puts its environment into a message of this role, behind what was typed.
        share = 3 if message.role in ("system", "developer") else 1
        with page.under():
            for part in page.some(parts, "parts"):
                match part:
                    case Text(text):
                        self._text(text.rstrip("\n"), share)
                    case Thinking(size=size) if page.fold is not None:
                        page.field("thinking", f"{size:,} bytes")
                    case Thinking():
                        page.text("thinking", part.text)
                    case CallAt(number):
                        self._call((position, number))
                    case Other(name, raw, None):
                        page.json(name, raw.decode("utf-8", "replace"))
                    case Other(name, said=str(said)):
                        page.field(name, said)
                    case ResultAt(number):
                        self._result((position, number), under_call=False)
            page.remarks(map(of_odd, page.some(message.odd, "remarks")))

    def brief(self, position: int) -> None:
        """A message in a line, and a line for each call with its result. Nothing where all that it
        holds are results, which stand under their calls."""
        page, message = self._page, self._messages[position]
        strays = self._strays(position) if message.results else []
        if message.results and not (message.text or strays or message.calls or message.odd):
            return
        words = self._words(message)
        line = f"{position} {one_line(message.role, 20) or '(no role)'}: "
        empty = "  # empty turn" if position in self._marks.empty else ""
        if not (empty or words or message.calls or message.results):
            empty = f"  # {_SILENT}"
        line += one_line(words, page.room - columns(line) - len(empty))
        page.line(line.rstrip() + empty)
        with page.under():
            page.remarks(map(of_odd, page.some(message.odd, "remarks")))
        with page.under():
            for number in page.some(range(len(message.calls)), "calls"):
                self._brief_call((position, number))
            for place in page.some(strays, "results"):
                result = self._at(place)
                start = f"result of {named(result.id)}: {_state(result)}: "
                line = start + one_line(said_in(result.content), page.room - columns(start))
                page.noted(line, self._marks.of_result(place, result.id))

    def _put(self, parts: Iterable[Part], position: int, first: int) -> list[Part]:
        """Those that stand here and not above."""
        return [
            part
            for part in parts
            if not (isinstance(part, ResultAt) and self._is_above(position, part.number, first))
        ]

    def _text(self, text: str, share: int) -> None:
        """A text; folded, what clients put in as reminders takes a line each: what a person has
        typed stands among them."""
        page = self._page
        if page.fold is None or OPEN not in text:
            page.text("text", text, share=share)
            return
        parts = [part for part in with_reminders(text) if part.strip()]
        for part in page.some(parts, "parts"):
            if part.startswith(OPEN):
                self._reminder(part)
            else:
                page.text("text", part.strip("\n"), share=share)

    def _reminder(self, text: str) -> None:
        page, short = self._page, one_line(text, self._page.room - len("text: "))
        if not short.endswith("…"):
            page.field("text", short)
            return
        note = f"{len(text):,} characters: {FULL}"
        page.field("text", one_line(text, page.room - len(f"text:   # {note}")), note)

    def _call(self, place: Place) -> None:
        page = self._page
        call = self._messages[place[0]].calls[place[1]]
        page.field("call", _tool(call.name), *self._marks.of_call(place))
        with page.under():
            page.field("id", named(call.id), *self._marks.of_id(place, call.id))
            if call.arguments.strip():
                page.json("arguments", call.arguments.decode("utf-8", "replace"))
            else:
                page.field("arguments", "(empty)")
            if place in self._marks.answers:
                self._result(self._marks.answers[place])
            for again in page.some(self._doubles.get(place, ()), "results"):
                self._result(again)

    def _result(self, place: Place, *, under_call: bool = True) -> None:
        page, result = self._page, self._at(place)
        state = _state(result)
        if under_call:
            state += f" in message {place[0]}"
        else:
            state += f", of {self._called(place)}"
        said = said_in(result.content, whole=page.fold is None).rstrip("\n")
        size = len(said)
        if page.fold is not None:  # else a long one would take the place of the result's end
            said = _in_short(said, page.room - 2)
        shown, left = folded(said, page.fold)
        notes = self._marks.of_result(place, result.id)
        if left or len(said) < size:
            notes.append(f"{size:,} characters: {FULL}")
        if not said:
            notes.append("empty")
        page.field("result", state, *notes)
        with page.under():
            if said:
                page.lines(shown)

    def _strays(self, position: int) -> list[Place]:
        """The results of a message that are shown under no call."""
        places = [(position, number) for number in range(len(self._messages[position].results))]
        return [place for place in places if self._call_of(place) is None]

    def _brief_call(self, place: Place) -> None:
        page = self._page
        call = self._messages[place[0]].calls[place[1]]
        notes = [*self._marks.of_id(place, call.id), *self._marks.of_call(place)]
        start = f"{_tool(call.name)} {named(call.id)} "
        arguments = call.arguments[:400].decode("utf-8", "replace")
        answer = self._marks.answers.get(place)
        left = page.room - columns(start)
        if answer is None:
            page.noted(start + one_line(arguments, left), notes)
        else:
            result = self._at(answer)
            end = f"→ {_state(result)} in {answer[0]}: "
            said = one_line(said_in(result.content), page.room) or "(empty)"
            left -= len(end) + 1
            if left < min(_LEAST, len(arguments) + columns(said)):  # the id is long
                page.line(start + one_line(arguments, left + len(end)))
                page.noted(f"  {end}{one_line(said, page.room - len(end) - 2)}", notes)
            else:
                most = max(left - columns(said), left // 2)
                line = f"{start}{one_line(arguments, most)} {end}"
                page.noted(line + one_line(said, page.room - columns(line)), notes)
        for again in page.some(self._doubles.get(place, ()), "results"):
            result = self._at(again)
            start = f"  → {_state(result)} in {again[0]}: "
            line = start + one_line(said_in(result.content), page.room - columns(start))
            page.noted(line, self._marks.of_result(again, result.id))

    def _called(self, place: Place) -> str:
        """The call that a result answers, where that is shown elsewhere."""
        of, id_ = self._call_of(place), named(self._at(place).id)
        if of is None:
            return id_
        tool = self._messages[of[0]].calls[of[1]].name
        return f"{_tool(tool)} {id_} in message {of[0]}"

    def _about(self, position: int, above: int) -> str:
        """What is to be said of a message as a whole."""
        if position in self._marks.empty:
            return "empty turn"
        if not above:
            return ""
        return f"{many(above, 'result')}, shown under {'its call' if above == 1 else 'the calls'}"

    def _is_above(self, position: int, number: int, first: int) -> bool:
        call = self._call_of((position, number))
        return call is not None and call[0] >= first

    def _call_of(self, place: Place) -> Place | None:
        """The call under which a result is shown."""
        return self._marks.calls.get(place) or self._marks.again.get(place)

    def _at(self, place: Place) -> Result:
        return self._messages[place[0]].results[place[1]]

    def _words(self, message: Message) -> str:
        """What a message says; the reminders of clients only where there is nothing else. Where it
        is no text, what it is."""
        text = without_reminders(message.text) if message.text else ""
        if text.strip() or message.text.strip():
            return text if text.strip() else message.text
        others = [kind for kind in message.blocks if kind not in _SEEN]
        if message.thinking is not None:
            others.insert(0, f"thinking, {message.thinking:,} bytes")
        if message.legacy and message.role != "function":
            others.append("function_call")
        return f"({', '.join(others)})" if others else ""


_SEEN = ("text", "tool_use", "tool_result", "thinking", "redacted_thinking")


def _in_short(text: str, width: int) -> str:
    """A text with its reminders in a line each."""
    if OPEN not in text:
        return text
    parts = with_reminders(text)
    return "".join(one_line(part, width) if part.startswith(OPEN) else part for part in parts)


_SILENT = "says nothing"  # the API refuses such a message


def _tool(name: str) -> str:
    return one_line(name, _TOOL) or "(no tool name)"


def _state(result: Result) -> str:
    return "error" if result.is_error else "ok"
