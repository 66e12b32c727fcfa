"""`moontap rules`: is a rules file right, and what is in force."""

from __future__ import annotations

from pathlib import Path

import pytest

from moontap import cli


@pytest.mark.parametrize(
    ("text", "given", "code", "out", "err"),
    [
        (None, [], 0, "  thresholds: [3, 5, 8, 12]  # default\n", ""),
        (None, ["--explain"], 0, "  result_bytes: 65536  # default\n", ""),
        (
            "guard: {block: 5}\n",
            ["FILE"],
            0,
            "rules.yaml: nothing is wrong in it; it has guard\n",
            "",
        ),
        ("guard: {classes: {pay: 2}}", ["FILE"], 0, "wrong in it, but look at this; it has gu", ""),
        ("tools: {pya: [charge]}", ["FILE"], 0, "\nrules.yaml:1: the class 'pya' has no l", ""),
        ("", ["FILE"], 0, "rules.yaml: no rules in it, so the defaults hold\n", ""),
        ("guard: {block: 5}\n", ["FILE", "--explain"], 0, "  block: 5  # rules.yaml:1\n", ""),
        ("guard: {block: 5}\n", ["--explain", "FILE"], 0, "  remind: [3, 5, 8]  # default\n", ""),
        ("redact: {patterns: ['sk-x']}", ["FILE", "--explain"], 0, "    - sk-x  # rules", ""),
        ("\nguard: 5\n", ["FILE"], 2, "", "moontap rules: rules.yaml:2: 'guard' must be keys with"),
        ("x: 1\n", ["FILE", "--explain"], 2, "", "moontap rules: rules.yaml:1: unknown key 'x'"),
        ("\x1b: 1\n", ["FILE"], 2, "", "moontap rules: rules.yaml:1: not valid YAML"),
        (None, ["FILE"], 2, "", "moontap rules: rules.yaml: cannot be read: No such file"),
    ],
)
def test_a_file_or_none(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str | None,
    given: list[str],
    code: int,
    out: str,
    err: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    if text is not None:
        Path("rules.yaml").write_text(text)
    arguments = ["rules.yaml" if one == "FILE" else one for one in given]
    assert cli.main(["rules", *arguments]) == code
    said = capsys.readouterr()
    assert out in said.out
    assert said.err.startswith(err)
    assert said.err.count("\n") == (code == 2)
    assert bool(said.out) == (code == 0)


def test_one_file_at_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["rules", "a.yaml", "b.yaml"])
    assert ended.value.code == 2
    assert "b.yaml" in capsys.readouterr().err
