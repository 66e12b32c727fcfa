"""Messages (Anthropic): history, streamed and whole replies, and where the tool-call ids stand.

JSON and event data in, the types of `wire.types` out. Never changes a byte, never raises anything
but `ValueError`. Shapes: the public API reference for Messages, and the oddities of Moonshot's
endpoint (several starts, whole inputs in the start event).
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from moontap.wire import form, jsontext, spans
from moontap.wire.texts import Texts
from moontap.wire.types import (
    Asked,
    Call,
    Choice,
    HistorySite,
    Message,
    Reply,
    ReplyCall,
    Request,
    Result,
    Site,
)

# An event whose data holds none of these can neither name a call nor the message it belongs to.
MARKERS = (b"tool_use", b"message_start")

# An event without any of these is a piece of text or of thinking, or a `ping`.
SHAPE_MARKERS = (
    *MARKERS,
    b"content_block_start",
    b"input_json_delta",
    b"content_block_stop",
    b"message_delta",
    b"message_stop",
    b'"error"',
)

# An event that opens with one of these lines cannot hold an id: clients dispatch on it.
PASSING = frozenset(
    b"event: " + name
    for name in (
        b"content_block_delta",
        b"content_block_stop",
        b"message_delta",
        b"message_stop",
        b"ping",
        b"error",
    )
)


class _Block(msgspec.Struct, gc=False):
    type: str = ""
    id: str | None = None
    tool_use_id: str | None = None
    name: str | None = None
    text: str | None = None
    is_error: bool | None = None
    input: msgspec.Raw = msgspec.Raw()
    content: msgspec.Raw = msgspec.Raw()
    thinking: msgspec.Raw = msgspec.Raw()
    signature: msgspec.Raw = msgspec.Raw()


class _Message(msgspec.Struct, gc=False):
    role: str = ""
    content: str | list[_Block] | None = None


class _Request(msgspec.Struct):
    messages: list[_Message]
    model: str | None = None
    stream: bool | None = None
    metadata: msgspec.Raw = msgspec.Raw()
    tools: msgspec.Raw = msgspec.Raw()
    tool_choice: msgspec.Raw = msgspec.Raw()
    thinking: msgspec.Raw = msgspec.Raw()
    max_tokens: msgspec.Raw = msgspec.Raw()


class _LooseMessage(msgspec.Struct, gc=False):
    role: Any = None
    content: msgspec.Raw = msgspec.Raw()


class _LooseRequest(msgspec.Struct):
    messages: list[msgspec.Raw]
    model: Any = None
    stream: Any = None
    metadata: msgspec.Raw = msgspec.Raw()
    tools: msgspec.Raw = msgspec.Raw()
    tool_choice: msgspec.Raw = msgspec.Raw()
    thinking: msgspec.Raw = msgspec.Raw()
    max_tokens: msgspec.Raw = msgspec.Raw()


_REQUEST = msgspec.json.Decoder(_Request)
_LOOSE_REQUEST = msgspec.json.Decoder(_LooseRequest)
_MESSAGE = msgspec.json.Decoder(_Message)
_LOOSE_MESSAGE = msgspec.json.Decoder(_LooseMessage)
_BLOCK = msgspec.json.Decoder(_Block)
_BLOCKS = msgspec.json.Decoder(list[msgspec.Raw])


def read_request(body: bytes) -> Request:
    """The history of a request body. Raises ValueError where it is not a Messages request."""
    wire = _decode(body)
    return Request(
        model=wire.model,
        stream=bool(wire.stream),
        session=_session(wire.metadata),
        messages=_messages(wire.messages, body),
        asked=Asked(
            tools=bytes(wire.tools),
            tool_choice=bytes(wire.tool_choice),
            thinking=bytes(wire.thinking),
            limit=bytes(wire.max_tokens),
        ),
    )


def history_sites(body: bytes, wanted: set[int]) -> Iterator[HistorySite]:
    """Where the ids of calls and results stand in the messages with the wanted positions.

    Raises ValueError where the text is not the JSON that `read_request` read.
    """
    body = jsontext.mended(body)
    loose = jsontext.decode(_LOOSE_REQUEST, body)
    if loose is None:
        raise ValueError("not a Messages request")
    for position, start, _ in spans.known_elements(body, "messages", loose.messages, wanted):
        message = {key: at for key, at, _ in spans.members(body, start)}
        if "content" not in message:
            continue
        for block, (at, _) in enumerate(spans.elements(body, message["content"])):
            found = {key: (s, e) for key, s, e in spans.members(body, at)}
            kind = spans.string_at(body, *found["type"]) if "type" in found else None
            for wanted_kind, field in (("tool_use", "id"), ("tool_result", "tool_use_id")):
                if kind == wanted_kind and field in found:
                    s, e = found[field]
                    if body[s : s + 1] == b'"':
                        yield HistorySite(position, block, field != "id", s + 1, e - 1)


class StreamSites:
    """The call ids of a streamed reply, event by event, in one response's order."""

    def __init__(self) -> None:
        self.message_id: str | None = None
        self._generation = 0
        self._seen: set[int] = set()

    def find(self, data: bytes) -> list[Site]:
        """The sites in one event's data. Raises ValueError where the data is not JSON."""
        if not any(marker in data for marker in MARKERS):
            return []
        kind = None
        top = {key: (start, end) for key, start, end in spans.members(data)}
        if "type" in top:
            kind = spans.string_at(data, *top["type"])
        if kind == "message_start" and "message" in top:
            self._restart()
            return self.message(data, top["message"][0])
        if kind == "content_block_start" and "content_block" in top:
            index = spans.int_at(data, *top["index"]) if "index" in top else None
            site = self._site(data, top["content_block"][0], index or 0)
            return [site] if site else []
        return []

    def message(self, data: bytes, start: int = 0) -> list[Site]:
        """The sites in a message object: a start event's, or a reply that came whole."""
        found = {key: (s, e) for key, s, e in spans.members(data, start)}
        if "id" in found:
            self.message_id = spans.string_at(data, *found["id"])
        if "content" not in found:
            return []
        blocks = enumerate(spans.elements(data, found["content"][0]))
        sites = (self._site(data, at, index) for index, (at, _) in blocks)
        return [site for site in sites if site]

    def _restart(self) -> None:
        if self._seen:
            self._generation += 1
            self._seen.clear()

    def _site(self, data: bytes, start: int, index: int) -> Site | None:
        found = {key: (s, e) for key, s, e in spans.members(data, start)}
        if "type" not in found or "id" not in found:
            return None
        if spans.string_at(data, *found["type"]) != "tool_use":
            return None
        s, e = found["id"]
        id_ = spans.string_at(data, s, e)
        if not id_:
            return None
        if index in self._seen:
            self._restart()  # a block start is a call of its own, also where its index is not
        self._seen.add(index)
        return Site(0, index, id_, s + 1, e - 1, self._generation)


def reply_sites(body: bytes) -> tuple[str | None, list[Site]]:
    """The message id and the call ids of a reply that came whole. Raises ValueError."""
    reader = StreamSites()
    sites = reader.message(body)
    return reader.message_id, sites


class ReplyReader:
    """Assembles a reply from its events' data.

    A restart (a second `message_start`) keeps what came before: Claude Code hands every block on
    when it stops, whatever follows.
    """

    def __init__(self) -> None:
        self.reply = Reply(choices={0: Choice()})
        self._open: dict[int, ReplyCall] = {}
        self._prefilled: set[int] = set()
        self._begun = 0  # message starts
        self._stopped: set[int] = set()  # blocks of the last one that have ended
        self._texts = Texts()

    def feed(self, data: bytes) -> None:
        """Take one event's data in; what is not understood is passed over."""
        try:
            event = jsontext.loads(data)
        except ValueError:
            self.reply.unreadable += 1
            return
        if not isinstance(event, dict):
            self.reply.unreadable += 1
            return
        index = event.get("index")
        index = index if isinstance(index, int) else 0
        match event.get("type"):
            case "message_start":
                self._begun += 1
                self._stopped.clear()
                self.reply.restarts = self._begun - 1
                self._start(_mapping(event.get("message")))
            case "content_block_start":
                self._stopped.discard(index)
                self._block(index, _mapping(event.get("content_block")))
            case "content_block_delta":
                self._delta(index, _mapping(event.get("delta")))
            case "content_block_stop":
                if call := self._open.pop(index, None):
                    call.ended = True
                if index in self._stopped:
                    self.reply.doubled.append("content_block_stop")
                self._stopped.add(index)
            case "message_delta":
                reason = _mapping(event.get("delta")).get("stop_reason")
                if isinstance(reason, str):
                    self.reply.choices[0].stop_reason = reason
                self.reply.add_usage(event.get("usage"))
            case "message_stop":
                if self.reply.complete:
                    self.reply.doubled.append("message_stop")
                self.reply.complete = True
            case "error":
                self.reply.error = event.get("error", event)
            case None if "error" in event:  # in the manner of Chat Completions
                self.reply.error = event["error"]

    def whole(self, body: bytes) -> Reply:
        """A reply that came whole: a message, or an error object."""
        try:
            message = jsontext.loads(body)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            self.reply.unreadable += 1
        elif message.get("type") == "error" or "error" in message:
            self.reply.error = message.get("error", message)
        else:
            self._start(message)
            self.reply.complete = True
        return self.finish()

    def finish(self) -> Reply:
        self._texts.put(self.reply.choices)
        return self.reply

    def _start(self, message: Mapping[str, Any]) -> None:
        reply = self.reply
        if isinstance(message.get("id"), str):
            reply.message_id = message["id"]
        if isinstance(message.get("model"), str):
            reply.model = message["model"]
        self.reply.add_usage(message.get("usage"))
        if isinstance(message.get("stop_reason"), str):
            reply.choices[0].stop_reason = message["stop_reason"]
        content = message.get("content")
        for index, block in enumerate(content if isinstance(content, list) else ()):
            self._block(index, _mapping(block))
            if call := self._open.pop(index, None):
                call.ended = True

    def _block(self, index: int, block: Mapping[str, Any]) -> None:
        match block.get("type"):
            case "tool_use":
                name = jsontext.string(block.get("name")) or ""
                call = ReplyCall(jsontext.string(block.get("id")), name, 0, index)
                if "input" in block:
                    call.fragments = [jsontext.encode(block["input"])]
                    self._prefilled.add(id(call))
                self._open[index] = call
                self.reply.calls.append(call)
            case "text":
                self._texts.add(0, "text", block.get("text"))
            case "thinking":
                self._texts.add(0, "thinking", block.get("thinking"))

    def _delta(self, index: int, delta: Mapping[str, Any]) -> None:
        match delta.get("type"):
            case "input_json_delta":
                call = self._open.get(index)
                fragment = jsontext.string(delta.get("partial_json"))
                if call is None or not fragment:
                    return
                if id(call) in self._prefilled:  # the start event's input is but a placeholder
                    self._prefilled.discard(id(call))
                    call.fragments = []
                call.fragments.append(fragment)
            case "text_delta":
                self._texts.add(0, "text", delta.get("text"))
            case "thinking_delta":
                self._texts.add(0, "thinking", delta.get("thinking"))


def _decode(body: bytes) -> _Request:
    wire = jsontext.decode(_REQUEST, body)
    if wire is not None:
        return wire
    loose = jsontext.decode(_LOOSE_REQUEST, body)
    if loose is None:
        raise ValueError("not a Messages request: no JSON object with a list of messages")
    return _Request(
        messages=[_loose_message(raw) for raw in loose.messages],
        model=jsontext.string(loose.model),
        stream=loose.stream is True,
        metadata=loose.metadata,
        tools=loose.tools,
        tool_choice=loose.tool_choice,
        thinking=loose.thinking,
        max_tokens=loose.max_tokens,
    )


def _loose_message(raw: msgspec.Raw) -> _Message:
    """A message of which some field has an unexpected type: the readable blocks are kept."""
    message = jsontext.decode(_MESSAGE, raw)
    if message is not None:
        return message
    loose = jsontext.decode(_LOOSE_MESSAGE, raw)
    if loose is None:
        return _Message()
    role = jsontext.string(loose.role) or ""
    blocks = jsontext.decode(_BLOCKS, loose.content)
    if blocks is None:
        text = jsontext.loads(loose.content) if loose.content else None
        return _Message(role, jsontext.string(text))
    # An unreadable block keeps its place, so that positions stay true.
    return _Message(role, [jsontext.decode(_BLOCK, block) or _Block() for block in blocks])


def _messages(read: list[_Message], body: bytes) -> tuple[Message, ...]:
    messages = tuple([_message(message) for message in read])
    odd = [at for at, one in enumerate(read) if _is_odd(one, messages[at])]
    if odd and (loose := jsontext.decode(_LOOSE_REQUEST, body)):
        for at in odd:
            messages[at].odd = form.looked_at(loose.messages[at], form.of_messages)
    return messages


def _is_odd(read: _Message, message: Message) -> bool:
    """Whether its form may be odd: then, which is rare, it is worth to be read once more."""
    if read.role not in form.MESSAGES_ROLES or read.content is None:
        return True
    for call in message.calls:
        if not call.name or call.id is None or not call.arguments:
            return True
    for result in message.results:
        if result.id is None or not result.content:
            return True
    if isinstance(read.content, str):
        return False
    return any(
        block.text is None if block.type == "text" else not form.is_block(block.type)
        for block in read.content
    )


def _message(message: _Message) -> Message:
    content = message.content
    if not isinstance(content, list):
        return Message(message.role, (), (), content or "", ("text",) if content else ())
    calls: list[Call] = []
    results: list[Result] = []
    texts: list[str] = []
    thinking: int | None = None
    signed = False
    for position, block in enumerate(content):
        match block.type:
            case "tool_use":
                calls.append(Call(block.id, block.name or "", bytes(block.input), position))
            case "tool_result":
                content_ = bytes(block.content)
                results.append(Result(block.tool_use_id, content_, bool(block.is_error), position))
            case "text":
                texts.append(block.text or "")
            case "thinking" | "redacted_thinking":
                thinking = (thinking or 0) + max(len(block.thinking) - 2, 0)
                signed = signed or len(block.signature) > 2 or block.type != "thinking"
    return Message(
        message.role,
        tuple(calls),
        tuple(results),
        "\n".join(texts),
        tuple([block.type for block in content]),
        thinking,
        signed,
    )


def _session(metadata: bytes) -> str | None:
    """`metadata.user_id`, where Claude Code puts a JSON text with `session_id`."""
    if not metadata:
        return None
    try:
        user_id = jsontext.string(_mapping(jsontext.loads(metadata)).get("user_id"))
    except ValueError:  # it is no more than a hint
        return None
    if not user_id:
        return None
    try:
        inner = jsontext.loads(user_id.encode("utf-8", "surrogatepass"))
    except ValueError:
        return user_id
    return jsontext.string(_mapping(inner).get("session_id")) or user_id


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
