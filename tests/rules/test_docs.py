"""The examples of docs/rules.md are rules files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from moontap.rules import load_rules

PAGE = (Path(__file__).parents[2] / "docs/rules.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(.+?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda text: text.partition(":")[0])
def test_an_example_is_right(tmp_path: Path, example: str) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(example, encoding="utf-8")
    load_rules(str(path))


def test_there_are_some() -> None:
    assert len(EXAMPLES) >= 6
