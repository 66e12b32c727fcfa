"""The form of a history's messages: what is there that the protocol does not have, and what lacks.

A message as decoded JSON in, `Odd`s out. Pure. Far from a validation: what newer versions of a
protocol may have passes; a word is odd where it is a slip away from a known one, a value where it
is of a kind that no version takes.

Words: the public API references, and the types of the SDKs anthropic 2.14 and openai 3.57, read in
November 2026; `cache`, `video_url` and `reasoning_content` are Moonshot's, `think` is Kimi CLI's.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any

from moontap.wire import jsontext
from moontap.wire.near import near
from moontap.wire.types import Fault, Odd

STAND_IN = "known"
"""A role that no client gives: it stands for messages that were read before."""

MESSAGES_ROLES = frozenset(("user", "assistant", "system", STAND_IN))
CHAT_ROLES = frozenset(
    ("system", "developer", "user", "assistant", "tool", "function", "cache", STAND_IN)
)
_MEANT = {
    "human": "user",
    "ai": "assistant",
    "bot": "assistant",
    "model": "assistant",
    "tool_result": "tool",
}
_BLOCKS = frozenset(
    (
        "text",
        "image",
        "document",
        "search_result",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "tool_result",
        "tool_reference",
        "server_tool_use",
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
        "advisor_tool_result",
        "mcp_tool_use",
        "mcp_tool_result",
        "container_upload",
        "compaction",
        "video",
    )
)
_PARTS = frozenset(
    (
        "text",
        "image_url",
        "video_url",
        "audio_url",
        "input_text",
        "output_text",
        "input_audio",
        "input_image",
        "input_file",
        "file",
        "refusal",
        "think",
        "thinking",
        "image",
    )
)
_OF_MESSAGES = frozenset(("tool_use", "tool_result"))
# What stands in place of an id's member, as the other protocol or another API has it.
_IDS = ("tool_use_id", "tool_call_id", "call_id", "tool_id", "id")
_ARGUMENTS = ("input", "arguments", "args", "parameters")
_ABSENT = object()
# What an assistant's message may have without a content.
_ENOUGH = ("tool_calls", "function_call", "refusal", "audio", "reasoning_content", "reasoning")


@lru_cache(maxsize=256)
def is_block(kind: str) -> bool:
    """Whether a type may be one of a block of Messages: it is known, or like no known one."""
    return bool(kind) and (kind in _BLOCKS or near(kind, _BLOCKS) is None)


@lru_cache(maxsize=256)
def is_part(kind: str) -> bool:
    """The same for a part of Chat Completions."""
    known = kind in _PARTS or near(kind, _PARTS | _OF_MESSAGES) is None
    return bool(kind) and kind not in _OF_MESSAGES and known


def looked_at(raw: bytes, judge: Callable[[Any], tuple[Odd, ...]]) -> tuple[Odd, ...]:
    """What is odd in a message as JSON text. Never raises: one that is nested too deeply to be read
    as a whole is taken as it is."""
    try:
        return judge(jsontext.loads(raw))
    except (ValueError, RecursionError):
        return ()


def of_messages(message: Any) -> tuple[Odd, ...]:
    """What is odd in a message of Messages."""
    if not isinstance(message, dict):
        return (Odd("", Fault.KIND, _kind(message), "an object"),)
    return (*_role(message, MESSAGES_ROLES), *_messages_content(message))


def of_chat(message: Any) -> tuple[Odd, ...]:
    """What is odd in a message of Chat Completions."""
    if not isinstance(message, dict):
        return (Odd("", Fault.KIND, _kind(message), "an object"),)
    found = [*_role(message, CHAT_ROLES), *_chat_content(message)]
    if message.get("role") == "tool":
        found += _misnamed(message, "", "tool_call_id", _IDS)
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        for block, call in enumerate(calls):
            found += _chat_call(call, block)
    elif calls is not None:
        found.append(Odd("tool_calls", Fault.KIND, _kind(calls), "a list"))
    return tuple(found)


def _role(message: Mapping[str, Any], known: Collection[str]) -> Iterator[Odd]:
    role = message.get("role", _ABSENT)
    if role is _ABSENT:
        yield Odd("role", Fault.MISSING, *_instead(message, "role"))
    elif not isinstance(role, str):
        yield Odd("role", Fault.KIND, _kind(role), "a string")
    elif role not in known:
        words = sorted(set(known) - {STAND_IN})
        meant = _MEANT.get(role.lower(), "")
        yield Odd("role", Fault.WORD, role, near(role, words) or (meant if meant in known else ""))


def _messages_content(message: Mapping[str, Any]) -> Iterator[Odd]:
    content = message.get("content", _ABSENT)
    if content is _ABSENT:
        yield Odd("content", Fault.MISSING, *_instead(message, "content"))
    elif not isinstance(content, str | list):
        yield Odd("content", Fault.KIND, _kind(content), "a string or a list of blocks")
    for block, one in enumerate(content if isinstance(content, list) else ()):
        path = f"content[{block}]"
        if not isinstance(one, dict):
            yield Odd(path, Fault.KIND, _kind(one), "a block, such as a text block", block)
            continue
        kind = one.get("type")
        if not isinstance(kind, str) or not kind:
            yield Odd(f"{path}.type", Fault.MISSING, *_instead(one, "type"), block)
        elif not is_block(kind):
            yield Odd(f"{path}.type", Fault.WORD, kind, near(kind, _BLOCKS) or "", block)
        elif kind == "tool_use":
            yield from _use(one, path, block)
        elif kind == "tool_result":
            yield from _misnamed(one, f"{path}.", "tool_use_id", _IDS, block)
            yield from _misnamed(one, f"{path}.", "content", (), block)
        elif kind == "text" and not isinstance(one.get("text"), str):
            yield Odd(f"{path}.text", Fault.MISSING, *_instead(one, "text", ("content",)), block)


def _use(block: Mapping[str, Any], path: str, at: int) -> Iterator[Odd]:
    """An `input` that is no object is left to the checks of arguments: models slip there."""
    yield from _name(block, path, at)
    yield from _misnamed(block, f"{path}.", "id", _IDS, at)
    yield from _misnamed(block, f"{path}.", "input", _ARGUMENTS, at)


def _chat_content(message: Mapping[str, Any]) -> Iterator[Odd]:
    content = message.get("content", _ABSENT)
    said, meant = _instead(message, "content")
    enough = message.get("role") == "tool" or any(message.get(name) for name in _ENOUGH)
    if content is _ABSENT and (said or not enough):
        yield Odd("content", Fault.MISSING, said, meant)
    if not content and not message.get("tool_calls"):
        yield from _misnamed(message, "", "tool_calls", ("tool_call", "tools"))
    if content is _ABSENT or content is None:
        return
    if not isinstance(content, str | list):
        yield Odd("content", Fault.KIND, _kind(content), "a string or a list of parts")
    for number, part in enumerate(content if isinstance(content, list) else ()):
        path = f"content[{number}]"
        if not isinstance(part, dict):
            yield Odd(path, Fault.KIND, _kind(part), "a part, such as a text part")
            continue
        kind = part.get("type")
        if not isinstance(kind, str) or not kind:
            yield Odd(f"{path}.type", Fault.MISSING, *_instead(part, "type"))
        elif kind in _OF_MESSAGES:
            yield Odd(f"{path}.type", Fault.FOREIGN, kind, "")
        elif not is_part(kind):
            yield Odd(f"{path}.type", Fault.WORD, kind, near(kind, _PARTS) or "")


def _chat_call(call: Any, block: int) -> Iterator[Odd]:
    path = f"tool_calls[{block}]"
    if not isinstance(call, dict):
        yield Odd(path, Fault.KIND, _kind(call), "an object", block)
        return
    if call.get("type") == "custom" or "custom" in call:
        return
    yield from _misnamed(call, f"{path}.", "id", _IDS, block)
    function = call.get("function", _ABSENT)
    if not isinstance(function, dict):
        if function is _ABSENT:
            yield Odd(f"{path}.function", Fault.MISSING, *_instead(call, "function"), block)
        else:
            yield Odd(f"{path}.function", Fault.KIND, _kind(function), "an object", block)
        return
    path += ".function"
    yield from _name(function, path, block)
    yield from _misnamed(function, f"{path}.", "arguments", _ARGUMENTS, block)
    given = function.get("arguments")
    if given is not None and not isinstance(given, str):
        yield Odd(f"{path}.arguments", Fault.KIND, _kind(given), "a string of JSON", block)


def _name(holder: Mapping[str, Any], path: str, block: int) -> Iterator[Odd]:
    name = holder.get("name")
    if name is None or name == "":
        yield Odd(f"{path}.name", Fault.MISSING, *_instead(holder, "name", ("tool",)), block)
    elif not isinstance(name, str):
        yield Odd(f"{path}.name", Fault.KIND, _kind(name), "a string", block)


def _misnamed(
    holder: Mapping[str, Any],
    path: str,
    member: str,
    others: Collection[str],
    block: int | None = None,
) -> Iterator[Odd]:
    """A member that is not there while one stands there that is meant for it. That it lacks is
    otherwise for the checks which look at what it says."""
    if member not in holder:
        said, meant = _instead(holder, member, others)
        if said:
            yield Odd(path + member, Fault.MISSING, said, meant, block)


def _instead(
    holder: Mapping[str, Any], member: str, others: Collection[str] = ()
) -> tuple[str, str]:
    """The member that stands in place of one that lacks, and that one's name; else two `""`."""
    for name in others:
        if name in holder and name != member:
            return name, member
    found = (name for name in holder if name != member and near(name, (member,)))
    name = next(found, "")
    return name, member if name else ""


def _kind(value: Any) -> str:
    """What a person calls a JSON value."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return "a string"
        case int() | float():
            return "a number"
        case list():
            return "a list"
    return "an object"
