"""What the stand-in model is told to do: steps, pacing and faults, as plain frozen data.

In: values from the YAML reader (`script_yaml`) or from a test. Out: nothing. It never reads a
file, a clock or a request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class ScriptError(ValueError):
    """A script that cannot be used. The text names file, line, problem and remedy."""


class FaultKind(StrEnum):
    """One oddity of a reply. Those marked (Chat) or (Messages) do nothing on the other protocol."""

    CUT = "cut"  # the connection breaks after `after_events` events or `after_bytes` bytes
    ERROR_EVENT = "error_event"  # HTTP 200, then an error instead of event `after_events` + 1
    STATUS = "status"  # `status` with `body`, of `content_type`
    STALL = "stall"  # silence of `ms` after `after_events` events
    ENCODING = "encoding"  # body in `encoding` gzip, br or zstd; `header: false` does not say so
    CRLF = "crlf"  # CR LF line ends
    COMMENTS = "comments"  # `: keep-alive` lines between events, and `ping` events (Messages)
    NO_EVENT_LINE = "no_event_line"  # `data:` lines alone (Messages)
    DATA_NO_SPACE = "data_no_space"  # `data:{…}`
    DOUBLE_STOP = "double_stop"  # two `content_block_stop` for each tool block (Messages)
    SPACE_SEPARATOR = "space_separator"  # the line between events holds a space (Chat)
    EMPTY = "empty"  # 200 and no body
    WHOLE = "whole"  # JSON although a stream was asked for
    SAME_ID = "same_id"  # all calls of the reply share one id (`id`, or the first one minted)
    ID_EVERY_FRAGMENT = "id_every_fragment"  # a new id on each fragment of a call (Chat)
    EMPTY_ID = "empty_id"  # every id is ""
    NULL_ID_CONTINUATION = "null_id_continuation"  # continuations say `"id": null` (Chat)
    LATE_ID = "late_id"  # the id comes with the arguments, not with the name (Chat)
    INTERLEAVED = "interleaved"  # the fragments of parallel calls take turns
    FORGET = "forget"  # `--mint history` counts `calls` fewer, as after compaction or a rewind
    CHOICES = "choices"  # `choices` choices, each with the calls (Chat)


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. `arguments` is an object, or a string that is sent as it stands."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """What the model does in one reply; several calls are parallel calls."""

    calls: tuple[Call, ...]
    text: str = ""
    thinking: str = ""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Steps for the conversations whose opening user text holds `match` ("" is any)."""

    steps: tuple[Step, ...] = ()
    final: str = "All done."
    match: str = ""


@dataclass(frozen=True, slots=True)
class Pacing:
    """Milliseconds before the first byte and before each later event; characters per delta."""

    first_byte_ms: float = 0
    event_ms: float = 0
    delta_chars: int = 12


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault for the `at_request`-th request that takes part (from 1), or for all (None)."""

    kind: FaultKind
    at_request: int | None = None
    after_events: int = 0
    after_bytes: int | None = None
    ms: float = 0
    status: int = 500
    body: str | None = None
    content_type: str | None = None
    message: str = "the stand-in was told to fail"
    encoding: str = "gzip"
    header: bool = True
    id: str | None = None
    choices: int = 2
    calls: int = 1


@dataclass(frozen=True, slots=True)
class Script:
    """The whole script. `default` plays where no conversation matches."""

    default: Conversation = field(default_factory=Conversation)
    conversations: tuple[Conversation, ...] = ()
    model: str = "kimi-k3"
    seed: int | None = None
    pacing: Pacing = field(default_factory=Pacing)
    faults: tuple[Fault, ...] = ()

    def active(self, request_number: int) -> dict[FaultKind, Fault]:
        """The faults of the given request; a later one of a kind replaces an earlier one."""
        return {f.kind: f for f in self.faults if f.at_request in (None, request_number)}


def _bash(command: str, description: str) -> Step:
    return Step(calls=(Call("Bash", {"command": command, "description": description}),))


DEFAULT_SCRIPT = Script(
    default=Conversation(
        steps=(
            _bash("pwd", "Show the working folder"),
            _bash("ls", "List the files"),
            _bash("date", "Show the date"),
        )
    ),
    conversations=(
        Conversation(match="(moontap probe, ", steps=2 * (Step(calls=(Call("pwd"),)),)),
    ),
)
"""Three calls of a `Bash` tool, one after the other: what is played when no script is given. To
`moontap probe`, the two calls that it asks for."""
