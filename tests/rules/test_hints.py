"""What is allowed in a rules file and most likely a slip."""

from __future__ import annotations

from pathlib import Path

import pytest

from moontap.rules import hints_of


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "tools: {pya: [charge]}",
            [":1: the class 'pya' has no limit of its own, so its tools hav"],
        ),
        ("tools: {wirte: [Edit]}", ["did you mean 'write', which has 8?"]),
        ("tools: {Pay: [charge]}", ["did you mean 'pay', which has 3?"]),
        ("tools:\n  pay: []\n", [":2: the class 'pay' names no tool"]),
        ("guard: {classes: {pay: 2}}", [":1: no tool is of the class 'pay'; name its tools under"]),
        (
            "tools: {read: [Read]}\nguard:\n  classes: {read: 20}\n",
            [":3: the class 'read' may be called 20 times, more than other tools (12, gua"],
        ),
        ("tools: {shell: [Bash]}\nguard: {block: 4, classes: {shell: 5}}", ["more than other too"]),
        # As it should be.
        ("tools: {pay: [charge], write: [Edit], read: [Read], shell: [Bash]}", []),
        ("tools: {pay: [a], pays: [b]}", []),
        ("tools: {pay: [charge]}\nguard: {classes: {pay: 2}}", []),
        ("guard: {block: 20}", []),
        ("guard: {classes: }\ntools:\n", []),
        ("", []),
    ],
)
def test_hints(tmp_path: Path, text: str, says: list[str]) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(text)
    found = hints_of(str(path))
    assert len(found) == len(says), found
    for one, wanted in zip(found, says, strict=True):
        assert one.startswith(f"{path}:")
        assert wanted in one
