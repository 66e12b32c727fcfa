"""On which side of an exchange a finding is shown."""

from __future__ import annotations

import pytest

from moontap.findings.registry import all_checks
from moontap.findings.types import Evidence, Finding
from moontap.looking.heard import found

CHECKS = {check.code: check for check in all_checks()}


@pytest.mark.parametrize(
    ("code", "evidence", "of_request"),
    [
        ("call-unanswered", Evidence(message=2), True),
        ("id-reused", Evidence(message=2), True),
        ("id-reused", Evidence(choice=0, index=1), False),
        ("arguments-invalid", Evidence(message=2), True),
        ("arguments-invalid", Evidence(choice=0, index=1), False),
        ("no-progress", Evidence(), True),
        ("legacy-functions", Evidence(), True),
        ("tool-choice-refused", Evidence(), True),
        ("stream-slow", Evidence(), False),
        ("stream-cut", Evidence(), False),
        ("reply-empty", Evidence(), False),
        # It stands beside the error, also where that names a message.
        ("api-refused", Evidence(message=2), False),
    ],
)
def test_a_finding_is_shown_where_it_belongs(
    code: str, evidence: Evidence, of_request: bool
) -> None:
    check = CHECKS[code]
    one = Finding(code, check.severity, check.party, "It was so.", "Mend it.", evidence, 1, "s", 1)
    assert found(one).of_request is of_request
