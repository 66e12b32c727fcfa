"""The agent's work on a recorded session, with no key and no network."""

import anthropic_agent
import pytest

from moontap.testing import assert_all_paired, assert_unique_ids


@pytest.fixture
def shop(tmp_path):
    (tmp_path / "north.csv").write_text("lamps,120\n")
    (tmp_path / "south.csv").write_text("lamps,80\n")
    return tmp_path


def test_it_counts_the_lamps(moontap_replay, moontap_tap, shop):
    tap = moontap_tap(moontap_replay("anthropic_agent.flow"))
    answer = anthropic_agent.ask(
        "How many lamps did we sell?", shop, tap.anthropic_url, tap.api_key
    )
    assert "200" in answer
    assert_all_paired(tap, at_least=3)
    assert_unique_ids(tap)
