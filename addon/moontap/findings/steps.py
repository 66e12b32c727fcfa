"""The steps of a turn, for counting progress: calls whose fate it made certain.

A turn in, steps out. Pure. What of arguments and results counts, the rules say.
"""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from moontap.findings.conversation import Last
from moontap.findings.progress import Step
from moontap.findings.reminders import without_reminders
from moontap.findings.repeats import Repeat, continues, forces_call, repeat_of, same_history
from moontap.findings.turn import Sent, Turn
from moontap.lineage import Tracked
from moontap.origin import Origin
from moontap.rules.progress import ProgressRules
from moontap.wire.types import Message, Result

NOTHING_SAID = ("", "(no content)", "[no content]", "(empty)", "no content")
"""What clients put where a message has lost its content, in lower case, blanks left out around."""

# What the redaction leaves of a secret: a text of nothing else, or a key's length within one.
_MASKED = re.compile(rb'"\*{3,}\\?"|\*{16}')


def says_nothing(text: str) -> bool:
    """Whether a text is empty, or what clients put in place of nothing."""
    return len(text) < 200 and text.strip().lower() in NOTHING_SAID


def bare(text: str) -> str:
    """A text without reminders; "" for what clients put in place of nothing."""
    said = without_reminders(text).strip()
    return "" if says_nothing(said) else said


def speaks(message: Message) -> bool:
    """Whether a person, or an agent in place of one, says something new in a message. It may stand
    beside results: what is typed while tools run, Claude Code sends there."""
    return message.role == "user" and bool(bare(message.text))


def is_empty_turn(message: Message) -> bool:
    """Whether a user's message is empty, or holds but what clients put in place of nothing. What a
    client adds to every turn does not count; alone it is no empty turn either. Not where its
    content stands there under another name: then it is malformed."""
    if message.role != "user" or message.results or message.calls:
        return False
    if set(message.blocks) - {"text"}:
        return False
    text = without_reminders(message.text)
    if len(text) > 400 or not all(says_nothing(line) for line in text.split("\n")):
        return False
    if message.text.strip() and not text.strip():
        return False
    return not any(odd.path == "content" and odd.meant == "content" for odd in message.odd)


class _Placed(NamedTuple):
    """A step where it stands: the position of its message, or of the one after it, and the flow of
    its reply. step: None for something new."""

    at: int
    flow: str | None = None
    step: Step | None = None


def steps_of(turn: Turn, last: Last | None) -> list[list[Step]]:
    """Reply by reply, the calls that got their result with this request, or that it went on
    without. Where it is the request before once more although that was answered: the calls of that
    answer. An empty list stands for something new: a person spoke, or the client went back."""
    sent = turn.sent
    if sent is None:
        return []
    placed = [*_said_before(turn, sent, last), *_new(turn, sent), *_sent_again(turn, sent, last)]
    exempt = turn.rules.progress.is_exempt
    placed = sorted((p for p in placed if not p.step or not exempt(p.step.tool)), key=_at)
    groups = groupby(placed, key=lambda one: (one.flow or one.at, one.step is None))
    return [[one.step for one in group if one.step] for _, group in groups]


def _at(placed: _Placed) -> int:
    return placed.at


def _new(turn: Turn, sent: Sent) -> Iterator[_Placed]:
    """What this request made certain."""
    for position, message in sent.fresh:
        if speaks(message):
            yield _Placed(position)
    replies = turn.before.replies
    stood = {said.flow: at for at, said in replies.items()}
    # A reply that broke off no client can use; one that had to be a call is often wanted for the
    # data in it, and nothing comes back.
    left = {said.flow for said in replies.values() if said.forced or not said.complete}
    for outcome in turn.outcomes:
        call = outcome.call
        if call is None or (outcome.dropped and (call.origin.flow in left or call.origin.choice)):
            continue
        at = stood.get(call.origin.flow, sent.new) if outcome.at is None else outcome.at
        step = _step(turn.rules.progress, call, outcome.result)
        yield _Placed(at, call.origin.flow, step)


def _said_before(turn: Turn, sent: Sent, last: Last | None) -> Iterator[_Placed]:
    """What is new in a history that the conversation had before: a person's words, where another
    run of the same words has come this far; else that the client went back."""
    if last is None or not sent.is_repeat or same_history(turn, last):
        return
    if not continues(turn, last):
        yield _Placed(-1)
        return
    for position, message in enumerate(sent.request.messages[last.messages :], last.messages):
        if speaks(message):
            yield _Placed(position)


def _sent_again(turn: Turn, sent: Sent, last: Last | None) -> Iterator[_Placed]:
    """The calls of the answer that the request before had, where this is the same once more."""
    if repeat_of(turn, last) is Repeat.SENT_AGAIN and not forces_call(sent.request):
        for call in sent.again:
            step = _step(turn.rules.progress, call, None)
            yield _Placed(len(sent.request.messages), call.origin.flow, step)


def _step(rules: ProgressRules, call: Tracked[Origin], result: Result | None) -> Step:
    contents = (call.arguments, result.content if result else b"")
    return Step(
        call.name,
        rules.arguments(call.name, call.arguments),
        rules.result(call.name, result.content) if result else None,
        call.origin.flow,
        call.id,
        call.arguments,
        any(b"***" in content and _MASKED.search(content) for content in contents),
    )
