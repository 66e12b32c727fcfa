"""The small types that every protocol module yields: what a request and a reply say.

Plain data, no behaviour. Ids are opaque strings; `None` means missing or null, which is not `""`.
"""

from dataclasses import dataclass, field
from enum import StrEnum

import msgspec


class Protocol(StrEnum):
    """The protocols that are paired, by the names used in `pairs.jsonl`."""

    ANTHROPIC = "anthropic-messages"
    OPENAI = "openai-chat"


class Call(msgspec.Struct, frozen=True, gc=False):
    """A tool call as a message of the history holds it.

    arguments: the JSON text as it stands (UTF-8); for Chat Completions the decoded string.
    block: its position in the message's content (Messages) or `tool_calls` (Chat Completions).
    """

    id: str | None
    name: str
    arguments: bytes
    block: int


class Result(msgspec.Struct, frozen=True, gc=False):
    """A tool result as a message of the history holds it.

    id: the call it names. content: raw JSON, `b""` where absent. block: as in `Call`; 0 for a
    `role=tool` message.
    """

    id: str | None
    content: bytes
    is_error: bool
    block: int


class Fault(StrEnum):
    """What is wrong with the form of something. WORD: a word that the protocol does not know.
    MISSING: what must be there is not. KIND: a value of another kind than the protocol has.
    FOREIGN: what another protocol has."""

    WORD = "word"
    MISSING = "missing"
    KIND = "kind"
    FOREIGN = "foreign"


class Odd(msgspec.Struct, frozen=True, gc=False):
    """A place in a message that is not of the protocol's form, see `wire.form`.

    path: within the message, as `content[0].type`; `""` is the message itself. said: what stands
    there, or in its place; meant: what belongs there; each `""` where there is no telling. block:
    as in `Call`, where it is of one.
    """

    path: str
    fault: Fault
    said: str
    meant: str
    block: int | None = None


@dataclass(slots=True)
class Message:
    """One message of the history. text: what it says outside calls, results and thinking.

    blocks: the types of its content's blocks, in order; a string is one `text`, and what is absent,
    null or `""` is none. thinking: how many bytes of JSON its thinking or `reasoning_content`
    takes, quotes left out; None where there is none. signed: a thinking block has a signature.
    legacy: it has the `function_call` or the role of the time before `tool_calls`. odd: what of it
    is not of the protocol's form.

    skeleton: a number for its role, its calls' ids and names and its results' ids, which is what
    clients leave as it is from request to request. said, heard: a number for its text and for the
    content of its results, 0 for none. They mean something within one process only, and are worked
    out once: histories are compared often.
    """

    role: str
    calls: tuple[Call, ...]
    results: tuple[Result, ...]
    text: str
    blocks: tuple[str, ...] = ()
    thinking: int | None = None
    signed: bool = False
    legacy: bool = False
    odd: tuple[Odd, ...] = ()
    skeleton: int = field(init=False, repr=False, compare=False)
    said: int = field(init=False, repr=False, compare=False)
    heard: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        calls = tuple((call.id, call.name) for call in self.calls)
        results = tuple(result.id for result in self.results)
        self.skeleton = hash((self.role, calls, results))
        self.said = hash(self.text) if self.text else 0
        self.heard = hash(tuple(result.content for result in self.results)) if self.results else 0


class Asked(msgspec.Struct, frozen=True, gc=False):
    """What a request asks for beside its history, each as raw JSON, `b""` where absent.

    functions: of the time before `tools`, as is `function_call`. limit: `max_tokens`, or what
    stands for it.
    """

    tools: bytes = b""
    tool_choice: bytes = b""
    thinking: bytes = b""
    functions: bytes = b""
    function_call: bytes = b""
    limit: bytes = b""

    def or_else(self, other: "Asked") -> "Asked":
        """This, and from another one what is absent here."""
        names = self.__struct_fields__
        return Asked(*(getattr(self, name) or getattr(other, name) for name in names))


class Request(msgspec.Struct, frozen=True):
    """A request's history and what identifies it. session: the body's own session hint."""

    model: str | None
    stream: bool
    session: str | None
    messages: tuple[Message, ...]
    asked: Asked = Asked()

    @property
    def call_ids(self) -> list[str]:
        """The ids of its calls in order, empty ones left out."""
        return [call.id for message in self.messages for call in message.calls if call.id]

    @property
    def opening(self) -> str:
        """The text of its first user message."""
        return next((message.text for message in self.messages if message.role == "user"), "")


class ReplyCall(msgspec.Struct):
    """A tool call of a reply.

    arguments: the JSON text assembled from `fragments`. choice, index: where it stands, `index`
    being the content index (Messages) or the tool-call index (Chat Completions). ended: its end
    was seen (block stop, finish reason), or the reply came whole. others: ids that came for it
    after its first, and are not that.
    """

    id: str | None
    name: str
    choice: int
    index: int
    fragments: list[str] = []
    ended: bool = False
    others: list[str] = []

    @property
    def arguments(self) -> str:
        return "".join(self.fragments)

    @property
    def json(self) -> bytes:
        """The arguments as a history's `Call` has them; half a surrogate pair stays what it is."""
        return self.arguments.encode("utf-8", "surrogatepass")


class Choice(msgspec.Struct):
    """The text of one choice (Messages has just choice 0)."""

    text: str = ""
    thinking: str = ""
    stop_reason: str | None = None


class Reply(msgspec.Struct):
    """A whole or streamed reply, assembled.

    usage: as the server sent it, later values over earlier ones. error: the error object of an
    error reply or of an error event. complete: the protocol's own end was seen.
    unreadable: how many events (or bodies) were not JSON. doubled: the kinds of events that came
    again where each comes once, in order: `content_block_stop`, `message_stop`, `[DONE]`.
    restarts: how many times it began anew.
    """

    message_id: str | None = None
    model: str | None = None
    calls: list[ReplyCall] = []
    choices: dict[int, Choice] = {}
    usage: dict[str, object] | None = None
    error: object | None = None
    complete: bool = False
    unreadable: int = 0
    doubled: list[str] = []
    restarts: int = 0

    def add_usage(self, usage: object) -> None:
        """Take a usage object in, where it is one: later values over earlier ones."""
        if isinstance(usage, dict):
            self.usage = {**(self.usage or {}), **usage}


class Site(msgspec.Struct, frozen=True, gc=False):
    """Where a call's id stands in a JSON text: the characters at [start, end), quotes outside.

    generation: counts up where a stream begins to use its indexes again, so that a call is told
    by (generation, choice, index).
    """

    choice: int
    index: int
    id: str
    start: int
    end: int
    generation: int = 0


class HistorySite(msgspec.Struct, frozen=True, gc=False):
    """Where an id stands in a request's history; `result`: it names a call instead of being one."""

    message: int
    block: int
    result: bool
    start: int
    end: int
