"""The steps of a turn, for counting progress: calls whose fate it made certain.

A turn in, steps out. Pure. What of arguments and results counts, the rules say.
"""

from itertools import groupby

from moontap.findings.conversation import Last
from moontap.findings.progress import Step
from moontap.findings.repeats import Repeat, forces_call, repeat_of, same_history
from moontap.findings.turn import Turn
from moontap.lineage import Tracked
from moontap.origin import Origin
from moontap.rules.progress import ProgressRules
from moontap.wire.types import Message, Result

NOTHING_SAID = ("", "(no content)", "[no content]", "(empty)", "no content")
"""What clients put where a message has lost its content, in lower case, blanks left out around."""


def says_nothing(text: str) -> bool:
    """Whether a text is empty, or what clients put in place of nothing."""
    return len(text) < 200 and text.strip().lower() in NOTHING_SAID


def speaks(message: Message) -> bool:
    """Whether a person, or an agent in place of one, says something new in a message."""
    if message.role != "user" or message.results:
        return False
    text = message.text.strip()
    return not (says_nothing(text) or text.startswith("<system-reminder>"))


def steps_of(turn: Turn, last: Last | None) -> list[list[Step]]:
    """Reply by reply, the calls that got their result with this request, or that it went on
    without. Where it is the request before once more although that was answered: the calls of that
    answer. An empty list stands for something new: a person spoke, or the client went back."""
    sent, rules = turn.sent, turn.rules.progress
    if sent is None:
        return []
    end = len(sent.request.messages)
    placed: list[tuple[int, str, Step | None]] = [
        (position, "", None) for position, message in sent.fresh() if speaks(message)
    ]
    if sent.is_repeat and last and not same_history(turn, last):
        placed.append((-1, "", None))
    replies = turn.before.replies
    broken = {said.flow for said in replies.values() if not said.complete}
    stood = {said.flow: at for at, said in replies.items()}
    for outcome in turn.outcomes:
        call = outcome.call
        if call and outcome.dropped and (call.origin.flow in broken or call.origin.choice):
            continue  # no client can use it, or it picked another choice
        if call and not rules.is_exempt(call.name):
            at = stood.get(call.origin.flow, sent.new) if outcome.at is None else outcome.at
            step = _step(rules, call, outcome.result)
            placed.append((at, call.origin.flow or "", step))
    if repeat_of(turn, last) is Repeat.SENT_AGAIN and not forces_call(sent.request):
        for call in sent.again:
            if not rules.is_exempt(call.name):
                placed.append((end, call.origin.flow or "", _step(rules, call, None)))
    placed.sort(key=lambda one: one[0])
    groups = groupby(placed, key=lambda one: (one[0], one[1], one[2] is None))
    return [[step for _, _, step in group if step] for _, group in groups]


def _step(rules: ProgressRules, call: Tracked[Origin], result: Result | None) -> Step:
    return Step(
        call.name,
        rules.arguments(call.name, call.arguments),
        rules.result(call.name, result.content) if result else None,
        call.origin.flow,
        call.id,
    )
