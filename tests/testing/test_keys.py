from __future__ import annotations

import pytest

from moontap.testing.keys import access
from moontap.testing.served import Key

KEY = "made-up-7f3kq9"
HERE = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("environment", "origin"),
    [
        ({"MOONSHOT_API_KEY": KEY}, "https://api.moonshot.cn"),
        ({"KIMI_API_KEY": KEY}, "https://api.moonshot.cn"),
        ({"MOONSHOT_API_KEY": KEY, "OPENAI_BASE_URL": f"{HERE}/v1"}, HERE),
        ({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{HERE}/v1"}, HERE),
        ({"ANTHROPIC_AUTH_TOKEN": KEY, "ANTHROPIC_BASE_URL": HERE}, HERE),
        ({"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": HERE}, HERE),
        # An SDK's key without its server may be for the SDK's vendor: it must not go to Kimi.
        ({"OPENAI_API_KEY": KEY}, None),
        ({"ANTHROPIC_API_KEY": KEY}, None),
        ({"ANTHROPIC_AUTH_TOKEN": KEY}, None),
        ({"ANTHROPIC_API_KEY": KEY, "OPENAI_BASE_URL": HERE}, None),
        ({"OPENAI_BASE_URL": HERE}, None),
        ({"MOONSHOT_API_KEY": ""}, None),
        ({}, None),
    ],
)
def test_where_there_is_a_key(environment: dict[str, str], origin: str | None) -> None:
    found = access(environment)
    assert (found.upstream.origin if found else None) == origin
    assert found is None or found.key == KEY


def test_a_key_is_not_shown() -> None:
    key = Key(KEY)
    assert KEY not in repr(key)
    assert KEY not in repr({"key": key})
    assert f"Bearer {key}" == f"Bearer {KEY}"
