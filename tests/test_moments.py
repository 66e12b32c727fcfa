"""Moments: what is one, and how it is written."""

import math

import pytest

from moontap.moments import is_moment, rfc3339


@pytest.mark.parametrize(
    ("timestamp", "said"),
    [
        (None, None),
        (0.0, "1970-01-01T00:00:00.000Z"),
        (1_800_000_000.1236, "2027-01-15T08:00:00.123Z"),
        (-1.0, "1969-12-31T23:59:59.000Z"),
        (-62_135_596_800.0, "0001-01-01T00:00:00.000Z"),
        (-62_135_596_801.0, None),
        (253_402_300_798.5, "9999-12-31T23:59:58.500Z"),
        (253_402_300_800.0, None),
        (1e18, None),
        (math.nan, None),
        (math.inf, None),
        (-math.inf, None),
    ],
)
def test_rfc3339(timestamp: float | None, said: str | None) -> None:
    assert rfc3339(timestamp) == said
    assert timestamp is None or is_moment(timestamp) is (said is not None)
