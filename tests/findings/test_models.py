from __future__ import annotations

import re

import pytest

from moontap.findings.models import MODELS, model_of, thinks
from moontap.wire.types import Asked


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("kimi-k3", "K3"),
        ("Kimi-K3", "K3"),
        ("moonshotai/Kimi-K3", "K3"),
        ("kimi-k3[1m]", "K3"),
        ("kimi-k3.1-pro", "K3"),
        ("k3", "K3"),
        ("k3-256k", "K3"),
        ("kimi-k2.7-code-highspeed", "K2.7"),
        ("kimi-k2.6", "K2.5 or K2.6"),
        ("accounts/fireworks/models/kimi-k2p5", "K2.5 or K2.6"),
        ("kimi-for-coding", "K2.5 or K2.6"),
        ("moonshotai/kimi-k2-thinking", "K2 Thinking"),
        # Of these nothing is known.
        ("kimi-k2", None),
        ("kimi-k2-0905-preview", None),
        ("kimi-k30", None),
        ("kimi-k2.60", None),
        ("task3", None),
        ("claude-opus-k3x", None),
        ("", None),
        (None, None),
    ],
)
def test_which_row_holds_for_a_model(name: str | None, family: str | None) -> None:
    model = model_of(name)
    assert (model.family if model else None) == family


@pytest.mark.parametrize(
    ("name", "thinking", "expected"),
    [
        ("kimi-k2.6", b"", True),
        ("kimi-k2.6", b'{"type":"enabled"}', True),
        ("kimi-k2.6", b'{"type":"disabled"}', False),
        ("kimi-k2.6", b"null", True),
        ("kimi-k2.6", b"broken", True),
        ("kimi-k3", b'{"type":"disabled"}', True),
    ],
)
def test_whether_it_thinks(name: str, thinking: bytes, expected: bool) -> None:
    model = model_of(name)
    assert model
    assert thinks(model, Asked(thinking=thinking)) is expected


def test_each_row_names_its_source_and_its_date() -> None:
    for model in MODELS:
        assert "/" in model.source
        assert re.search(r"20\d\d-\d\d", model.source), model.family
