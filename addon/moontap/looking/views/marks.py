"""What of a history's calls and results does not fit: ids that came again, calls without a result,
results without a call.

A history's messages in, places out, told by where things stand and never by id alone. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moontap.findings.naming import is_empty
from moontap.findings.steps import is_empty_turn
from moontap.looking.views.words import one_line
from moontap.pairing import Pairing, Place
from moontap.report.text import many
from moontap.wire.types import Fault, Message, Odd


@dataclass(frozen=True, slots=True)
class Marks:
    """Places are `(message, number of the call or result in it)`, from 0 on.

    answers: call -> its result. calls: result -> its call. reused: call -> the call before it that
    had the same id. again: result -> the call that had one already. strays: results that no call
    before them can take -> the message of a later call with that id, or None. unanswered: calls
    that the history has no result of. unnamed: calls whose id is none, or empty. empty: messages
    that are empty turns. malformed: messages whose form is wrong. reused_ids: how many different
    ids `reused` is about.
    """

    answers: Mapping[Place, Place]
    calls: Mapping[Place, Place]
    reused: Mapping[Place, Place]
    again: Mapping[Place, Place]
    strays: Mapping[Place, int | None]
    unanswered: frozenset[Place]
    unnamed: frozenset[Place]
    empty: frozenset[int]
    malformed: frozenset[int]
    reused_ids: int = 0

    def __str__(self) -> str:
        """How many there are of each; `fits together` for none."""
        said = (many(n, what) + more for n, what, more in self._counts() if n)
        return ", ".join(said) or "fits together"

    def __bool__(self) -> bool:
        """Whether there are any."""
        return any(n for n, _, _ in self._counts())

    def _counts(self) -> tuple[tuple[int, str, str], ...]:
        return (
            (self.reused_ids, "id", " reused"),
            (len(self.unanswered), "call", " without result"),
            (len(self.strays), "result", " without call"),
            (len(self.again), "doubled result", ""),
            (len(self.unnamed), "call", " without id"),
            (len(self.empty), "empty turn", ""),
            (len(self.malformed), "malformed message", ""),
        )

    def of_call(self, place: Place) -> list[str]:
        """What is to be said of a call."""
        return ["no result"] if place in self.unanswered else []

    def of_id(self, place: Place, id_: str | None) -> list[str]:
        """What is to be said of a call's id."""
        if place in self.unnamed:
            return ["that is no id"] if id_ else []
        if place not in self.reused:
            return []
        at = self.reused[place][0]
        also = "another call of this message" if at == place[0] else f"the call of message {at}"
        return [f"id reused: also {also}"]

    def of_result(self, place: Place, id_: str | None) -> list[str]:
        """What is to be said of a result, which names the call of that id."""
        if place in self.again:
            return ["second result for this call"]
        if place not in self.strays:
            return []
        later = self.strays[place]
        if later is not None:
            return [f"its call comes later, in message {later}"]
        return ["no call has this id" if id_ else "names no call"]


_ODD = {
    Fault.WORD: '{path} is "{said}"',
    Fault.MISSING: "no {path}",
    Fault.KIND: "{path} is {said}, not {meant}",
    Fault.FOREIGN: '{path} is "{said}", which is of the other protocol',
}


def of_odd(odd: Odd) -> str:
    """What is wrong with the form of something."""
    path = one_line(odd.path, 60) or "the message"
    said = _ODD[odd.fault].format(path=path, said=one_line(odd.said, 40), meant=odd.meant)
    if odd.fault is Fault.MISSING and odd.said:
        said += f", but {one_line(odd.said, 40)}"
    return f"malformed: {said}"


def marks_of(messages: Sequence[Message]) -> Marks:
    """The marks of a whole history; linear in its calls and results."""
    pairing = Pairing(messages)
    calls = {result: call for call, result in pairing.answers.items()}
    latest: dict[str, Place] = {}
    answered: dict[str | None, Place] = {}  # by id: the call whose result came last
    reused: dict[Place, Place] = {}
    again: dict[Place, Place] = {}
    unanswered: list[Place] = []
    unnamed: list[Place] = []
    for position, message in enumerate(messages):
        for number, result in enumerate(message.results):
            place = position, number
            if place in calls:
                answered[result.id] = calls[place]
            elif result.id in answered:
                again[place] = answered[result.id]
        for number, call in enumerate(message.calls):
            place = position, number
            if place not in pairing.answers:
                unanswered.append(place)
            if call.id is None or is_empty(call.id):
                unnamed.append(place)
                continue
            if call.id in latest:
                reused[place] = latest[call.id]
            latest[call.id] = place
    return Marks(
        answers=pairing.answers,
        calls=calls,
        reused=reused,
        again=again,
        strays=_strays(messages, [place for place in pairing.orphans if place not in again]),
        unanswered=frozenset(unanswered),
        unnamed=frozenset(unnamed),
        malformed=frozenset(at for at, message in enumerate(messages) if message.odd),
        empty=frozenset(at for at, message in enumerate(messages) if is_empty_turn(message)),
        reused_ids=len({messages[at].calls[number].id for at, number in reused}),
    )


def _strays(messages: Sequence[Message], places: Sequence[Place]) -> dict[Place, int | None]:
    """Each with the message of the last call that has its id, where one comes later."""
    if not places:
        return {}
    last = {call.id: at for at, message in enumerate(messages) for call in message.calls if call.id}
    strays: dict[Place, int | None] = {}
    for at, number in places:
        later = last.get(messages[at].results[number].id or "", -1)
        strays[at, number] = later if later >= at else None
    return strays
