"""What the guard did goes before all else."""

from __future__ import annotations

import pytest

from moontap.report.story.conversation import Account
from moontap.report.story.guarded import guarded
from moontap.report.story.told import Told

STOP, LIMIT = "blocked_no_progress", "blocked_limit"
WHY = "the same had been done 12 times in a row, and nothing came of it (blocked_no_progress)"


@pytest.mark.parametrize(
    ("exchanges", "said"),
    [
        ([Told(1, None)], []),
        (
            [Told(1, None), Told(2, None, stopped=STOP, repeats=12)],
            [f"moontap stopped it at exchange 2: {WHY}."],
        ),
        (
            [Told(1, None, stopped=STOP, repeats=12), Told(2, None, stopped=STOP), Told(3, None)],
            [
                f"moontap stopped it at exchange 1: {WHY}; and it answered 1 later request in the "
                "same way; after that it went on."
            ],
        ),
        (
            [Told(4, None, stopped=LIMIT)],
            [
                "moontap stopped it at exchange 4: a limit of the session was used up "
                "(blocked_limit)."
            ],
        ),
        ([Told(1, None, stopped="other")], ["moontap stopped it at exchange 1: other."]),
        (
            [Told(n, None, reminded=n in (3, 5)) for n in range(1, 7)],
            ["moontap reminded the model that it repeats itself, in exchange 3, 5."],
        ),
    ],
)
def test_what_it_did(exchanges: list[Told], said: list[str]) -> None:
    account = Account("s", "anthropic-messages", None, "", None, exchanges)
    assert guarded(account) == said
    assert account.troubled == bool(account.stops)
