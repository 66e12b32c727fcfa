"""The texts of a reply as they grow."""

from __future__ import annotations

from typing import Any

import pytest

from moontap.wire.texts import Texts
from moontap.wire.types import Choice


@pytest.mark.parametrize(
    ("pieces", "text", "thinking"),
    [
        ([], "", ""),
        ([("text", "a"), ("thinking", "x"), ("text", "b")], "ab", "x"),
        ([("text", ""), ("text", None), ("text", 5), ("text", ["a"])], "", ""),
    ],
)
def test_pieces_are_joined(pieces: list[tuple[str, Any]], text: str, thinking: str) -> None:
    texts, choices = Texts(), {2: Choice()}
    for name, piece in pieces:
        texts.add(2, name, piece)
    texts.put(choices)
    assert choices == {2: Choice(text, thinking)}


def test_more_may_follow() -> None:
    texts, choices = Texts(), {0: Choice()}
    for piece, whole in (("a", "a"), ("b", "ab"), ("", "ab")):
        texts.add(0, "text", piece)
        texts.put(choices)
        assert choices[0].text == whole
