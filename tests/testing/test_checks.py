from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moontap.testing import (
    assert_all_paired,
    assert_same_calls,
    assert_unique_ids,
    pairs_of,
)


def line(id_: str = "pwd_0", status: str = "ok", **more: Any) -> dict[str, Any]:
    return {
        "v": 1,
        "status": status,
        "protocol": "anthropic-messages",
        "session": "s",
        "agent": None,
        "tool": "pwd",
        "id": id_,
        "upstream_id": id_,
        "duplicate": False,
        "arguments": {},
    } | more


class Tap:
    """What the checks need of one: its pairs are complete once it is closed."""

    def __init__(self, *lines: dict[str, Any]) -> None:
        self._lines = list(lines)
        self.closed = False

    @property
    def pairs(self) -> list[dict[str, Any]]:
        return self._lines if self.closed else []

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    "lines",
    [
        [line()],
        [line(), line("b", "error")],
    ],
)
def test_all_paired(lines: list[dict[str, Any]]) -> None:
    assert_all_paired(lines)
    assert_all_paired(Tap(*lines))


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "no tool call came through the tap"),
        ([line(status="unanswered")], "1 of 1 tool call did not come back with a result"),
        ([line(), line("b", "orphan")], "1 of 2 tool calls did not come back with a result"),
    ],
)
def test_not_all_paired(lines: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        assert_all_paired(lines)
    with pytest.raises(AssertionError, match=said):
        assert_all_paired(Tap(*lines))


def test_the_calls_in_question_are_shown() -> None:
    lines = [
        line(),
        line(status="unanswered", duplicate=True, arguments={"path": "north.csv"}),
        line("x\x1b[2J", "unanswered", tool=None),
    ]
    with pytest.raises(AssertionError) as error:
        assert_all_paired(lines)
    said = str(error.value).splitlines()
    assert said[:4] == [
        "2 of 3 tool calls did not come back with a result",
        "#  tool  arguments             upstream id  id        status",
        '2  pwd   {"path":"north.csv"}  pwd_0 *      pwd_0     unanswered',
        r"3  ?     {}                    x\x1b[2J     x\x1b[2J  unanswered",
    ]
    assert said[4].startswith("*: the server gave this id before in the conversation.")


def test_many_are_cut() -> None:
    with pytest.raises(AssertionError, match=r"\nand 5 more$"):
        assert_all_paired([line(status="unanswered")] * 25)


def test_fewer_than_asked_for() -> None:
    assert_all_paired([], at_least=0)
    with pytest.raises(AssertionError, match=r"1 tool call came .* at least 2"):
        assert_all_paired([line()], at_least=2)
    with pytest.raises(AssertionError, match=r"2 tool calls came .* at least 3"):
        assert_unique_ids([line(), line("b")], at_least=3)


@pytest.mark.parametrize(
    ("other", "unique"),
    [
        (line("b"), True),
        (line(session="another"), True),
        (line(agent="a helper"), True),
        (line(status="orphan"), True),  # a result, no call
        (line(), False),
        (line(status="unanswered"), False),
    ],
)
def test_unique_ids(other: dict[str, Any], unique: bool) -> None:
    if unique:
        assert_unique_ids([line(), other])
    else:
        with pytest.raises(AssertionError, match="ids came more than once: pwd_0\n"):
            assert_unique_ids([line(), other])


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([line("other"), line()], None),
        ([line()], "1 call, expected were 2; missing, first: pwd {}"),
        ([line()] * 3, "3 calls, expected were 2; not expected, first: pwd {}"),
        ([line(), line(arguments={"a": 1})], r'was:      pwd {"a": 1}'),
        ([line(tool="ls"), line()], "call 1 is another one"),
    ],
)
def test_same_calls(lines: list[dict[str, Any]], said: str | None) -> None:
    if said is None:
        assert_same_calls(lines, [line(), line()])
    else:
        with pytest.raises(AssertionError, match=said):
            assert_same_calls(lines, [line(), line()])


def test_pairs_of_a_capture_folder(tmp_path: Path) -> None:
    (tmp_path / "run.json").touch()
    assert pairs_of(tmp_path) == []
    # A result may hold any character, also those at which `splitlines` of a text would cut.
    lines = [line(result="a\u2028b\x85c"), line()]
    text = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in lines)
    (tmp_path / "pairs.jsonl").write_text(text, "utf-8")
    assert pairs_of(tmp_path) == lines
    assert pairs_of(str(tmp_path)) == lines


def test_pairs_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"x\.flow: no such file or folder"):
        pairs_of(tmp_path / "x.flow")
