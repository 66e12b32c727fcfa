"""One exchange in short: what its request brought, and what its reply did.

A turn in, a few words and counts out; the turn itself, which may hold megabytes, is not kept.
"""

import hashlib
from dataclasses import dataclass

from moontap.findings.steps import bare, is_empty_turn, speaks
from moontap.findings.turn import Turn
from moontap.lineage import Outcome, Status, Tracked, digest_of
from moontap.origin import Origin
from moontap.report.text import short
from moontap.rules.progress import ProgressRules
from moontap.wire.types import Message

LONGEST = 60
"""Characters of arguments and texts that are kept."""


@dataclass(frozen=True, slots=True)
class Made:
    """A call of a reply. same: tells its tool and arguments, as far as the rules let them count,
    from others. id: as the client saw it, upstream: as the server sent it. reused: the server had
    used that before."""

    tool: str
    arguments: str
    same: bytes
    id: str | None
    upstream: str | None
    reused: bool


@dataclass(frozen=True, slots=True)
class Told:
    """One exchange.

    Of the request: answered, failed: calls whose result came (failed: it says that it is an
    error); lost: calls that the history holds without a result; dropped: calls delivered and gone
    from the history; orphans: results without a call; empty: user turns that say nothing; spoken:
    what a person said; results: digests of what the rules let count of the results; known: pairs
    and messages of a history that was seen for the first time.

    Of the reply: calls; answer: its text where it makes no call; status: of a refusal, else 0;
    none: there is no reply; cut: it broke off.

    Of moontap: healed: it made ids of the history unique; reminded: it told the model that it
    repeats itself; stopped: it answered instead of the server, why; repeats: how many times in a
    row the same had been done when it did either.
    """

    number: int
    flow: str | None
    answered: int = 0
    failed: int = 0
    lost: int = 0
    dropped: int = 0
    orphans: int = 0
    empty: int = 0
    spoken: str = ""
    results: tuple[bytes, ...] = ()
    known: int = 0
    repeat: bool = False
    calls: tuple[Made, ...] = ()
    answer: str = ""
    status: int = 0
    none: bool = False
    cut: bool = False
    healed: bool = False
    reminded: bool = False
    stopped: str = ""
    repeats: int = 0

    @property
    def asks(self) -> tuple[bytes, ...]:
        """What tells its calls from those of another reply; ids do not count."""
        return tuple(call.same for call in self.calls)

    @property
    def alike(self) -> tuple[object, ...]:
        """What makes two exchanges the same for a reader, whatever the results said."""
        return (
            self.asks,
            *(self.answered, self.failed, self.lost, self.dropped, self.orphans, self.empty),
            *(bool(self.spoken), self.known, self.repeat, bool(self.answer)),
            *(self.status, self.none, self.cut, self.healed, self.reminded, self.stopped),
        )


def told(turn: Turn, *, reminded: bool = False, stopped: str = "", repeats: int = 0) -> Told:
    """A turn in short. reminded, stopped, repeats: see `Told`."""
    sent, got, rules = turn.sent, turn.got, turn.rules.progress
    live = [one for one in turn.outcomes if one.call is None or one.call.origin.flow]
    fresh = [message for _, message in sent.fresh] if sent else []
    spoken = next((bare(message.text) for message in reversed(fresh) if speaks(message)), "")
    refused = bool(got and got.is_refusal)
    return Told(
        number=turn.number,
        flow=turn.flow,
        answered=sum(one.result is not None for one in live if one.call),
        failed=sum(one.status is Status.ERROR for one in live),
        lost=sum(_is_lost(one) for one in live),
        dropped=sum(one.dropped for one in live),
        orphans=sum(one.status is Status.ORPHAN for one in live),
        empty=sum(map(is_empty_turn, fresh)),
        spoken=short(spoken.strip(), LONGEST),
        results=tuple(_heard(rules, one) for one in live if one.result),
        known=_known(turn, fresh),
        repeat=bool(sent and sent.is_repeat),
        calls=tuple(_made(rules, call) for call in turn.delivered),
        answer=_answer(turn),
        status=got.status if got and refused else 0,
        none=got is None,
        cut=bool(got and got.cut),
        healed=bool(sent and sent.healed),
        reminded=reminded,
        stopped=stopped,
        repeats=repeats,
    )


def _heard(rules: ProgressRules, outcome: Outcome[Origin]) -> bytes:
    """What counts of a result: a time in it that the rules ignore makes no difference."""
    if outcome.call and outcome.result:
        return rules.result(outcome.call.name, outcome.result.content)
    return digest_of(outcome.result) if outcome.result else b""


def _is_lost(outcome: Outcome[Origin]) -> bool:
    return outcome.status is Status.UNANSWERED and not outcome.dropped


def _known(turn: Turn, fresh: list[Message]) -> int:
    """How many messages were said before the tap saw any of the conversation."""
    joined = turn.before.exchanges == 1 and any(one.role == "assistant" for one in fresh)
    return len(fresh) if joined else 0


def _made(rules: ProgressRules, call: Tracked[Origin]) -> Made:
    text = call.arguments.decode("utf-8", "replace")
    same = hashlib.blake2b(digest_size=12)
    same.update(call.name.encode("utf-8", "surrogatepass") + b"\0")
    same.update(rules.arguments(call.name, call.arguments))
    return Made(
        short(call.name, LONGEST) or "a tool without a name",
        short(text, LONGEST),
        same.digest(),
        call.id,
        call.origin.upstream_id,
        call.duplicate,
    )


def _answer(turn: Turn) -> str:
    """The text of a reply that makes no call."""
    got = turn.got
    if got is None or got.is_refusal or turn.delivered:
        return ""
    text = next((text for text in got.text.values() if text.strip()), "")
    return short(" ".join(text[: 4 * LONGEST].split()), LONGEST)
