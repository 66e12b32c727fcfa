"""The node walker: values come back checked, complaints name file and line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from moontap import yamlfile
from moontap.yamlfile import Node, YamlError


def root(text: str) -> Node:
    node = yamlfile.parse(text, "f.yaml")
    assert node is not None
    return node


@pytest.mark.parametrize("text", ["", "# nothing\n", "null\n", "---\n"])
def test_a_file_without_a_value_is_none(text: str) -> None:
    assert yamlfile.parse(text, "f.yaml") is None


@pytest.mark.parametrize(
    ("text", "read", "value"),
    [
        ("a: x", lambda n: n.text(), "x"),
        ("a: '12'", lambda n: n.text(), "12"),
        ("a: 12", lambda n: n.integer(), 12),
        ("a: 65_536", lambda n: n.integer(minimum=1), 65536),
        ("a: 0", lambda n: n.integer(minimum=0, maximum=0), 0),
        ("a: 1.5", lambda n: n.number(), 1.5),
        ("a: 2", lambda n: n.number(minimum=0), 2.0),
        ("a: true", lambda n: n.boolean(), True),
        ("a: off", lambda n: n.boolean(), False),
        ("a: warn", lambda n: n.choice(["off", "warn"]), "warn"),
        ("a: [x, y]", lambda n: [item.text() for item in n.items()], ["x", "y"]),
        ("a: {b: x}", lambda n: [*n.members()], ["b"]),
        ("a: {c: x, b: x}", lambda n: [*n.members(needs=["b"])], ["c", "b"]),
        (
            "a: {t: x, i: -7, f: 1.5, b: no, n: , l: [1, {k: []}]}",
            lambda n: n.json(),
            {"t": "x", "i": -7, "f": 1.5, "b": False, "n": None, "l": [1, {"k": []}]},
        ),
        ("a: 18446744073709551615", lambda n: n.json(), 2**64 - 1),
        ("a: [&x {k: v}, *x]", lambda n: n.json(), [{"k": "v"}, {"k": "v"}]),
        ("a: ~", lambda n: n.is_null, True),
        ("x: &x k\na: *x", lambda n: n.text(), "k"),
    ],
)
def test_values(text: str, read: Callable[[Node], object], value: object) -> None:
    assert read(root(text).members()["a"]) == value


@pytest.mark.parametrize(
    ("text", "read", "message"),
    [
        ("\na: 1", lambda n: n.text(), "f.yaml:2: 'a' must be text, is a whole number; put it in"),
        ("a: yes", lambda n: n.text(), "f.yaml:1: 'a' must be text, is true or false; put it in"),
        ("a: [x]", lambda n: n.text(), "f.yaml:1: 'a' must be text, is a list"),
        ("a: !!python/none x", lambda n: n.text(), "is a value tagged tag:yaml.org,2002:python"),
        ("a: x", lambda n: n.integer(), "f.yaml:1: 'a' must be a whole number, is text"),
        ("a: true", lambda n: n.integer(), "must be a whole number, is true or false"),
        ("a: 0x10", lambda n: n.integer(), "is '0x10'; write it in decimal digits"),
        ("a: 010", lambda n: n.integer(), "is '010'; write it in decimal digits"),
        ("a: 1:30", lambda n: n.number(), "is '1:30'; write it in decimal digits"),
        ("a: !!int [1]", lambda n: n.integer(), "is a value tagged tag:yaml.org,2002:int"),
        (f"a: 1{'0' * 18}", lambda n: n.integer(), "'a' is too large; give fewer"),
        (f"a: 1{'0' * 5000}", lambda n: n.json(), "'a' is too large; give fewer"),
        (
            "a: -1",
            lambda n: n.integer(minimum=0),
            "f.yaml:1: 'a' must be at least 0, is -1; give 0 or more",
        ),
        ("a: 9", lambda n: n.integer(maximum=8), "'a' must be at most 8, is 9; give 8 or less"),
        ("a: 9", lambda n: n.integer(1, 8), "'a' must be at most 8, is 9; give 1 to 8"),
        ("a: 0", lambda n: n.integer(1, 8), "'a' must be at least 1, is 0; give 1 to 8"),
        ("a: -0.5", lambda n: n.number(minimum=0), "must be at least 0, is -0.5; give 0 or more"),
        ("a: .inf", lambda n: n.number(), "'a' must be a number, is '.inf'; write a finite one"),
        ("a: !!bool maybe", lambda n: n.boolean(), "must be true or false, is 'maybe'"),
        ("a: 1", lambda n: n.boolean(), "must be true or false, is a whole number"),
        ("a: on fire", lambda n: n.choice(["off", "on"]), "'on fire' is no value for 'a'; known:"),
        (
            "a: wrn",
            lambda n: n.choice(["off", "warn"]),
            "'wrn' is no value for 'a'; known: off, warn; did you mean 'warn'?",
        ),
        ("a: x", lambda n: n.items(), "must be a list, is text; start each"),
        ("a: x", lambda n: n.members(), "must be keys with values, is text; write 'key: value'"),
        ("a: x", lambda n: n.members(["c", "b"]), "be keys with values, is text; known: b, c"),
        ("a:\n  b: 1", lambda n: n.members(needs="bc"), "f.yaml:2: 'a' lacks 'c'; add 'c: …'"),
        ("a:\n  b: 1\n  c: 1\n  b: 2", lambda n: n.members(), "f.yaml:4: key 'b' stands here and"),
        (
            "a:\n  b:\n    c: 1\n  b: 2",
            lambda n: n.members(),
            "f.yaml:4: key 'b' stands here and in line 2; keep one of them",
        ),
        (
            "a:\n  1: x",
            lambda n: n.members(),
            "f.yaml:2: a key under 'a' must be text, is a whole number; put it in",
        ),
        (
            "a:\n- x\n- b: 1\n  d: 2",
            lambda n: n.items()[1].members(["b", "c"]),
            "f.yaml:4: unknown key 'd' under 'a[1]'; known: b, c",
        ),
        (
            "a: {colour: 1}",
            lambda n: n.members(["color", "b"]),
            "unknown key 'colour' under 'a'; known: b, color; did you mean 'color'?",
        ),
        (
            "a:\n- b: 2026-01-01",
            lambda n: n.json(),
            "f.yaml:2: 'a[0].b' must be a JSON value, is a date; put it in single quotes",
        ),
        ("a: [.nan]", lambda n: n.json(), "'a[0]' must be a number, is '.nan'"),
        ("a: {1: x}", lambda n: n.json(), "a key under 'a' must be text"),
        ("a: &x\n  b: [*x]", lambda n: n.json(), "f.yaml:1: 'a.b[0]' is an alias of what it"),
    ],
)
def test_complaints(text: str, read: Callable[[Node], object], message: str) -> None:
    node = root(text).members()["a"]
    with pytest.raises(YamlError) as caught:
        read(node)
    assert message in str(caught.value)
    assert "; " in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [x\nb: y", "f.yaml:2: not valid YAML: "),
        ("a: x\n\tb: y", "f.yaml:2: not valid YAML: "),
        ("a: *gone", "f.yaml:1: not valid YAML: found undefined alias"),
        ("a: x\nb: \x00", "f.yaml:2: not valid YAML: a control character"),
        ("a: x\n---\nb: y", "f.yaml:3: a second document begins here"),
        ("[" * 2000, "nested too deeply"),
    ],
)
def test_what_is_not_yaml(text: str, message: str) -> None:
    with pytest.raises(YamlError) as caught:
        yamlfile.parse(text, "f.yaml")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"a: \xe4")
    for path, message in (
        (tmp_path / "none.yaml", "cannot be read: No such file"),
        (tmp_path, "cannot be read: Is a directory"),
        (latin, "is not UTF-8 text"),
    ):
        with pytest.raises(YamlError) as caught:
            yamlfile.load(str(path))
        assert str(caught.value).startswith(f"{path}: {message}")
