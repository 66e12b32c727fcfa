"""Where a call comes from. Plain data, no behaviour."""

from dataclasses import dataclass

from moontap.wire.types import Protocol


@dataclass(frozen=True, slots=True)
class Origin:
    """The exchange that brought a call. The fields from `upstream_id` on: of the reply that
    delivered it, None where the call was first seen in a history."""

    protocol: Protocol
    agent: str | None
    model: str | None
    upstream_id: str | None = None
    message_id: str | None = None
    choice: int | None = None
    index: int | None = None
    request_id: str | None = None
    called_at: float | None = None
    flow: str | None = None
