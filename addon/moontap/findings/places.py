"""The message or block that an error means, found in the request that it refused.

A request and what the error's text names in, a place out. Pure. An index in a text is taken where
such a thing stands there, and looked for where it does not: servers count from 0 or from 1.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from moontap.pairing import pair
from moontap.wire.types import Call, Message, Request


@dataclass(frozen=True, slots=True)
class Hint:
    """What an error's text names. ids: of calls; `""` is one, too. path: a message and a block, as
    in `messages.3.content.0`. position, role: of a message."""

    ids: tuple[str, ...] = ()
    path: tuple[int, int | None] | None = None
    position: int | None = None
    role: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """message, block: as in `findings.types.Evidence`. ids: of the calls that stand there."""

    message: int
    block: int | None = None
    ids: tuple[str | None, ...] = ()


type Finder = Callable[[Request, Hint], Place | None]

_PATH = re.compile(r"messages[.\[](\d{1,6})\]?(?:\.content[.\[](\d{1,6}))?")
_POSITION = re.compile(r"(?:position|index|message)\s+#?(\d{1,6})", re.IGNORECASE)
_ROLE = re.compile(r"role\W+(user|assistant|tool|system)\b", re.IGNORECASE)


def hint_of(text: str, ids: tuple[str, ...] = ()) -> Hint:
    """What a text names."""
    path, position, role = _PATH.search(text), _POSITION.search(text), _ROLE.search(text)
    return Hint(
        ids,
        (int(path[1]), int(path[2]) if path[2] else None) if path else None,
        int(position[1]) if position else None,
        role[1].lower() if role else None,
    )


def named(request: Request, hint: Hint) -> Place | None:
    """The place that the text names."""
    if not hint.path or hint.path[0] >= len(request.messages):
        return None
    at, block = hint.path
    message = request.messages[at]
    calls = [call.id for call in message.calls if call.block == block]
    results = [result.id for result in message.results if result.block == block]
    return Place(at, block, tuple(calls or results))


def repeated_call(request: Request, hint: Hint) -> Place | None:
    """The second call with an id."""
    seen = set()
    for at, call in _calls(request):
        if call.id in seen and (not hint.ids or call.id in hint.ids):
            return Place(at, call.block, (call.id,))
        seen.add(call.id)
    return None


def orphan(request: Request, hint: Hint) -> Place | None:
    """The first result without a call."""
    for at, number in pair(request.messages).orphans:
        result = request.messages[at].results[number]
        if not hint.ids or (result.id or "") in hint.ids:
            return Place(at, result.block, (result.id,))
    return None


def empty_id(request: Request, hint: Hint) -> Place | None:
    """The first result that names no call."""
    for at, message in enumerate(request.messages):
        for result in message.results:
            if not result.id:
                return Place(at, result.block, (result.id,))
    return orphan(request, hint)


def unanswered(request: Request, hint: Hint) -> Place | None:
    """The first call without a result."""
    answers = pair(request.messages).answers
    for at, message in enumerate(request.messages):
        for number, call in enumerate(message.calls):
            if (at, number) not in answers and (not hint.ids or call.id in hint.ids):
                return Place(at, call.block, (call.id,))
    return _split(request, hint)


def empty_message(request: Request, hint: Hint) -> Place | None:
    """The message that says nothing."""
    return _first(request, hint, _is_empty)


def blank_text(request: Request, hint: Hint) -> Place | None:
    """The message with a text that is blank."""
    return _first(request, hint, lambda message: "text" in message.blocks and not _says(message))


def without_reasoning(request: Request, hint: Hint) -> Place | None:
    """The message with calls that lacks the thinking which it came with."""
    return _first(request, hint, lambda message: bool(message.calls) and not message.thinking)


def _split(request: Request, hint: Hint) -> Place | None:
    """The first call whose results are not all in what follows at once: it has one, but late."""
    for (at, number), (where, _) in sorted(pair(request.messages).answers.items()):
        call = request.messages[at].calls[number]
        between = request.messages[at + 1 : where]
        if any(not message.results for message in between):
            return Place(at, call.block, (call.id,))
    return None


def _first(request: Request, hint: Hint, wanted: Callable[[Message], bool]) -> Place | None:
    """The message at the position named, or the one before it, else the first that is so."""
    messages = request.messages
    at = hint.path[0] if hint.path else hint.position
    order = [] if at is None else [at, at - 1]
    for number in [*order, *range(len(messages))]:
        if 0 <= number < len(messages) and wanted(messages[number]):
            if hint.role and messages[number].role != hint.role:
                continue
            return Place(number, None, tuple(call.id for call in messages[number].calls))
    return None


def _is_empty(message: Message) -> bool:
    others = [kind for kind in message.blocks if kind not in ("text", "thinking")]
    return not (_says(message) or message.calls or message.results or others)


def _says(message: Message) -> bool:
    return bool(message.text.strip())


def _calls(request: Request) -> Iterator[tuple[int, Call]]:
    for at, message in enumerate(request.messages):
        for call in message.calls:
            yield at, call
