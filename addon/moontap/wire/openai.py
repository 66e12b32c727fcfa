"""Chat Completions (OpenAI): history, streamed and whole replies, and where tool-call ids stand.

JSON and event data in, the types of `wire.types` out. Never changes a byte, never raises anything
but `ValueError`. Shapes: the public API reference for Chat Completions and Moonshot's deviations
(`usage` inside a choice, ids that come late or change).
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

# An event whose data does not hold this cannot name a call.
MARKERS = (b'"tool_calls"',)

# An event without any of these is a piece of text or of reasoning, or a comment's.
SHAPE_MARKERS = (
    *MARKERS,
    b"[DONE]",
    b'"finish_reason":"',
    b'"finish_reason": "',
    b'"error"',
    b'"usage":{',
    b'"usage": {',
)

_DONE = b"[DONE]"
_ABSENT = (b"", b"null")
_CONTENT = (b"", b'"', b"[", b"n")  # how it may begin


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: msgspec.Raw = msgspec.Raw()


class _ToolCall(msgspec.Struct, gc=False):
    id: str | None = None
    function: _Function | None = None


class _Message(msgspec.Struct, gc=False):
    role: str = ""
    content: msgspec.Raw = msgspec.Raw()
    tool_calls: list[_ToolCall] | None = None
    tool_call_id: str | None = None
    reasoning_content: msgspec.Raw = msgspec.Raw()
    function_call: msgspec.Raw = msgspec.Raw()


class _Asked(msgspec.Struct):
    tools: msgspec.Raw = msgspec.Raw()
    tool_choice: msgspec.Raw = msgspec.Raw()
    thinking: msgspec.Raw = msgspec.Raw()
    functions: msgspec.Raw = msgspec.Raw()
    function_call: msgspec.Raw = msgspec.Raw()
    max_tokens: msgspec.Raw = msgspec.Raw()
    max_completion_tokens: msgspec.Raw = msgspec.Raw()


class _Request(_Asked, kw_only=True):
    messages: list[_Message]
    model: str | None = None
    stream: bool | None = None
    prompt_cache_key: str | None = None


class _LooseMessage(msgspec.Struct, gc=False):
    role: Any = None
    content: msgspec.Raw = msgspec.Raw()
    tool_calls: Any = None
    tool_call_id: Any = None
    reasoning_content: msgspec.Raw = msgspec.Raw()
    function_call: msgspec.Raw = msgspec.Raw()


class _LooseRequest(_Asked, kw_only=True):
    messages: list[msgspec.Raw]
    model: Any = None
    stream: Any = None
    prompt_cache_key: Any = None


_REQUEST = msgspec.json.Decoder(_Request)
_LOOSE_REQUEST = msgspec.json.Decoder(_LooseRequest)
_MESSAGE = msgspec.json.Decoder(_Message)
_LOOSE_MESSAGE = msgspec.json.Decoder(_LooseMessage)


def read_request(body: bytes) -> Request:
    """The history of a request body. Raises ValueError where it is no Chat Completions request."""
    wire = _decode(body)
    return Request(
        model=wire.model,
        stream=bool(wire.stream),
        session=wire.prompt_cache_key or None,
        messages=_messages(wire.messages, body),
        asked=Asked(
            tools=bytes(wire.tools),
            tool_choice=bytes(wire.tool_choice),
            thinking=bytes(wire.thinking),
            functions=bytes(wire.functions),
            function_call=bytes(wire.function_call),
            limit=bytes(wire.max_completion_tokens or wire.max_tokens),
        ),
    )


def history_sites(body: bytes, wanted: set[int]) -> Iterator[HistorySite]:
    """Where the ids of calls and results stand in the messages with the wanted positions.

    Raises ValueError where the text is not the JSON that `read_request` read.
    """
    body = jsontext.mended(body)
    loose = jsontext.decode(_LOOSE_REQUEST, body)
    if loose is None:
        raise ValueError("not a Chat Completions request")
    for position, start, _ in spans.known_elements(body, "messages", loose.messages, wanted):
        found = {key: (s, e) for key, s, e in spans.members(body, start)}
        if "tool_call_id" in found:
            s, e = found["tool_call_id"]
            if body[s : s + 1] == b'"':
                yield HistorySite(position, 0, True, s + 1, e - 1)
        if "tool_calls" not in found:
            continue
        for block, (at, _) in enumerate(spans.elements(body, found["tool_calls"][0])):
            ids = [(s, e) for key, s, e in spans.members(body, at) if key == "id"]
            if ids and body[ids[-1][0] : ids[-1][0] + 1] == b'"':
                yield HistorySite(position, block, False, ids[-1][0] + 1, ids[-1][1] - 1)


class _Indexes:
    """Which call an entry of `delta.tool_calls` belongs to where its `index` is missing.

    An entry with a name or with an id of its own opens the next call; any other goes on with the
    last one of its choice.
    """

    def __init__(self) -> None:
        self._last: dict[int, int] = {}
        self._ids: dict[tuple[int, int], str] = {}

    def resolve(self, choice: int, index: int | None, id_: str | None, named: bool) -> int:
        last = self._last.get(choice, -1)
        if index is None:
            known = self._ids.get((choice, last))
            opens = last < 0 or (named and known is not None) or (id_ and known not in (None, id_))
            index = last + 1 if opens else last
        self._last[choice] = index
        if id_:
            self._ids.setdefault((choice, index), id_)
        return index


class StreamSites:
    """The call ids of a streamed reply, event by event, in one response's order."""

    def __init__(self) -> None:
        self.message_id: str | None = None
        self._indexes = _Indexes()

    def find(self, data: bytes) -> list[Site]:
        """The sites in one event's data. Raises ValueError where the data is not JSON."""
        if MARKERS[0] not in data:
            return []
        return self.choices(data, "delta")

    def choices(self, data: bytes, holder: str) -> list[Site]:
        """The sites of every choice; holder: `delta` in a stream, `message` in a whole reply."""
        top = {key: (s, e) for key, s, e in spans.members(data)}
        if "id" in top:
            self.message_id = spans.string_at(data, *top["id"]) or self.message_id
        if "choices" not in top:
            return []
        sites: list[Site] = []
        for position, (at, _) in enumerate(spans.elements(data, top["choices"][0])):
            choice = {key: (s, e) for key, s, e in spans.members(data, at)}
            if holder not in choice:
                continue
            number = spans.int_at(data, *choice["index"]) if "index" in choice else None
            number = position if number is None else number
            message = {key: (s, e) for key, s, e in spans.members(data, choice[holder][0])}
            if "tool_calls" in message:
                entries = spans.elements(data, message["tool_calls"][0])
                for entry, (start, _) in enumerate(entries):
                    whole = entry if holder == "message" else None
                    site = self._entry(data, start, number, whole)
                    if site:
                        sites.append(site)
        return sites

    def _entry(self, data: bytes, start: int, choice: int, index: int | None) -> Site | None:
        found = {key: (s, e) for key, s, e in spans.members(data, start)}
        id_ = spans.string_at(data, *found["id"]) if "id" in found else None
        if index is None:
            named = False
            if "function" in found:
                for key, s, e in spans.members(data, found["function"][0]):
                    if key == "name":
                        named = bool(spans.string_at(data, s, e))
            if "index" in found:
                index = spans.int_at(data, *found["index"])
            index = self._indexes.resolve(choice, index, id_, named)
        if not id_:
            return None
        return Site(choice, index, id_, found["id"][0] + 1, found["id"][1] - 1)


def reply_sites(body: bytes) -> tuple[str | None, list[Site]]:
    """The message id and the call ids of a reply that came whole. Raises ValueError."""
    reader = StreamSites()
    sites = reader.choices(body, "message")
    return reader.message_id, sites


class ReplyReader:
    """Assembles a reply from its events' data."""

    def __init__(self) -> None:
        self.reply = Reply(choices={})
        self._calls: dict[tuple[int, int], ReplyCall] = {}
        self._open: dict[int, list[ReplyCall]] = {}  # by choice
        self._others: set[tuple[int, int, str]] = set()
        self._indexes = _Indexes()
        self._texts = Texts()

    def feed(self, data: bytes) -> None:
        """Take one event's data in; what is not understood is passed over."""
        if data.strip() == _DONE:
            if self.reply.complete:
                self.reply.doubled.append("[DONE]")
            self.reply.complete = True
            return
        chunk = self._load(data)
        if chunk is not None:
            self._chunk(chunk, "delta")

    def whole(self, body: bytes) -> Reply:
        """A reply that came whole: a completion, or an error object."""
        completion = self._load(body)
        if completion is not None:
            self._chunk(completion, "message")
            self.reply.complete = self.reply.error is None
            for call in self.reply.calls:
                call.ended = True
        return self.finish()

    def finish(self) -> Reply:
        # Calls in the order in which clients hand them on, not the one their fragments came in.
        self.reply.calls.sort(key=lambda call: (call.choice, call.index))
        self._texts.put(self.reply.choices)
        return self.reply

    def _load(self, data: bytes) -> dict[str, Any] | None:
        try:
            value = jsontext.loads(data)
        except ValueError:
            value = None
        if isinstance(value, dict):
            return value
        self.reply.unreadable += 1
        return None

    def _chunk(self, chunk: Mapping[str, Any], holder: str) -> None:
        reply = self.reply
        if chunk.get("error") is not None:
            reply.error = chunk["error"]
        if isinstance(chunk.get("id"), str) and chunk["id"]:
            reply.restarts += reply.message_id not in (None, chunk["id"])
            reply.message_id = chunk["id"]
        if isinstance(chunk.get("model"), str):
            reply.model = chunk["model"]
        self.reply.add_usage(chunk.get("usage"))
        choices = chunk.get("choices")
        for position, entry in enumerate(choices if isinstance(choices, list) else ()):
            if not isinstance(entry, dict):
                continue
            number = entry.get("index")
            number = number if isinstance(number, int) else position
            choice = reply.choices.setdefault(number, Choice())
            self.reply.add_usage(entry.get("usage"))
            message = entry.get(holder)
            if isinstance(message, dict):
                self._message(number, message, whole=holder == "message")
            if isinstance(entry.get("finish_reason"), str):
                choice.stop_reason = entry["finish_reason"]
                for call in self._open.pop(number, ()):
                    call.ended = True

    def _message(self, number: int, message: Mapping[str, Any], *, whole: bool) -> None:
        self._texts.add(number, "text", _text(message.get("content")))
        self._texts.add(number, "thinking", _text(message.get("reasoning_content")))
        entries = message.get("tool_calls")
        for position, entry in enumerate(entries if isinstance(entries, list) else ()):
            if not isinstance(entry, dict):
                continue
            function = entry.get("function")
            function = function if isinstance(function, dict) else {}
            name = jsontext.string(function.get("name")) or ""
            id_ = jsontext.string(entry.get("id"))
            index = entry.get("index")
            if whole:
                index = position
            else:
                index = index if isinstance(index, int) else None
                index = self._indexes.resolve(number, index, id_, bool(name))
            call = self._calls.get((number, index))
            if call is None:
                call = self._calls[number, index] = ReplyCall(None, "", number, index)
                self.reply.calls.append(call)
                self._open.setdefault(number, []).append(call)
            if id_ and call.id and id_ != call.id and (number, index, id_) not in self._others:
                self._others.add((number, index, id_))
                call.others.append(id_)
            call.id = call.id or id_
            call.name = call.name or name
            arguments = function.get("arguments")
            if arguments is not None:
                text = arguments if isinstance(arguments, str) else jsontext.encode(arguments)
                call.fragments.append(text)


def _decode(body: bytes) -> _Request:
    wire = jsontext.decode(_REQUEST, body)
    if wire is not None:
        return wire
    loose = jsontext.decode(_LOOSE_REQUEST, body)
    if loose is None:
        raise ValueError("not a Chat Completions request: no JSON object with a list of messages")
    return _Request(
        messages=[_loose_message(raw) for raw in loose.messages],
        model=jsontext.string(loose.model),
        stream=loose.stream is True,
        prompt_cache_key=jsontext.string(loose.prompt_cache_key),
        tools=loose.tools,
        tool_choice=loose.tool_choice,
        thinking=loose.thinking,
        functions=loose.functions,
        function_call=loose.function_call,
        max_tokens=loose.max_tokens,
        max_completion_tokens=loose.max_completion_tokens,
    )


def _loose_message(raw: msgspec.Raw) -> _Message:
    """A message of which some field has an unexpected type: the readable calls are kept."""
    message = jsontext.decode(_MESSAGE, raw)
    if message is not None:
        return message
    loose = jsontext.decode(_LOOSE_MESSAGE, raw)
    if loose is None:
        return _Message()
    entries = loose.tool_calls if isinstance(loose.tool_calls, list) else []
    return _Message(
        role=jsontext.string(loose.role) or "",
        content=loose.content,
        # An unreadable entry keeps its place, so that positions stay true.
        tool_calls=[_loose_call(entry) for entry in entries],
        tool_call_id=jsontext.string(loose.tool_call_id),
        reasoning_content=loose.reasoning_content,
        function_call=loose.function_call,
    )


def _loose_call(entry: object) -> _ToolCall:
    if not isinstance(entry, dict):
        return _ToolCall()
    function = entry.get("function")
    function = function if isinstance(function, dict) else {}
    arguments = msgspec.Raw(jsontext.encode(function.get("arguments", "")).encode())
    return _ToolCall(
        jsontext.string(entry.get("id")),
        _Function(jsontext.string(function.get("name")), arguments),
    )


def _messages(read: list[_Message], body: bytes) -> tuple[Message, ...]:
    messages = tuple([_message(message) for message in read])
    odd = [at for at, one in enumerate(read) if _is_odd(one, messages[at])]
    if odd and (loose := jsontext.decode(_LOOSE_REQUEST, body)):
        for at in odd:
            messages[at].odd = form.looked_at(loose.messages[at], form.of_chat)
    return messages


def _is_odd(read: _Message, message: Message) -> bool:
    """Whether its form may be odd: then, which is rare, it is worth to be read once more."""
    begins = bytes(memoryview(read.content)[:1])
    if read.role not in form.CHAT_ROLES or begins not in _CONTENT:
        return True
    if read.role == "tool":
        return not begins or read.tool_call_id is None
    for call in read.tool_calls or ():
        if call.id is None or call.function is None or not call.function.name:
            return True
        if bytes(memoryview(call.function.arguments)[:1]) != b'"':
            return True
    if not read.tool_calls and not message.blocks:
        return True  # it says nothing
    return not all(map(form.is_part, message.blocks))


def _message(message: _Message) -> Message:
    calls = tuple(
        Call(
            call.id,
            (call.function.name or "") if call.function else "",
            jsontext.text_of(bytes(call.function.arguments)) if call.function else b"",
            block,
        )
        for block, call in enumerate(message.tool_calls or ())
    )
    if message.role == "tool":
        result = Result(message.tool_call_id, bytes(message.content), False, 0)
        return Message(message.role, calls, (result,), "", ("tool_result",))
    content = jsontext.loads(message.content) if message.content else None
    return Message(
        message.role,
        calls,
        (),
        _text(content),
        _blocks(content),
        _length(message.reasoning_content),
        legacy=message.role == "function" or _length(message.function_call) is not None,
    )


def _blocks(content: object) -> tuple[str, ...]:
    """The types of a content's parts; a string is one text."""
    if isinstance(content, str):
        return ("text",) if content else ()
    if not isinstance(content, list):
        return ()
    kinds = (part.get("type") if isinstance(part, dict) else "" for part in content)
    return tuple([kind if isinstance(kind, str) else "" for kind in kinds])


def _length(raw: msgspec.Raw) -> int | None:
    """How many bytes a JSON string takes, quotes left out; None where it is absent or null."""
    return None if bytes(raw) in _ABSENT else max(len(raw) - 2, 0)


def _text(content: object) -> str:
    """The text of a content that is a string, or a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = (part.get("text") for part in content if isinstance(part, dict))
    return "\n".join(part for part in parts if isinstance(part, str))
