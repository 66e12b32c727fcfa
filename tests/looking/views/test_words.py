from __future__ import annotations

import pytest

from moontap.looking.views.words import columns, filled, named, one_line


@pytest.mark.parametrize(
    ("text", "limit", "line"),
    [
        ("ls", 10, "ls"),
        ("  ls -la  ", 10, "ls -la"),
        ("a\n\n\tb  c", 10, "a b c"),
        ("", 10, ""),
        ("\n \n", 10, ""),
        ("0123456789", 10, "0123456789"),
        ("0123456789a", 10, "012345678…"),
        ("a\x1b[2Jb", 20, r"a\x1b[2Jb"),
        ("é" * 11, 10, "ééééééééé…"),
        ("你好你好", 10, "你好你好"),  # two columns each
        ("你好你好你好", 10, "你好你好…"),
        ("你好" * 1000, 7, "你好你…"),
        (" " * 100_000 + "far off", 10, "far off"),
        ("a" + " " * 100_000 + "b", 10, "a…"),
        ("x", 1, "x"),
        ("xyz", 0, "x…"),
    ],
)
def test_one_line(text: str, limit: int, line: str) -> None:
    assert one_line(text, limit) == line
    assert columns(line) <= max(limit, 2)


@pytest.mark.parametrize(
    ("id_", "shown"),
    [
        ("Bash_0", "Bash_0"),
        ("functions.Bash:0", "functions.Bash:0"),
        (None, "(no id)"),
        ("", "(empty id)"),
        ("a\nb", r"a\nb"),
        ("x" * 200, "x" * 99 + "…"),
    ],
)
def test_ids(id_: str | None, shown: str) -> None:
    assert named(id_) == shown


@pytest.mark.parametrize(
    ("words", "width", "lines"),
    [
        ([], 10, []),
        (["one"], 10, ["one"]),
        (["one", "two", "three"], 9, ["one, two,", "three"]),
        (["one", "two", "three"], 8, ["one,", "two,", "three"]),
        (["longer than it", "a"], 5, ["longer than it,", "a"]),
    ],
)
def test_filled(words: list[str], width: int, lines: list[str]) -> None:
    assert list(filled(words, width)) == lines


@pytest.mark.parametrize(
    ("signs", "each"), [("aé→✓│…", 1), ("你한가🌙🤖🟡✅❌⭐⚡⏳🈚", 2)], ids=["narrow", "wide"]
)
def test_columns(signs: str, each: int) -> None:
    assert {sign: columns(sign) for sign in signs} == dict.fromkeys(signs, each)
    assert columns(signs) == each * len(signs)
