"""Done when 5: the kinds are told apart on 20 files of each, damaged ones among them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from moontap.evidence.examine import Examined, examine
from moontap.evidence.inputs import files, opened
from moontap.evidence.kinds import Kind
from moontap.rules import Rules
from tests.evidence.kinds import Made, every

EVERY = every()
RULES = Rules()


def test_there_are_twenty_of_each_kind() -> None:
    assert Counter(made.kind for made in EVERY) == dict.fromkeys(Kind, 20)
    assert len({made.data for made in EVERY if made.kind is not Kind.CAPTURE}) == 20 * 15
    assert all(
        made.damaged for made in EVERY if "breaks-off" in made.name and "stream" not in str(made)
    )


def looked_at(made: Made, folder: Path) -> Examined:
    # The name says nothing, or the wrong thing.
    name = folder / "evidence.log"
    if made.kind is Kind.CAPTURE:
        (folder / "run").mkdir()
        (folder / "run" / "run.json").write_text('{"v": 1}')
        (folder / "run" / "traffic.flow").write_bytes(made.data)
        name = folder / "run"
    else:
        name.write_bytes(made.data)
    [file] = files(str(name))
    source, kind = opened(file, given=str(name))
    return examine(source, RULES, kind)


@pytest.mark.parametrize("made", EVERY, ids=str)
def test_it_is_told_by_what_it_holds(made: Made, tmp_path: Path) -> None:
    examined = looked_at(made, tmp_path)
    assert examined.kind is made.kind
    assert bool(examined.damage) is made.damaged, examined.damage
    assert all(
        one.line or one.byte is not None or "exchange" in one.what for one in examined.damage
    )
    assert not examined.faults
