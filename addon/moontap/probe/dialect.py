"""The probe's requests in each protocol, and its replies read.

A model's name and earlier replies in, request bodies out; a reply's bytes in, a `Said` out. Pure.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from moontap.tapping.upstream import Upstream
from moontap.wire.protocol import ANTHROPIC, OPENAI, Wire, event_texts, read_stream
from moontap.wire.sse import Framer
from moontap.wire.types import Reply

TOOL, RESULT = "pwd", "/work/project"
MOST_TOKENS = 2048  # a model that thinks first needs some

_ABOUT = "Print the working directory."
_PARAMETERS = {"type": "object", "properties": {}}

type Body = dict[str, Any]
type Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Said:
    """A reply of the model, and as the message that the next request repeats."""

    reply: Reply
    message: Message

    @property
    def ids(self) -> list[str | None]:
        return [call.id for call in self.reply.calls]


@dataclass(frozen=True, slots=True)
class Dialect:
    """A protocol. name: for a person. path: of its requests at an upstream."""

    name: str
    wire: Wire
    path: Callable[[Upstream], str]
    headers: Mapping[str, str]
    tool: Mapping[str, Any]
    message: Callable[[Reply, bytes], Message]
    results: Callable[[Reply, str], list[Message]]

    def first(self, model: str, streamed: bool) -> Body:
        """Round 1: a conversation begins."""
        return self._body(model, streamed, [_opening(streamed)])

    def second(self, model: str, streamed: bool, said: Said) -> Body:
        """Round 2: the same conversation, with the call of round 1 answered."""
        again = f"Now call the {TOOL} tool once more, please."
        history = [_opening(streamed), said.message, *self.results(said.reply, again)]
        return self._body(model, streamed, history)

    def compacted(self, model: str, streamed: bool) -> Body:
        """Round 3: the same conversation after a compaction. No call is left to be counted.

        Its text is not that of round 1: a cached reply would pass for an id that came back.
        """
        text = (
            f"Summary of our conversation so far: you called the {TOOL} tool and it returned "
            f"{RESULT}. Please call the {TOOL} tool again now.{_mark(streamed)}"
        )
        return self._body(model, streamed, [_user(text)])

    def read(self, body: bytes) -> Said:
        """A reply, streamed or whole, by its look."""
        whole = body.lstrip().startswith(b"{")
        reply = self.wire.reader().whole(body) if whole else read_stream(self.wire, body)
        return Said(reply, self.message(reply, body))

    def _body(self, model: str, streamed: bool, messages: list[Message]) -> Body:
        return {
            "model": model,
            "max_tokens": MOST_TOKENS,
            "stream": streamed,
            "messages": messages,
            "tools": [self.tool],
        }


def _opening(streamed: bool) -> Message:
    return _user(f"Please call the {TOOL} tool now.{_mark(streamed)}")


def _mark(streamed: bool) -> str:
    """Parts the conversations: with one opening they would be one to who reads the capture."""
    return f" (moontap probe, {'streamed' if streamed else 'whole'})"


def _user(text: str) -> Message:
    return {"role": "user", "content": text}


def _messages_message(reply: Reply, body: bytes) -> Message:
    said = reply.choices[0]
    content: list[Message] = []
    if said.thinking:
        content.append(
            {"type": "thinking", "thinking": said.thinking, "signature": _signature(body)}
        )
    if said.text:
        content.append({"type": "text", "text": said.text})
    for call in reply.calls:
        arguments = _parsed(call.arguments)
        content.append(
            {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments or {}}
        )
    return {"role": "assistant", "content": content}


def _messages_results(reply: Reply, then: str) -> list[Message]:
    results: list[Message] = [
        {"type": "tool_result", "tool_use_id": call.id, "content": RESULT} for call in reply.calls
    ]
    return [{"role": "user", "content": [*results, {"type": "text", "text": then}]}]


def _signature(body: bytes) -> str:
    """What a thinking block must bring back unchanged, or the server refuses it."""
    for value in _objects(body):
        if value.get("type") == "signature_delta" and isinstance(value.get("signature"), str):
            return str(value["signature"])
        if value.get("type") == "thinking" and value.get("signature"):
            return str(value["signature"])
    return ""


def _objects(body: bytes) -> Iterator[Mapping[str, Any]]:
    """The blocks of a whole reply, the blocks and deltas of a streamed one."""
    if body.lstrip().startswith(b"{"):
        whole = _parsed(body)
        blocks = whole.get("content") if isinstance(whole, dict) else None
        yield from (b for b in blocks if isinstance(b, dict)) if isinstance(blocks, list) else ()
        return
    for event in Framer().feed(body):
        for lines in event_texts(event):
            value = _parsed(event.text(lines))
            for name in ("content_block", "delta"):
                if isinstance(value, dict) and isinstance(value.get(name), dict):
                    yield value[name]


def _chat_message(reply: Reply, body: bytes) -> Message:
    said = reply.choices.get(0)
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments or "{}"},
        }
        for call in reply.calls
    ]
    message = {"role": "assistant", "content": said.text if said else "", "tool_calls": calls}
    if said and said.thinking:  # a history without it is refused: "reasoning_content is missing"
        message["reasoning_content"] = said.thinking
    return message


def _chat_results(reply: Reply, then: str) -> list[Message]:
    results = [{"role": "tool", "tool_call_id": call.id, "content": RESULT} for call in reply.calls]
    return [*results, _user(then)]


def _parsed(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


MESSAGES = Dialect(
    name="Anthropic Messages",
    wire=ANTHROPIC,
    path=lambda upstream: f"{upstream.anthropic}/v1/messages",
    headers={"anthropic-version": "2023-06-01"},
    tool={"name": TOOL, "description": _ABOUT, "input_schema": _PARAMETERS},
    message=_messages_message,
    results=_messages_results,
)

CHAT = Dialect(
    name="OpenAI Chat Completions",
    wire=OPENAI,
    path=lambda upstream: f"{upstream.openai}/chat/completions",
    headers={},
    tool={
        "type": "function",
        "function": {"name": TOOL, "description": _ABOUT, "parameters": _PARAMETERS},
    },
    message=_chat_message,
    results=_chat_results,
)

DIALECTS = {"anthropic": (MESSAGES,), "openai": (CHAT,), "both": (MESSAGES, CHAT)}
"""What `--protocol` stands for."""
