"""Moments as files say them. Seconds since the epoch in, RFC 3339 out. Pure."""

from datetime import UTC, datetime


def rfc3339(timestamp: float | None) -> str | None:
    """Seconds since the epoch as RFC 3339 in UTC, to the millisecond; None stays None."""
    if timestamp is None:
        return None
    moment = datetime.fromtimestamp(timestamp, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
