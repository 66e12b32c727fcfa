"""What the guard may do, and what it decides about one request. Plain data."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import Any


class Guarding(StrEnum):
    """The values of `moontap_guard`."""

    OFF = auto()
    """Repeats are written down as findings and not warned of."""
    WARN = auto()
    """They are warned of; no request is touched."""
    REMIND = auto()
    """The model is reminded, within the request."""
    BLOCK = auto()
    """Past the limit the request is answered here, with an error."""

    @property
    def acts(self) -> bool:
        """Whether requests are looked at before they go out."""
        return self in (Guarding.REMIND, Guarding.BLOCK)


NO_PROGRESS = "blocked_no_progress"
LIMIT = "blocked_limit"


@dataclass(frozen=True, slots=True)
class Reminder:
    """Add this text to the request. count: how often the same was done. again: this is the request
    that was reminded before, sent once more, and it gets the same text. said: a line for the log.
    """

    text: str
    count: int
    said: str
    again: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """Answer the request with an error. code: `NO_PROGRESS` or `LIMIT`. message: what happened and
    what to do, in a line. facts: the same for programs. count: how often the same was done; None
    where that is not the reason."""

    code: str
    message: str
    facts: Mapping[str, Any]
    count: int | None = None


type Decision = Reminder | Refusal | None
