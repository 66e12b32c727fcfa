"""Which of the two protocols a history, a request or a stream speaks.

Decoded JSON in, a protocol out, or None where nothing tells. Pure.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from moontap.wire.protocol import ANTHROPIC, OPENAI, Wire

_BLOCKS = frozenset(
    (
        "tool_use",
        "tool_result",
        "thinking",
        "redacted_thinking",
        "document",
        "image",
        "server_tool_use",
    )
)
_PARTS = frozenset(("image_url", "input_audio", "video_url", "refusal", "think", "file"))
_OF_MESSAGES = (
    "system",
    "stop_sequences",
    "top_k",
    "context_management",
    "anthropic_version",
    "anthropic_beta",
    "output_config",
)
_OF_CHAT = (
    "stream_options",
    "n",
    "max_completion_tokens",
    "response_format",
    "functions",
    "function_call",
    "frequency_penalty",
    "presence_penalty",
    "logprobs",
    "seed",
    "stop",
    "prompt_cache_key",
    "parallel_tool_calls",
    "reasoning_effort",
    "store",
    "user",
    "logit_bias",
    "top_logprobs",
    "modalities",
    "prediction",
    "verbosity",
    "web_search_options",
)
# As text, where a cut has taken the structure. Both have `max_tokens`, `stream`, `temperature`.
_MARKS_OF_MESSAGES = (b'"tool_use"', b'"tool_result"', b'"input_schema"', b'"stop_reason"')
_MARKS_OF_CHAT = (b'"tool_calls"', b'"tool_call_id"', b'"function"', b'"finish_reason"')


def of_history(messages: Sequence[Any], text: bytes = b"") -> Wire | None:
    """The protocol of a history. text: it, with what a cut has left of its end."""
    return _heavier(sum(_of_message(message) for message in messages)) or _by_marks(text)


def of_request(body: Mapping[str, Any], text: bytes = b"") -> Wire | None:
    """The protocol of a request. text: it, with what a cut has left of its end."""
    weight = sum(name in body for name in _OF_MESSAGES) - sum(name in body for name in _OF_CHAT)
    messages = body.get("messages")
    if isinstance(messages, list):
        weight += sum(_of_message(message) for message in messages)
    tools = body.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict):
            weight += ("input_schema" in tool) - ("function" in tool)
    choice = body.get("tool_choice")
    if isinstance(choice, dict):
        weight += 1 if choice.get("type") in ("auto", "any", "tool", "none") else -1
    elif isinstance(choice, str):
        weight -= 1
    metadata = body.get("metadata")
    if isinstance(metadata, dict) and metadata:
        weight += 1 if set(metadata) == {"user_id"} else -1
    return _heavier(weight) or _by_marks(text)


def of_stream(text: bytes) -> Wire:
    """The protocol of an event stream."""
    chat = text.count(b'"choices"') + text.count(b"[DONE]") + text.count(b"chat.completion.chunk")
    marks = (b"message_start", b"content_block_", b"message_delta", b"message_stop", b"ping")
    return ANTHROPIC if sum(map(text.count, marks)) > chat else OPENAI


def _of_message(message: Any) -> int:
    """Above 0: as Messages has it; below: as Chat Completions."""
    if not isinstance(message, dict):
        return 0
    weight = 0
    if (
        str(message.get("role")) in ("system", "tool", "developer", "function")
        or "tool_call_id" in message
    ):
        weight -= 1
    weight -= sum(name in message for name in ("tool_calls", "reasoning_content", "function_call"))
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict):
            kind = str(block.get("type"))
            weight += (kind in _BLOCKS) + ("cache_control" in block) - (kind in _PARTS)
    return weight


def _by_marks(text: bytes) -> Wire | None:
    if not text:
        return None
    messages, chat = (sum(map(text.count, of)) for of in (_MARKS_OF_MESSAGES, _MARKS_OF_CHAT))
    return _heavier(messages - chat)


def _heavier(weight: int) -> Wire | None:
    return (ANTHROPIC if weight > 0 else OPENAI) if weight else None
