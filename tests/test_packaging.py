"""What `pip install` brings: the wheel is built from the checkout and looked into."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def test_every_file_of_the_package_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    package = ROOT / "addon/moontap"
    files = {
        f"moontap/{path.relative_to(package).as_posix()}"
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "moontap/py.typed" in files
    assert files - set(wheel.namelist()) == set()


def test_the_script_for_mitmdump_has_a_folder_to_itself(wheel: zipfile.ZipFile) -> None:
    inside = [name for name in wheel.namelist() if name.startswith("moontap/_script/")]
    assert inside == ["moontap/_script/main.py"]
    assert wheel.read(inside[0]) == (ROOT / "addon/main.py").read_bytes()


def test_nothing_but_the_package_is_installed(wheel: zipfile.ZipFile) -> None:
    assert {name.split("/")[0].split("-")[0] for name in wheel.namelist()} == {"moontap"}
