"""The messages of a history, for a person: in detail, or in a line or two each; a result stands
under its call.

Messages with their marks in, lines on a page out. Pure.
"""

from collections.abc import Iterable, Sequence

from moontap.findings.naming import counted
from moontap.findings.reminders import without_reminders
from moontap.looking.views.marks import Marks, of_odd
from moontap.looking.views.page import FULL, Page, folded, wrapped
from moontap.looking.views.parts import CallAt, Other, ResultAt, Text, Thinking, parts_of, said_in
from moontap.looking.views.words import columns, named, one_line
from moontap.pairing import Place
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
        page.field(f"message {position}", message.role or "(no role)", self._about(position, above))
        with page.under():
            for part in parts_of(self._protocol, self._raws[position], message):
                match part:
                    case Text(text):
                        page.text("text", text.rstrip("\n"))
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
                    case ResultAt(number) if not self._is_above(position, number, first):
                        self._result((position, number), under_call=False)
            self._remarks(map(of_odd, message.odd))

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
        line += one_line(words, page.room - columns(line) - len(empty))
        page.line(line.rstrip() + empty)
        self._marks_below([of_odd(odd) for odd in message.odd])
        with page.under():
            for number in range(len(message.calls)):
                self._brief_call((position, number))
            for place in strays:
                result = self._at(place)
                start = f"result of {named(result.id)}: {_state(result)}: "
                line = start + one_line(said_in(result.content), page.room - columns(start))
                self._with_marks(line, self._marks.of_result(place, result.id))

    def _call(self, place: Place) -> None:
        page = self._page
        call = self._messages[place[0]].calls[place[1]]
        self._marked("call", _tool(call.name), self._marks.of_call(place))
        with page.under():
            self._marked("id", named(call.id), self._marks.of_id(place, call.id))
            if call.arguments.strip():
                page.json("arguments", call.arguments.decode("utf-8", "replace"))
            else:
                page.field("arguments", "(empty)")
            if place in self._marks.answers:
                self._result(self._marks.answers[place])
            for again in self._doubles.get(place, ()):
                self._result(again)

    def _result(self, place: Place, *, under_call: bool = True) -> None:
        page, result = self._page, self._at(place)
        state = _state(result)
        if under_call:
            state += f" in message {place[0]}"
        else:
            state += f", of {self._called(place)}"
        said = said_in(result.content, whole=page.fold is None).rstrip("\n")
        shown, left = folded(said, page.fold)
        notes = self._marks.of_result(place, result.id)
        if left:
            notes.append(f"{len(said):,} characters: {FULL}")
        if not said:
            notes.append("empty")
        self._marked("result", state, notes)
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
            self._with_marks(start + one_line(arguments, left), notes)
        else:
            result = self._at(answer)
            end = f"→ {_state(result)} in {answer[0]}: "
            said = one_line(said_in(result.content), page.room) or "(empty)"
            left -= len(end) + 1
            if left < min(_LEAST, len(arguments) + columns(said)):  # the id is long
                page.line(start + one_line(arguments, left + len(end)))
                self._with_marks(f"  {end}{one_line(said, page.room - len(end) - 2)}", notes)
            else:
                most = max(left - columns(said), left // 2)
                line = f"{start}{one_line(arguments, most)} {end}"
                self._with_marks(line + one_line(said, page.room - columns(line)), notes)
        for again in self._doubles.get(place, ()):
            result = self._at(again)
            start = f"  → {_state(result)} in {again[0]}: "
            line = start + one_line(said_in(result.content), page.room - columns(start))
            self._with_marks(line, self._marks.of_result(again, result.id))

    def _called(self, place: Place) -> str:
        """The call that a result answers, where that is shown elsewhere."""
        of, id_ = self._call_of(place), named(self._at(place).id)
        if of is None:
            return id_
        tool = self._messages[of[0]].calls[of[1]].name
        return f"{_tool(tool)} {id_} in message {of[0]}"

    def _marked(self, name: str, value: str, notes: Sequence[str]) -> None:
        """A field with its marks, which get a line of their own where there is no place."""
        page, about = self._page, "; ".join(notes)
        if len(name) + columns(value) + len(about) + 4 <= page.room or not about:
            page.field(name, value, about)
            return
        page.field(name, value)
        self._marks_below(notes)

    def _with_marks(self, line: str, notes: Sequence[str]) -> None:
        """A line with its marks, in the line or below."""
        about = f"  # {'; '.join(notes)}" if notes else ""
        fits = columns(line) + len(about) <= self._page.room
        self._page.line(line + about if fits else line)
        self._marks_below(() if fits else notes)

    def _marks_below(self, notes: Sequence[str]) -> None:
        if not notes:
            return
        with self._page.under():
            self._remarks(notes)

    def _remarks(self, notes: Iterable[str]) -> None:
        for note in notes:
            for part in wrapped(note, self._page.room - 2):
                self._page.line(f"# {part}")

    def _about(self, position: int, above: int) -> str:
        """What is to be said of a message as a whole."""
        if position in self._marks.empty:
            return "empty turn"
        if not above:
            return ""
        return (
            f"{counted(above, 'result')}, shown under {'its call' if above == 1 else 'the calls'}"
        )

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


def _tool(name: str) -> str:
    return one_line(name, _TOOL) or "(no tool name)"


def _state(result: Result) -> str:
    return "error" if result.is_error else "ok"
