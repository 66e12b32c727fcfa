"""`moontap cut`: from a capture to the few exchanges that show a fault."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from mitmproxy.addons.savehar import SaveHar
from mitmproxy.io import FlowReader

from moontap import cli
from moontap.capture.reader import FlowFile
from tests.cli.commands import KEY, Moontap
from tests.saved import conversation, exchange, record, write

LOST = conversation(["pwd", "ls", "date"], lost=frozenset({1}))
FINE = conversation(["make", "test"], first=10, session="s-22", id_="Bash_{}")
OTHER = conversation(["id"], first=20, session="s-3", id_="toolu_{}")
MODELS = exchange(b"", b"{}", number=5, path="/v1/models", session=None)
FLOWS = [*LOST[:2], MODELS, *FINE, *LOST[2:], *OTHER]


def ids(path: Path) -> list[str]:
    return [flow.id for flow in FlowFile(path)]


def run(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, list[str], list[str]]:
    code = cli.main(["cut", *map(str, arguments)])
    out, err = capfd.readouterr()
    return code, out.splitlines(), err.splitlines()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "big.flow", FLOWS)


def test_around_a_call(file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "folder" / "small.flow"
    code, said, err = run(capfd, file, "--around", "Bash_0", "--out", out)
    assert code == 0
    assert err == [
        "moontap cut: Bash_0 stands for 4 pairs; this is about the first of 2 that went wrong"
    ]
    assert said[0].startswith("2 of 10 exchanges, ")
    assert said[0].endswith(f" KB, in {out}")
    assert said[1] == 'it shows: Bash_0 (used before), Bash {"command":"ls"}: unanswered'
    assert said[2].startswith("secrets in it are as they were; next: ")
    assert said[2].endswith(f"moontap scrub {out} SCRUBBED")
    assert out.read_bytes() == record(LOST[1]) + record(LOST[2])
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert [path.name for path in out.parent.iterdir()] == ["small.flow"]
    with out.open("rb") as opened:
        assert len(list(FlowReader(opened).stream())) == 2


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        (["--around", "Bash_1"], FINE[1:]),
        (["--around", FINE[0].id], FINE[:2]),
        (["--around", MODELS.id], [MODELS]),
        (["--session", "s-1"], LOST),
        (["--session", "s-22"], FINE),
        (["--session", "s-2"], FINE),
        (["--flows", "3"], [MODELS]),
        (["--flows", f"10, {LOST[0].id},2"], [LOST[0], LOST[1], OTHER[1]]),
        (["--flows", "0012"], FINE[2:]),
        (["--flows", f"{LOST[1].id}", "--playable"], LOST[:2]),
        (["--around", "toolu_0", "--playable"], [MODELS, *OTHER]),
        (["--around", "Bash_0", "--playable"], [*LOST[:2], MODELS, LOST[2]]),
        (["--session", "s-3", "--playable"], [MODELS, *OTHER]),
    ],
)
def test_what_is_kept(
    file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], asked: list[str], kept: list[Any]
) -> None:
    code, said, _ = run(capfd, file, *asked, "--out", tmp_path / "out.flow")
    assert code == 0
    assert ids(tmp_path / "out.flow") == [flow.id for flow in kept]
    assert said[0].startswith(f"{len(kept)} of 10 exchanges")


def test_what_it_shows_is_read_from_the_new_file(
    file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _, said, _ = run(capfd, file, "--session", "s-1", "--out", tmp_path / "a.flow")
    assert said[1] == "it shows: 3 pairs: 2 ok, 1 unanswered; 2 with an id used before"
    _, said, _ = run(capfd, file, "--flows", "3", "--out", tmp_path / "b.flow")
    assert said[1].startswith("it shows: no pairs: none of 1 exchange is with a model")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            ["--around", "Nope_7"],
            "no tool call or flow has the id Nope_7; calls are: Bash_0, Bash_",
        ),
        (["--session", "x"], "no session is named x; there are: s-1, s-22, s-3"),
        (["--flows", "1,zz"], "no exchange is zz; there are 10: 0000-s-1, 0001-s-1, 0005-none"),
        (["--flows", "11"], "no exchange is 11; there are 10"),
    ],
)
def test_nothing_found(
    file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], asked: list[str], said: str
) -> None:
    code, out, err = run(capfd, file, *asked, "--out", tmp_path / "new" / "a.flow")
    assert (code, out) == (1, [])
    assert err[0].startswith(f"moontap cut: {said}")
    assert len(err) == 1
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--session", "s-"], "--session: s- begins the names of several: s-1, s-22, s-3"),
        (["--flows", "00"], "--flows: 00 stands for 10 exchanges: give more of it"),
        (["--flows", " , "], "--flows: name some"),
        (["--around", "a", "--session", "b"], "not allowed with argument"),
        ([], "one of the arguments --session --flows --around is required"),
        (["--around", "Bash_0", "--rules", "none.yaml"], "--rules: none.yaml"),
    ],
)
def test_wrong_usage(moontap_command: Moontap, arguments: list[str], said: str) -> None:
    write(moontap_command.folder / "big.flow", FLOWS)
    done = moontap_command.run("cut", "big.flow", *arguments, "--out", "out.flow")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (moontap_command.folder / "out.flow").exists()


def test_what_cannot_be_made_sense_of_is_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "odd.flow", [*OTHER, exchange(b"no JSON", b"", session=None)])
    code, _, err = run(capfd, file, "--session", "s-3", "--out", tmp_path / "out.flow")
    assert (code, len(err)) == (2, 1)
    assert "odd.flow: not read: POST /anthropic/v1/messages: not a Messages request" in err[0]
    assert ids(tmp_path / "out.flow") == [flow.id for flow in OTHER]


def test_no_file_is_replaced_unless_asked(
    file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.flow"
    out.write_text("mine")
    code, _, err = run(capfd, file, "--session", "s-3", "--out", out)
    assert (code, err) == (2, [f"moontap cut: --out: {out} exists: --force replaces it"])
    assert out.read_text() == "mine"
    assert run(capfd, file, "--session", "s-3", "--out", out, "--force")[0] == 0
    assert ids(out) == [flow.id for flow in OTHER]
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    # Not the evidence itself: what is cut out of it holds less.
    before = file.read_bytes()
    code, _, err = run(capfd, file, "--session", "s-3", "--out", file, "--force")
    assert (code, err) == (
        2,
        [f"moontap cut: --out: {file} is an input: name another file to write"],
    )
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("out", "said"),
    [
        (".", "is a folder: name a file in it"),
        ("big.flow/x", "big.flow is a file: name a folder for it"),
    ],
)
def test_where_it_cannot_write(
    file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], out: str, said: str
) -> None:
    code, _, err = run(capfd, file, "--session", "s-3", "--out", tmp_path / out)
    assert code == 2
    assert said in err[0]
    assert [path.name for path in tmp_path.iterdir()] == ["big.flow"]


def test_a_damaged_file_is_cut_all_the_same(
    file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with file.open("ab") as more:
        more.write(record(LOST[0])[:-9])
    code, said, err = run(capfd, file, "--session", "s-1", "--out", tmp_path / "a.flow")
    assert code == 2
    assert said[0].startswith("4 of 10 exchanges")
    assert "left out 1 damaged record" in err[0]
    assert ids(tmp_path / "a.flow") == [flow.id for flow in LOST]


def test_a_folder_of_captures(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name, flows in (("run-1", FINE), ("run-2", LOST), ("run-3", LOST + OTHER)):
        (tmp_path / "captures" / name).mkdir(parents=True)
        write(tmp_path / "captures" / name / "traffic.flow", flows)
    folder, out = tmp_path / "captures", tmp_path / "a.flow"
    assert run(capfd, folder, "--around", "Bash_0", "--out", out)[0] == 0
    assert ids(out) == [LOST[1].id, LOST[2].id]
    assert run(capfd, folder, "--session", "s-3", "--out", out, "--force")[0] == 0
    assert ids(out) == [flow.id for flow in OTHER]
    code, _, err = run(capfd, folder, "--flows", "1", "--out", out, "--force")
    assert (code, err) == (2, ["moontap cut: --flows: 1 of which of 3 files? Give a flow id"])


def test_a_har_file_becomes_a_flow_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    SaveHar().export_har(FLOWS, str(tmp_path / "a.har"))
    code, said, _ = run(
        capfd, tmp_path / "a.har", "--around", "Bash_0", "--out", tmp_path / "a.flow"
    )
    assert code == 0
    assert said[1] == 'it shows: Bash_0 (used before), Bash {"command":"ls"}: unanswered'
    assert ids(tmp_path / "a.flow") == ["har-2", "har-7"]


def test_it_keeps_the_flow_and_shows_no_key(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    flows = conversation([f"echo {KEY}"], authorization=f"Bearer {KEY}")
    flows[0].metadata["mine"] = [1, {"a": b"\0"}]
    flows[0].comment = "look"
    code, said, err = run(
        capfd,
        write(tmp_path / "a.flow", flows),
        *("--around", "Bash_0", "--out", tmp_path / "b.flow"),
    )
    assert code == 0
    assert KEY[:12] not in "".join(said + err)
    # cut takes nothing out: that is for scrub, and is said.
    assert (tmp_path / "b.flow").read_bytes() == (tmp_path / "a.flow").read_bytes()
