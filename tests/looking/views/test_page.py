from __future__ import annotations

import json
import time

import pytest

from moontap.looking.views.page import WIDTH, Page, folded, paired, wrapped
from moontap.looking.views.words import columns


def page_of(name: str, text: str, fold: int | None = 60) -> list[str]:
    page = Page(fold)
    page.json(name, text)
    return str(page).splitlines()


@pytest.mark.parametrize(
    ("line", "width", "parts"),
    [
        ("", 20, [""]),
        ("short", 20, ["short"]),
        ("a" * 20, 20, ["a" * 20]),
        ("a" * 45, 20, ["a" * 20, "a" * 20, "a" * 5]),
        ("one two three four five six", 20, ["one two three four", "five six"]),
        ("one  two" + "x" * 20, 20, ["one ", "two" + "x" * 17, "xxx"]),
        # Blanks that a line begins with are its indent, and no place to break it.
        ("    " + "y" * 30, 20, ["    " + "y" * 16, "y" * 14]),
        # East Asian characters take two columns.
        ("你" * 25, 20, ["你" * 10, "你" * 10, "你" * 5]),
        ("ab你好" * 5, 20, ["ab你好ab你好ab你好ab", "你好ab你好"]),
        ("🙂" * 11, 20, ["🙂" * 10, "🙂"]),
        ("é" * 21, 20, ["é" * 20, "é"]),
        ("z" * 30, 3, ["z" * 20, "z" * 10]),  # a page that is indented far
    ],
)
def test_lines_are_wrapped_by_columns(line: str, width: int, parts: list[str]) -> None:
    assert list(wrapped(line, width)) == parts


@pytest.mark.parametrize(
    ("text", "most", "shown", "left"),
    [
        ("abc", 3, "abc", 0),
        ("abc", None, "abc", 0),
        ("a" * 12 + "zzz", 9, "aaaaaa\n[… 6 characters …]\nzzz", 6),
    ],
)
def test_the_middle_of_a_long_text_is_left_out(
    text: str, most: int | None, shown: str, left: int
) -> None:
    assert folded(text, most) == (shown, left)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("two\nlines", ["text: |", "  two", "  lines"]),
        ("dos\r\nlines", ["text: |", "  dos", "  lines"]),
        ("a\tb", ["text: |", "  a   b"]),
        ("\x1b[2Jgone", ["text: |", r"  \x1b[2Jgone"]),
        ("nul\x00 del\x7f c1\x9b bell\x07", ["text: |", r"  nul\x00 del\x7f c1\x9b bell\x07"]),
        ("a\rb", ["text: |", r"  a\rb"]),
        ("‮evil⁦", ["text: |", r"  \u202eevil\u2066"]),
        ("line\u2028sep", ["text: |", r"  line\u2028sep"]),
        ("half \ud83d.", ["text: |", r"  half \ud83d."]),
        # A server cut the text within the emoji; each piece was decoded by itself.
        ("whole \ud83d\ude42.", ["text: |", "  whole 🙂."]),
        ("<script>alert(1)</script>", ["text: |", "  <script>alert(1)</script>"]),
        ("x" * 70, ["text: |  # 70 characters, 10 left out: see Moontap-full"]),
    ],
)
def test_a_text_is_harmless(text: str, shown: list[str]) -> None:
    page = Page(60)
    page.text("text", text)
    assert str(page).splitlines()[: len(shown)] == shown
    assert all(line.isprintable() for line in str(page).split("\n"))


@pytest.mark.parametrize(
    ("fold", "share", "count", "note"),
    [
        (600, 1, 25, "  # 26 lines left out: see Moontap-full"),
        (600, 4, 25, "  # 26 lines left out: see Moontap-full"),
        (90, 1, 25, "  # 139 characters, 49 left out: see Moontap-full"),
        (90, 9, 7, "  # 139 characters, 129 left out: see Moontap-full"),
        (None, 1, 50, ""),
    ],
)
def test_a_text_takes_no_more_lines_than_a_screen_has(
    fold: int | None, share: int, count: int, note: str
) -> None:
    page = Page(fold)
    page.text("text", "\n".join(map(str, range(50))), share=share)
    head, *lines = str(page).splitlines()
    assert head == f"text: |{note}"
    assert len(lines) == count
    assert (lines[0], lines[-1]) == ("  0", "  49")


def test_escapes_do_not_make_a_line_wider() -> None:
    page = Page(None)
    with page.under():
        page.text("text", "\x1b" * 500)
        page.text("text", "你" * 500)
    assert max(len(line) for line in str(page).splitlines()) <= WIDTH


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('{"command":"pwd"}', ['a: {"command": "pwd"}']),
        ("{}", ["a: {}"]),
        ("[ ]", ["a: []"]),
        ('"text"', ['a: "text"']),
        ('{"z":1,"a":{"b":[]},"z":2}', ['a: {"z": 1, "a": {"b": []}, "z": 2}']),
        # Numbers as they stand.
        ('{"n":1e400,"m":1.10,"k":-0}', ['a: {"n": 1e400, "m": 1.10, "k": -0}']),
        ("123456789012345678901234567890", ["a: 123456789012345678901234567890"]),
        ('{"say":"\\u4f60\\u597d"}', ['a: {"say": "你好"}']),
        ('{"say":"你好"}', ['a: {"say": "你好"}']),
        (r'{"\u0041\"":"q\"\\n"}', [r'a: {"A\"": "q\"\\n"}']),
        # What could do harm is an escape of JSON: it can be copied.
        (r'{"e":"\u001b[2J\u202e"}', [r'a: {"e": "\u001b[2J\u202e"}']),
        ('{"e":"\u202e\x7f"}', [r'a: {"e": "\u202e\u007f"}']),
        (r'{"half":"\ud83d"}', ['a: {"half": "\ufffd"}']),
        (
            '{"long":"%s","b":[1,2]}' % ("x" * 55),
            ["a:", "  {", '    "long": "' + "x" * 55 + '",', '    "b": [', "      1,", "      2"],
        ),
        (
            '{"long":"%s"}' % ("s" * 60 + "e" * 20),
            [
                "a:  # folded: see Moontap-full",
                "  {",
                '    "long": "' + "s" * 40 + "[… 20 characters",
                "      …]" + "e" * 20 + '"',
                "  }",
            ],
        ),
        (
            "7" * 90,
            [
                "a:  # folded: see Moontap-full",
                "  " + "7" * 40 + "[… 30 characters",
                "    …]" + "7" * 20,
            ],
        ),
        (
            "",
            ["a: |  # not valid JSON: Expecting value, character 0"],
        ),
        (
            '{"a":1,',
            [
                "a: |",
                "  # not valid JSON: Expecting property name enclosed in double quotes,",
                "  # character 7",
                '  {"a":1,',
            ],
        ),
        ("NaN", ["a: |  # not valid JSON: NaN is not JSON", "  NaN"]),
        ('{"a":1}}', ["a: |  # not valid JSON: Extra data, character 7"]),
        (
            "[" * 200 + "]" * 200,
            ["a: |", "  # nested too deeply to be set out; 400 characters, 340"],
        ),
    ],
)
def test_json_is_set_out(text: str, lines: list[str]) -> None:
    shown = page_of("a", text)
    assert all(line.startswith(want) for line, want in zip(shown, lines, strict=False))
    assert len(shown) >= len(lines)
    assert all(line.isprintable() for line in shown)


@pytest.mark.parametrize("fold", [60, None])
def test_what_is_shown_in_full_is_the_same_json(fold: int | None) -> None:
    text = '{"a":[1,{"b":"\\u0007 你 \\ud83d\\ude42"},[]],"c":null,"d":1e3}'
    lines = page_of("a", text, fold)
    assert json.loads("".join(lines).removeprefix("a:")) == json.loads(text)


def test_long_strings_of_json_are_wrapped_save_in_full() -> None:
    text = json.dumps({"a": {"command": "echo one; " * 30}})
    folded = page_of("arguments", text, 600)
    full = page_of("arguments", text, None)
    assert max(map(len, folded)) <= WIDTH
    assert all(line.startswith("        ") for line in folded[4:-2])
    assert " ".join(line.strip() for line in folded) == " ".join(line.strip() for line in full)


def test_of_many_lines_the_first_are_shown() -> None:
    lines = page_of("a", json.dumps(list(range(1000))))
    assert lines[0] == "a:  # folded: see Moontap-full"
    assert lines[-1] == "  [… 902 lines …]"
    assert len(lines) == 102
    assert len(page_of("a", json.dumps(list(range(1000))), None)) == 1003


def test_a_long_value_in_one_line_is_cut() -> None:
    page = Page()
    page.field("id", "i" * 300, "rewritten")
    full = Page(None)
    full.field("id", "i" * 300)
    cut = "i" * 200 + "…"
    assert str(page) == f"id: {cut}\n  # rewritten\n  # 300 characters: see Moontap-full\n"
    assert str(full) == "id: " + "i" * 300 + "\n"


def test_prose_goes_on_further_in() -> None:
    page = Page()
    page.prose("trouble", "word " * 30)
    lines = str(page).splitlines()
    assert lines[0].startswith("trouble: word word")
    assert all(line.startswith("  word") and len(line) <= WIDTH for line in lines[1:])
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("value", "notes", "lines"),
    [
        ("a", ["b", "c"], ["name: a  # b; c"]),
        ("a" * 64, ["b", "c"], ["name: " + "a" * 64, "  # b", "  # c"]),
        ("word " * 15 + "end", ["b"], ["name: " + "word " * 13, "  word word end  # b"]),
        # An id is looked for as one word.
        ("i" * 90 + " x", [], ["name: " + "i" * 90 + " x"]),
        ("a", ["word " * 20], ["name: a", "  # " + "word " * 13 + "word", "  # " + "word " * 6]),
    ],
)
def test_a_field_is_no_wider_than_the_page(value: str, notes: list[str], lines: list[str]) -> None:
    page = Page()
    page.field("name", value, *notes)
    assert str(page).splitlines() == [line.rstrip() for line in lines]


def test_wide_and_deep_json_fits() -> None:
    deep = '{"a":' * 60 + '"word"' + "}" * 60
    for text in ('{"a": "%s"}' % ("你" * 70), deep):
        assert max(map(columns, page_of("arguments", text, 600))) <= WIDTH


def test_halves_that_do_not_stand_together_stay() -> None:
    assert paired("\ude42\ud83d x \ud83d\ude42") == "\ude42\ud83d x 🙂"


@pytest.mark.parametrize(
    "text",
    [
        "a" * 10_000_000,
        "\x1b" * 10_000_000,
        "你" * 3_000_000,
        "\n" * 10_000_000,
        '{"content":"%s"}' % ("a\\n" * 3_000_000),
        "[" * 1_000_000,
        "[" + "1," * 1_000_000 + "1]",
    ],
    ids=["one line", "escapes", "wide", "empty lines", "a string", "brackets", "numbers"],
)
def test_ten_megabytes_are_folded_at_once(text: str) -> None:
    page = Page()
    begun = time.process_time()
    page.text("text", text)
    page.json("arguments", text)
    assert time.process_time() - begun < 2
    assert len(str(page)) < 40_000
