"""`moontap path`: which script is the right one."""

from __future__ import annotations

from pathlib import Path

import pytest

from moontap import cli
from moontap.commands.path import script_path

ROOT = Path(__file__).resolve().parents[2]


def test_in_a_checkout_it_is_the_checkouts(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["path"]) == 0
    assert capsys.readouterr().out == f"{ROOT / 'addon/main.py'}\n"


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (["main.py"], "main.py"),
        (["moontap/_script/main.py"], "moontap/_script/main.py"),
        # In site-packages a main.py beside the package belongs to somebody else.
        (["main.py", "moontap/_script/main.py"], "moontap/_script/main.py"),
        ([], None),
    ],
)
def test_the_script_of_a_package(files: list[str], found: str | None, tmp_path: Path) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    expected = tmp_path / found if found else None
    assert script_path(tmp_path / "moontap") == expected
