"""What checks look at: one exchange of a conversation, and what that conversation was before.

Plain data with a few views on it. A part that the evidence does not hold is None.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from moontap.findings.conversation import Conversation
from moontap.findings.progress import Streak
from moontap.findings.types import Ending, Part
from moontap.lineage import Outcome, Tracked
from moontap.origin import Origin
from moontap.pairing import Pairing
from moontap.rules import Rules
from moontap.wire.types import Message, Protocol, Reply, ReplyCall, Request

CLIENT_LEFT = ("Client disconnected.", "stream reset by client (CANCEL)")
"""What mitmproxy says where the client goes before the end: Esc in Claude Code, a time limit. With
HTTP/2 it says the second of either side, but servers do not cancel."""


@dataclass(frozen=True)
class Sent:
    """A request. new: the first message that its conversation had not seen before; all that
    checks need to look at. pairing: of the messages from `new` on at least; where `new` is past
    the end, all was said before. again: then, the calls of the latest reply to just this history.

    size: bytes of its body. retry: what the SDK's retry header says. agent: the User-Agent.
    healed: the tap gave reused ids of its history new ones on the way to the server.
    """

    request: Request
    new: int
    pairing: Pairing
    again: tuple[Tracked[Origin], ...] = ()
    size: int = 0
    retry: int | None = None
    agent: str = ""
    healed: bool = False

    @cached_property
    def fresh(self) -> list[tuple[int, Message]]:
        """The new messages with their positions."""
        return list(enumerate(self.request.messages[self.new :], self.new))

    @property
    def is_repeat(self) -> bool:
        """Whether the conversation had got this far before."""
        return self.new >= len(self.request.messages)


@dataclass
class Got:
    """A response. status: 0 where the evidence does not say. reply: without its texts; see `text`.
    upstream_ids: of `reply.calls`, as the server sent them. streamed: it is an event stream.

    kind: its content type. cut: it broke off. trouble: what mitmproxy says of that. unnamed: the
    content encoding that the body has and the headers do not name. first_byte_s: from the request's
    end to the headers; silence_s: the longest time without a chunk after them; ended: seconds since
    the epoch; each None where not known. request_id: as the server names it. read_body, read_text:
    see `body`, `text`.
    """

    reply: Reply
    upstream_ids: tuple[str | None, ...] = ()
    status: int = 0
    streamed: bool = False
    kind: str = ""
    cut: bool = False
    trouble: str | None = None
    unnamed: str | None = None
    first_byte_s: float | None = None
    silence_s: float | None = None
    ended: float | None = None
    request_id: str | None = None
    read_body: Callable[[], bytes] = bytes
    read_text: Callable[[], dict[int, str]] = dict

    @cached_property
    def body(self) -> bytes:
        """The body, content encoding undone."""
        return self.read_body()

    @cached_property
    def text(self) -> dict[int, str]:
        """The text of each choice. Reads the whole stream: look at `body` first."""
        return self.read_text()

    @property
    def calls(self) -> list[ReplyCall]:
        return self.reply.calls

    @property
    def is_refusal(self) -> bool:
        """Whether it is an error instead of a reply."""
        return self.status >= 400

    @cached_property
    def ending(self) -> Ending:
        """How it ended."""
        if self.is_refusal:
            return Ending.REFUSED
        if self.reply.complete:
            return Ending.WHOLE
        if self.cut and self.trouble in CLIENT_LEFT:
            return Ending.LEFT
        if self.reply.error is not None:
            return Ending.ERROR
        if self.cut:
            return Ending.BROKEN if self.status else Ending.NONE
        said = bool(self.reply.calls or self.body.strip())
        return Ending.BROKEN if said or not self.status else Ending.EMPTY


@dataclass(frozen=True, slots=True)
class Stopped:
    """The guard answered in place of the API. code: `blocked_no_progress` or `blocked_limit`.
    facts: what that answer says of it, see docs/guard.md."""

    code: str
    facts: Mapping[str, Any]


@dataclass
class Turn:
    """One exchange. number: from 1 on, in the order of the evidence. conversation: tells it from
    every other of the run, `session` is but its name.

    delivered: the calls of the reply, with whether the upstream id was used before. outcomes: the
    pairs that this request made certain. before: the conversation up to here: this request is
    taken in (`streak`), this reply is not. streak: how often the same was done to no avail.
    parts: what there is to look at. stopped: by the guard; reminded: by it, how often the same had
    been done.
    """

    number: int
    conversation: int
    protocol: Protocol
    session: str
    agent: str | None
    model: str | None
    parts: Part
    rules: Rules
    sent: Sent | None = None
    got: Got | None = None
    delivered: tuple[Tracked[Origin], ...] = ()
    outcomes: tuple[Outcome[Origin], ...] = ()
    flow: str | None = None
    at: float | None = None
    before: Conversation = field(init=False, repr=False)
    streak: Streak | None = None
    stopped: Stopped | None = None
    reminded: int | None = None
