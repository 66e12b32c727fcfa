"""For tests of people's own agents: what to assert about their tool calls.

The fixtures `moontap_replay` and `moontap_tap` come by themselves, as a pytest plugin. A session
recorded once is played again on loopback, with the tap in front of it or without.

    from moontap.testing import assert_all_paired

    def test_my_agent(moontap_replay, moontap_tap):
        tap = moontap_tap(moontap_replay("session.flow"))
        my_agent.run("do it", base_url=tap.openai_url, api_key=tap.api_key)
        assert_all_paired(tap)
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moontap.testing.agents import Ran, run_agent
    from moontap.testing.checks import (
        assert_all_paired,
        assert_same_calls,
        assert_unique_ids,
        pairs_of,
    )
    from moontap.testing.findings import assert_no_findings, findings_of
    from moontap.testing.served import Recording, Replayed, Tapped

__all__ = [
    "Ran",
    "Recording",
    "Replayed",
    "Tapped",
    "assert_all_paired",
    "assert_no_findings",
    "assert_same_calls",
    "assert_unique_ids",
    "findings_of",
    "pairs_of",
    "run_agent",
]

_HOMES = {
    **dict.fromkeys(("Ran", "run_agent"), "agents"),
    **dict.fromkeys(("Recording", "Replayed", "Tapped"), "served"),
    **dict.fromkeys(("assert_no_findings", "findings_of"), "findings"),
}


def __getattr__(name: str) -> object:
    # The plugin lies in this package, and every pytest run in an environment with moontap imports
    # it: what it does not need yet is imported when it is asked for.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = importlib.import_module(f"{__name__}.{_HOMES.get(name, 'checks')}")
    return getattr(home, name)
