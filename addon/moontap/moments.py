"""Moments as files say them. Seconds since the epoch in, RFC 3339 out. Pure."""

from datetime import UTC, datetime

# The years 1 to 9999, to the second.
_FIRST, _LAST = -62_135_596_800.0, 253_402_300_799.0


def is_moment(timestamp: float) -> bool:
    """Whether a calendar has it: not NaN, infinity or the year 300,000."""
    return _FIRST <= timestamp < _LAST


def rfc3339(timestamp: float | None) -> str | None:
    """Seconds since the epoch as RFC 3339 in UTC, to the millisecond; None where there are none,
    and where they are no moment."""
    if timestamp is None or not is_moment(timestamp):
        return None
    moment = datetime.fromtimestamp(timestamp, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
