from __future__ import annotations

import re

import pytest

from moontap.identity import Identity, derived, identify

SESSION = "x-claude-code-session-id"
AGENT = "x-claude-code-agent-id"


@pytest.mark.parametrize(
    ("headers", "hint", "identity"),
    [
        ({}, None, Identity(None, None)),
        ({}, "hint", Identity("hint", None)),
        ({SESSION: "s"}, None, Identity("s", None)),
        ({SESSION: "s"}, "hint", Identity("s", None)),
        ({SESSION: ""}, "hint", Identity("hint", None)),
        ({SESSION: "s", AGENT: "a"}, None, Identity("s", "a")),
        ({SESSION: "s", AGENT: ""}, None, Identity("s", None)),
        ({AGENT: "a"}, "hint", Identity("hint", "a")),
    ],
)
def test_identify(headers: dict[str, str], hint: str | None, identity: Identity) -> None:
    assert identify(headers, hint) == identity


def test_a_derived_session_depends_on_the_text_alone() -> None:
    names = [derived(text) for text in ("", "a", "a", "b", "\ud83d")]
    assert names[1] == names[2]
    assert len(set(names)) == 4
    assert all(re.fullmatch(r"conversation-[0-9a-f]{12}", name) for name in names)


def test_names_can_always_be_written_down() -> None:
    headers = {"x-claude-code-session-id": "s\udcff", "x-claude-code-agent-id": "a\ud83d"}
    assert identify(headers, None) == ("s?", "a?")
    assert identify({}, "u\ud83d").session == "u?"
