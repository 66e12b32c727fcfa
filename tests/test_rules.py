"""The rules file: what it may say, and the line that says what is wrong with it."""

from pathlib import Path

import pytest

from moontap.jsonpaths import compile_path
from moontap.rules import Rules, RulesError, load_rules
from moontap.rules.limits import RESULT_BYTES


def write(folder: Path, text: str) -> str:
    path = folder / "rules.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("path", [None, ""])
def test_no_file_is_the_defaults(path: str | None) -> None:
    assert load_rules(path) == Rules()
    assert load_rules(path).limits.result_bytes == RESULT_BYTES


@pytest.mark.parametrize("text", ["", "redact:\n", "limits: {}\n", "redact: {headers: }\n"])
def test_what_is_left_out_is_the_defaults(tmp_path: Path, text: str) -> None:
    assert load_rules(write(tmp_path, text)) == Rules()


def test_everything(tmp_path: Path) -> None:
    rules = load_rules(
        write(
            tmp_path,
            "redact:\n"
            "  headers: [X-Team-Token]\n"
            "  patterns:\n"
            "    - 'password=\\S+'\n"
            "  json_paths: [$..password, '$.a[?@.secret == true]']\n"
            "limits: {result_bytes: 0}\n",
        )
    )
    assert rules.redact.headers == ("x-team-token",)
    assert [pattern.pattern for pattern in rules.redact.patterns] == [r"password=\S+"]
    assert [path.source for path in rules.redact.json_paths] == [
        "$..password",
        "$.a[?@.secret == true]",
    ]
    assert rules.limits.result_bytes == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "redact:\n  headers: []\n\n  pattern: []\n",
            ":4: unknown key 'pattern' under 'redact'; known: headers, json_paths, patterns",
        ),
        ("x: 1\n", ":1: unknown key 'x' at the top; known: findings, guard, limits, progress"),
        ("limits:\n  result_byte: 1\n", ":2: unknown key 'result_byte' under 'limits'; known: "),
        ("redact: {}\nredact: {}\n", ":2: key 'redact' stands here and in line 1; keep one"),
        ("- redact\n", ":1: the file must be keys with values, is a list"),
        ("redact: [x]\n", ":1: 'redact' must be keys with values, is a list"),
        ("redact:\n  headers: X-A\n", ":2: 'redact.headers' must be a list, is text"),
        ("redact:\n  headers:\n  - 'X-A: b'\n", ":3: 'X-A: b' is not a header name; write"),
        ("redact:\n  patterns:\n  - [a-z]+\n", ":3: not valid YAML: "),
        ("redact:\n  patterns:\n  - [a-z]\n", ":3: 'redact.patterns[0]' must be text, is a list"),
        ("redact:\n  patterns:\n  - ok\n  - 'a('\n", ":4: 'a(' is not a regular expression: "),
        ("redact:\n  patterns: ['\\d*']\n", ":2: '\\d*' also matches nothing at all; make it"),
        ("redact:\n  json_paths: [password]\n", ":2: 'password' is not a JSON path: a path starts"),
        ("redact:\n  json_paths: ['$..']\n", ":2: '$..' is not a JSON path: "),
        ("redact:\n  json_paths: ['']\n", ":2: '' is not a JSON path: "),
        ("redact:\n  json_paths: ['$.a | $.b']\n", ":2: '$.a | $.b' is not a JSON path: "),
        ("limits: {result_bytes: -1}\n", ":1: 'limits.result_bytes' must be at least 0, is -1"),
        ("limits: {result_bytes: 64k}\n", ":1: 'limits.result_bytes' must be a whole number, is"),
        ("limits: {result_bytes: true}\n", ":1: 'limits.result_bytes' must be a whole number, is"),
        ("redact:\n\tx: y\n", ":2: not valid YAML: "),
    ],
)
def test_mistakes_name_the_line(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(RulesError) as caught:
        load_rules(path)
    assert str(caught.value).startswith(path + message)
    assert "\n" not in str(caught.value)


def test_what_is_scrubbed(tmp_path: Path) -> None:
    text = "  names: [' Alice ', 4 Seasons]\n  paths: [/home/alice, 'C:\\Users\\al']\n"
    more = "  texts: ['PO-\\d+']\n  json_paths: [$..customer]\n"
    scrub = load_rules(write(tmp_path, f"scrub:\n{text}{more}")).scrub
    assert scrub.names == ("Alice", "4 Seasons")
    assert scrub.paths == ("/home/alice", "C:\\Users\\al")
    assert [pattern.pattern for pattern in scrub.texts] == [r"PO-\d+"]
    assert [path.source for path in scrub.json_paths] == ["$..customer"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("names: ['--']", ":1: 'scrub.names[0]' holds no letter and no digit; write what is"),
        ("names: ['']", ":1: 'scrub.names[0]' holds no letter and no digit; write what is"),
        ("names: [4711]", ":1: 'scrub.names[0]' must be text, is a whole number"),
        ("paths: [/]", ":1: 'scrub.paths[0]' holds no letter and no digit; write what is"),
        ("paths: [alice]", ":1: 'alice' is not the beginning of a path, like /home/me; write it"),
        ("texts: ['a(']", ":1: 'a(' is not a regular expression: "),
        ("json_paths: [customer]", ":1: 'customer' is not a JSON path: a path starts"),
        ("name: [x]", ":1: unknown key 'name' under 'scrub'; known: json_paths, names, paths, te"),
    ],
)
def test_mistakes_in_what_is_scrubbed(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, f"scrub: {{{text}}}\n")
    with pytest.raises(RulesError) as caught:
        load_rules(path)
    assert str(caught.value).startswith(path + message)


def test_an_unreadable_file(tmp_path: Path) -> None:
    with pytest.raises(RulesError, match="cannot be read"):
        load_rules(str(tmp_path / "none.yaml"))


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("$..password", ("password",)),
        ("$.messages[0]['a b'].key", ("messages", "key")),
        ("$['a','b']", ()),
        ("$.*", ()),
        ("$.k\u00e4se.x", ("x",)),
    ],
)
def test_names_without_which_a_path_selects_nothing(path: str, names: tuple[str, ...]) -> None:
    assert compile_path(path).names == names
