"""What an input can be. Plain data."""

from enum import StrEnum


class Kind(StrEnum):
    """The kinds of evidence, by the names that `--json` uses."""

    CAPTURE = "capture"
    FLOWS = "flows"
    HAR = "har"
    MESSAGES_REQUEST = "messages-request"
    CHAT_REQUEST = "chat-request"
    MESSAGES_REPLY = "messages-reply"
    CHAT_REPLY = "chat-reply"
    MESSAGES_STREAM = "messages-stream"
    CHAT_STREAM = "chat-stream"
    MESSAGES_HISTORY = "messages-history"
    CHAT_HISTORY = "chat-history"
    ERROR = "error"
    TRANSCRIPT = "claude-transcript"
    DEBUG_LOG = "claude-debug-log"
    KIMI_CONTEXT = "kimi-context"
    KIMI_WIRE = "kimi-wire"

    @property
    def words(self) -> str:
        """What a person calls it."""
        return _WORDS[self]


_WORDS = {
    Kind.CAPTURE: "a capture folder",
    Kind.FLOWS: "a flow file",
    Kind.HAR: "a HAR file",
    Kind.MESSAGES_REQUEST: "the body of a Messages request",
    Kind.CHAT_REQUEST: "the body of a Chat Completions request",
    Kind.MESSAGES_REPLY: "a Messages reply",
    Kind.CHAT_REPLY: "a chat completion",
    Kind.MESSAGES_STREAM: "a Messages event stream",
    Kind.CHAT_STREAM: "a Chat Completions event stream",
    Kind.MESSAGES_HISTORY: "a messages array of the Messages API",
    Kind.CHAT_HISTORY: "a messages array of Chat Completions",
    Kind.ERROR: "an error body",
    Kind.TRANSCRIPT: "a transcript of Claude Code",
    Kind.DEBUG_LOG: "a debug log of Claude Code",
    Kind.KIMI_CONTEXT: "a history, one message a line (context.jsonl of Kimi CLI)",
    Kind.KIMI_WIRE: "the events of a Kimi CLI session (wire.jsonl)",
}

OF_FLOWS = frozenset((Kind.CAPTURE, Kind.FLOWS, Kind.HAR))

ACCEPTED = (
    "a capture folder, a flow file, a HAR file, a request or reply body as JSON, an event stream, "
    "a messages array, a transcript (~/.claude/projects) or debug log (--debug-file) of Claude "
    "Code, context.jsonl or wire.jsonl of Kimi CLI"
)
