"""How a request differs from the recorded one that is most like it, in a few words.

Two bodies in, one line out, with both texts cut short around the first character that differs.
Pure. It compares normal forms: what does not count is never shown as a difference.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, islice

from moontap import canonical
from moontap.pairing import pair
from moontap.replay import normal
from moontap.replay.keys import Keys, paired, uncounted, without
from moontap.wire import jsontext
from moontap.wire.types import Protocol

_NO_CALL = (-1, 0)
_BEFORE, _BEHIND = 20, 60  # characters shown around the first that differs


@dataclass(frozen=True, slots=True)
class _Read:
    """A request as it counts. messages: with their positions in the request."""

    model: object
    stream: bool
    tools: list[object]
    system: list[normal.Part]
    messages: list[tuple[int, normal.Message]]


def between(keys: Keys, method: str, path: str, recorded: bytes, live: bytes) -> str:
    """The first difference that counts; bodies with their content encoding undone."""
    protocol = paired(method, path)
    try:
        if protocol is not None:
            return _requests(_read(keys, protocol, recorded), _read(keys, protocol, live))
        old, new = (normal.other(without(one, keys.ignore), keys.texts) for one in (recorded, live))
        return _values("the body", old, new)
    except (ValueError, RecursionError):
        old, new = (one.decode("utf-8", "replace") for one in (recorded, live))
        return _texts("the body", old, new)


def _read(keys: Keys, protocol: Protocol, body: bytes) -> _Read:
    value = jsontext.loads(without(body, keys.ignore))
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
        raise ValueError("no JSON object with a list of messages")
    messages, leading = [], True
    for position, one in enumerate(value["messages"]):
        message = normal.message(protocol, canonical.encode(one), keys.texts)
        if uncounted(protocol, message.role in normal.SYSTEM, leading, keys.system):
            continue
        leading = False
        if message.parts:
            messages.append((position, message))
    _order(messages)
    system = canonical.encode(value.get("system"))
    return _Read(
        value.get("model"),
        value.get("stream") is True,
        normal.tools(canonical.encode(value.get("tools")), keys.texts),
        list(normal.system(system, keys.texts)) if keys.system else [],
        messages,
    )


def _order(messages: list[tuple[int, normal.Message]]) -> None:
    """Bring results into the order of their calls, as they count."""
    answers = pair(normal.shape(message) for _, message in messages).answers
    calls = {result: call for call, result in answers.items()}
    numbered = enumerate(messages)
    for _, run in groupby(numbered, lambda one: -1 if one[1][1].role == "tool" else one[0]):
        members = list(run)
        found: list[tuple[tuple[int, int], normal.Part]] = []
        for place, (_, message) in members:
            results = [part for part in message.parts if part.kind == normal.RESULT]
            found += [(calls.get((place, n), _NO_CALL), part) for n, part in enumerate(results)]
        ordered = iter(sorted(found, key=lambda one: one[0]))
        for place, (position, message) in members:
            parts = [part for part in message.parts if part.kind != normal.RESULT]
            count = len(message.parts) - len(parts)
            parts += [part for _, part in islice(ordered, count)]
            messages[place] = (position, normal.Message(message.role, tuple(parts)))


def _requests(old: _Read, new: _Read) -> str:
    if old.model != new.model:
        return _values("`model`", old.model, new.model)
    if old.stream != new.stream:
        return _values("`stream`", old.stream, new.stream)
    if old.tools != new.tools:
        return _tools(old.tools, new.tools)
    if old.system != new.system:
        return _parts("the system prompt", old.system, new.system)
    for (_, was), (position, message) in zip(old.messages, new.messages, strict=False):
        if said := _messages(f"messages[{position}]", was, message):
            return said
    if len(old.messages) > len(new.messages):
        position, message = old.messages[len(new.messages)]
        return f"it ends where the recorded one has messages[{position}], {_shown(message)}"
    if len(old.messages) < len(new.messages):
        position, message = new.messages[len(old.messages)]
        return f"the recorded one ends before messages[{position}], {_shown(message)}"
    return "tool results answer other calls"


def _messages(where: str, old: normal.Message, new: normal.Message) -> str | None:
    if old.role != new.role:
        return f"{where}: recorded {_shown(old)}, now {_shown(new)}"
    if [part[:2] for part in old.parts] == [part[:2] for part in new.parts]:
        return None
    return _parts(f"{where} ({new.role})", old.parts, new.parts)


def _parts(where: str, old: Sequence[normal.Part], new: Sequence[normal.Part]) -> str:
    for was, part in zip(old, new, strict=False):
        if was.kind != part.kind:
            return f"{where}: recorded {_shown_part(was)}, now {_shown_part(part)}"
        if was.value != part.value:
            return _values(f"{where}, {part.kind}", _value(was), _value(part))
    if len(old) > len(new):
        return f"{where}: recorded also {_shown_part(old[len(new)])}"
    return f"{where}: now also {_shown_part(new[len(old)])}"


def _tools(old: list[object], new: list[object]) -> str:
    names, now = ({normal.tool_name(tool) for tool in tools} for tools in (old, new))
    gone, came = sorted(names - now), sorted(now - names)
    said = [f"recorded also {', '.join(gone)}"] if gone else []
    said += [f"now also {', '.join(came)}"] if came else []
    if said:
        return f"`tools`: {'; '.join(said)}"
    for was, tool in zip(old, new, strict=False):
        if was != tool:
            return _values(f"tool {normal.tool_name(tool)}", was, tool)
    return f"`tools`: recorded {len(old)}, now {len(new)}"


def _value(part: normal.Part) -> object:
    """A part's value as it reads best: a result that is one text as this text."""
    value = part.value
    if part.kind == normal.RESULT and isinstance(value, list) and len(value) == 2 and not value[0]:
        return value[1]
    return value


def _values(where: str, old: object, new: object) -> str:
    texts = (one if isinstance(one, str) else _json(one) for one in (old, new))
    return _texts(where, *texts)


def _texts(where: str, old: str, new: str) -> str:
    differing = (at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
    at = next(differing, min(len(old), len(new)))
    return f"{where}: recorded {_cut(old, at)}, now {_cut(new, at)}"


def _shown(message: normal.Message) -> str:
    return f"{message.role} {_shown_part(message.parts[0])}"


def _shown_part(part: normal.Part) -> str:
    value = _value(part)
    return f"{part.kind} {_cut(value if isinstance(value, str) else _json(value), 0)}"


def _cut(text: str, at: int) -> str:
    start, end = max(0, at - _BEFORE), at + _BEHIND
    before, behind = "…" if start else "", "…" if end < len(text) else ""
    return f"'{before}{' '.join(text[start:end].split())}{behind}'"


def _json(value: object) -> str:
    return canonical.encode(value).decode("utf-8", "replace")
