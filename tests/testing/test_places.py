from __future__ import annotations

from pathlib import Path

import pytest

from moontap.testing.places import Places

NODE = "tests/test_a.py::test_it"


@pytest.fixture
def places(tmp_path: Path) -> Places:
    for folder in ("marked", "configured", "tests", "captures"):
        (tmp_path / folder).mkdir()
    return Places((tmp_path / "marked",), (tmp_path / "configured",), tmp_path / "tests", tmp_path)


@pytest.mark.parametrize(
    ("there", "found"),
    [
        (("marked", "configured", "tests", "."), "marked"),
        (("configured", "tests", "."), "configured"),
        (("tests", "."), "tests"),
        ((".",), "."),
    ],
)
def test_the_nearest_place_counts(
    there: tuple[str, ...], found: str, places: Places, tmp_path: Path
) -> None:
    for folder in there:
        (tmp_path / folder / "x.flow").touch()
    assert places.find(Path("x.flow"), NODE) == tmp_path / found / "x.flow"
    assert places.new(Path("x.flow")) == tmp_path / found / "x.flow"


def test_a_folder_and_an_absolute_path(places: Places, tmp_path: Path) -> None:
    (tmp_path / "captures" / "run").mkdir()
    assert places.find(Path("captures/run"), NODE) == tmp_path / "captures/run"
    path = tmp_path / "else.flow"
    path.touch()
    assert places.find(path, NODE) == path


def test_what_is_not_there_says_where_it_was_looked_for(places: Places, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as error:
        places.find(Path("x.flow"), NODE)
    assert str(error.value).splitlines() == [
        "there is no flow 'x.flow'; looked at",
        "  marked/x.flow",
        "  configured/x.flow",
        "  tests/x.flow",
        "  x.flow",
        "record one, with a key in the environment:",
        "  pytest --moontap-record 'tests/test_a.py::test_it'",
        "or take it from a capture:",
        "  moontap scrub moontap-captures/RUN/traffic.flow marked/x.flow",
    ]


@pytest.mark.parametrize(
    ("name", "new"),
    [
        ("x.flow", "marked/x.flow"),
        ("captures/x.flow", "captures/x.flow"),  # the only one whose folder is there
        ("no/such/x.flow", "marked/no/such/x.flow"),
    ],
)
def test_where_a_new_one_goes(name: str, new: str, places: Places, tmp_path: Path) -> None:
    assert places.new(Path(name)) == tmp_path / new
