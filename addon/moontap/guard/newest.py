"""What the newest turn of a request says, for telling whether a request was changed.

A history in, a value to compare out: the calls that it answers, their results, what a person says.
Notes that clients put in by themselves do not count. Pure.
"""

from collections.abc import Sequence

from moontap.findings.steps import says_nothing
from moontap.rules.progress import ProgressRules
from moontap.wire.types import Message

type Newest = tuple[object, ...]

_OPEN, _CLOSE = "<system-reminder>", "</system-reminder>"


def newest(messages: Sequence[Message], rules: ProgressRules) -> Newest:
    """Equal for two requests whose newest turns say the same, as the rules count."""
    said: list[object] = []
    for message in reversed(messages):
        said += [
            (result.id, rules.result("", result.content)) for result in reversed(message.results)
        ]
        if message.role == "user" and (text := _bare(message.text)):
            said.append(text)
        said += [
            (call.id, call.name, rules.arguments(call.name, call.arguments))
            for call in reversed(message.calls)
        ]
        if message.role == "assistant":
            break
    return tuple(said)


def _bare(text: str) -> str:
    """A text without reminders; "" for what clients put in place of nothing."""
    kept, at = [], 0
    while (start := text.find(_OPEN, at)) >= 0:
        kept.append(text[at:start])
        end = text.find(_CLOSE, start)
        at = end + len(_CLOSE) if end >= 0 else len(text)
    kept.append(text[at:])
    bare = "".join(kept).strip()
    return "" if says_nothing(bare) else bare
