"""What the newest turn of a request says, for telling whether a request was changed.

A history in, a value to compare out: the calls that it answers, their results, what a person says.
Notes that clients put in by themselves do not count. Pure.
"""

from collections.abc import Sequence

from moontap.findings.steps import bare
from moontap.rules.progress import ProgressRules
from moontap.wire.types import Message

type Newest = tuple[object, ...]


def newest(messages: Sequence[Message], rules: ProgressRules) -> Newest:
    """Equal for two requests whose newest turns say the same, as the rules count."""
    said: list[object] = []
    for message in reversed(messages):
        said += [
            (result.id, rules.result("", result.content)) for result in reversed(message.results)
        ]
        if message.role == "user" and (text := bare(message.text)):
            said.append(text)
        said += [
            (call.id, call.name, rules.arguments(call.name, call.arguments))
            for call in reversed(message.calls)
        ]
        if message.role == "assistant":
            break
    return tuple(said)
