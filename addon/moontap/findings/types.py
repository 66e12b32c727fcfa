"""What a finding is. Plain data.

A check looks at one turn and yields what it `Found`; the judge completes that to a `Finding`.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from enum import Flag, StrEnum, auto
from typing import Any


class Severity(StrEnum):
    """How much it matters. info: good to know; warning: costs something; error: breaks something.

    Ordered: `Severity.ERROR.rank > Severity.INFO.rank`.
    """

    INFO = auto()
    WARNING = auto()
    ERROR = auto()

    @property
    def rank(self) -> int:
        return _RANKS[self]


_RANKS = {severity: rank for rank, severity in enumerate(Severity)}


class Party(StrEnum):
    """Who most likely caused it."""

    API = "api"
    """The model, or the API in front of it: from outside they cannot be told apart."""
    CLIENT = "client"
    SDK_RETRY = "sdk-retry"
    NETWORK = "network"
    TOOL = "tool"


class Ending(StrEnum):
    """How a reply ended."""

    WHOLE = auto()
    """The protocol's own end came: what follows it, clients do not wait for."""
    REFUSED = auto()
    """An error status."""
    ERROR = auto()
    """An error after the reply had begun."""
    EMPTY = auto()
    """In good order and without a word."""
    LEFT = auto()
    """The client itself broke it off."""
    BROKEN = auto()
    """Without its end."""
    NONE = auto()
    """Not even headers came."""


class Part(Flag):
    """What there must be to look at. A check that needs what the evidence lacks cannot run."""

    HISTORY = auto()
    """The messages of a request."""
    TOOLS = auto()
    """The tools that a request declares, and what else it asks for."""
    REPLY = auto()
    """A reply's calls, texts and stop reason."""
    EVENTS = auto()
    """A streamed reply, event by event."""
    ANSWER = auto()
    """The status and headers of a response."""
    TIMES = auto()
    """When requests and chunks came."""
    TURNS = auto()
    """Several requests of one conversation with their replies: what was delivered, and what of it
    came back."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where it shows. message, block: indexes into the request's messages, and into the content
    (Messages) or `tool_calls` (Chat Completions). choice, index: of a reply's call. ids: the
    tool-call ids concerned, as the client sees them. excerpt: a short piece of what was said.
    facts: more, in JSON's types, by short snake_case names (`tool`, `count`, `first_flow`).
    """

    message: int | None = None
    block: int | None = None
    choice: int | None = None
    index: int | None = None
    ids: tuple[str | None, ...] = ()
    excerpt: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Found:
    """What a check saw. message: one sentence in plain words, with the figures.

    about: tells this thing from every other of its code in the conversation; it is reported once,
    and once more where its severity rises. severity, party, remedy: where the check's own do not
    hold for this one.
    """

    message: str
    about: Hashable = None
    evidence: Evidence = Evidence()
    severity: Severity | None = None
    party: Party | None = None
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A thing that went wrong, once.

    exchange: the number of the exchange in its evidence, from 1 on. session: the name of its
    conversation. flow: None where the evidence was no flow. at: seconds since the epoch.
    conversation: a number that tells it from others of the same name.
    """

    code: str
    severity: Severity
    party: Party
    message: str
    remedy: str
    evidence: Evidence
    exchange: int
    session: str
    conversation: int
    flow: str | None = None
    at: float | None = None

    @property
    def link(self) -> str:
        """Where it is explained."""
        return f"docs/findings.md#{self.code}"
