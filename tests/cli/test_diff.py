"""`moontap diff`: where two captures of the same task part."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mitmproxy import http
from mitmproxy.addons.savehar import SaveHar

from moontap import cli
from tests.cli.commands import KEY, Moontap
from tests.saved import conversation, exchange, record, write

COMMANDS = ["pwd", "make", "date"]
ONE = conversation(COMMANDS)
IDS = conversation(COMMANDS, id_="toolu_{}", session="s-9")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(
    capfd: pytest.CaptureFixture[str],
    a: list[http.HTTPFlow],
    b: list[http.HTTPFlow],
    *more: str,
) -> tuple[int, str, str]:
    write(Path("a.flow"), a)
    write(Path("b.flow"), b)
    code = cli.main(["diff", "a.flow", "b.flow", *more])
    out, err = capfd.readouterr()
    return code, out, err


pytestmark = pytest.mark.usefixtures("folder")


def test_the_same(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(capfd, ONE, ONE) == (0, "the same; 3 calls side by side\n", "")
    # Ids and sessions are other ones in each run.
    code, out, err = run(capfd, ONE, IDS)
    assert (code, err) == (0, "")
    assert out == (
        "the same; 3 calls side by side; ids differ in 3 of them (--ids compares them)\n"
    )


def test_ids_where_asked_for(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capfd, ONE, IDS, "--ids")
    assert code == 1
    assert out.startswith('they part at call 1, Bash {"command":"pwd"}: A Bash_0 · B toolu_0\n')
    assert "other id (3)" in out
    assert out.endswith("different: 3 other id; 3 calls side by side\n")


@pytest.mark.parametrize(
    ("other", "first", "kinds"),
    [
        (
            conversation(["pwd", "ls", "date"]),
            'they part at call 2: A Bash {"command":"make"} · B Bash {"command":"ls"}',
            "1 other arguments",
        ),
        (
            conversation(["pwd"]),
            'they part at call 2: A Bash {"command":"make"} · B has no more calls',
            "2 only in A",
        ),
        (
            conversation([*COMMANDS, "id", "env"]),
            'they part at call 4: A has no more calls · B Bash {"command":"id"}',
            "2 only in B",
        ),
        (
            conversation(["pwd", "id", *COMMANDS[1:]]),
            'they part at call 2: A Bash {"command":"make"} · B Bash {"command":"id"}',
            "1 only in B",
        ),
        (
            conversation(COMMANDS, results={2: "late"}),
            'they part at call 3, Bash {"command":"date"}: A "did date" · B "late"',
            "1 other result",
        ),
        (
            conversation(COMMANDS, lost=frozenset({1})),
            'they part at call 2, Bash {"command":"make"}: A ok · B unanswered',
            "1 other status",
        ),
    ],
)
def test_where_they_part(
    capfd: pytest.CaptureFixture[str], other: list[http.HTTPFlow], first: str, kinds: str
) -> None:
    code, out, err = run(capfd, ONE, other)
    assert (code, err) == (1, "")
    assert out.splitlines()[0] == first
    assert out.splitlines()[-1].startswith(f"different: {kinds}; ")


def test_the_whole_report(capfd: pytest.CaptureFixture[str]) -> None:
    long = "x" * 500
    a = conversation(["pwd", "make all", "date"], results={0: long + "1" + long, 2: "monday"})
    b = conversation(["pwd", "make test", "date", "id"], results={0: long + "2", 2: "friday"})
    code, out, _ = run(capfd, a, b)
    assert code == 1
    assert out == (
        'they part at call 1, Bash {"command":"pwd"}: '
        f'A "…{"x" * 15}1{"x" * 43}…" · B "…{"x" * 15}2"\n'
        "\n"
        "only in B (1)\n"
        '  call 4  Bash {"command":"id"}: ok\n'
        "\n"
        "other arguments (1)\n"
        '  call 2  Bash: command: A "make all" · B "make test"\n'
        "\n"
        "other result (2)\n"
        f'  call 1  Bash {{"command":"pwd"}}: A "…{"x" * 15}1{"x" * 43}…" · '
        f'B "…{"x" * 15}2"\n'
        '  call 3  Bash {"command":"date"}: A "monday" · B "friday"\n'
        "\n"
        "different: 1 only in B, 1 other arguments, 2 other result; 3 calls side by side\n"
    )


def test_a_long_list_is_cut(capfd: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capfd, ONE, conversation([*COMMANDS, *["ls"] * 30]))
    assert "only in B (30)" in out
    assert out.count('Bash {"command":"ls"}: ok') == 20
    assert "  and 10 more\n" in out


def test_conversations_are_told_apart(capfd: pytest.CaptureFixture[str]) -> None:
    a = [*ONE, *conversation(["ls", "id"], agent="a-1", first=10)]
    b = [*IDS, *conversation(["ls", "env"], agent="b-7", first=10)]
    code, out, _ = run(capfd, a, b)
    assert code == 1
    name = "session s-1 agent a-1 / session s-1 agent b-7"
    assert out.splitlines()[0] == (
        f'they part at call 2 of {name}: A Bash {{"command":"id"}} · B Bash {{"command":"env"}}'
    )
    assert f"\n{name}:\n" in out
    assert "in 2 conversations" in out


def test_lines_of_json(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capfd, ONE, conversation(["pwd", "ls", "date", "id"]), "--jsonl")
    assert code == 1
    found: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines()]
    # That `ls` gave another result than `make` is not said as well.
    assert [(one["kind"], one["a_call"], one["b_call"]) for one in found] == [
        ("other arguments", 2, 2),
        ("only in B", None, 4),
    ]
    assert found[0]["a"]["arguments"] == {"command": "make"}
    assert found[1]["a"] is None
    assert run(capfd, ONE, ONE, "--jsonl") == (0, "", "")


def test_damage_is_2_whatever_differs(capfd: pytest.CaptureFixture[str]) -> None:
    write(Path("a.flow"), ONE)
    Path("b.flow").write_bytes(Path("a.flow").read_bytes() + record(ONE[0])[:-1])
    assert cli.main(["diff", "a.flow", "b.flow"]) == 2
    out, err = capfd.readouterr()
    assert out == "the same; 3 calls side by side\n"
    assert "b.flow: left out 1 damaged record" in err


def test_a_side_without_pairs_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capfd, ONE, conversation([]))
    assert code == 1
    assert "different: 3 only in A; 0 calls side by side" in out
    assert err == "moontap diff: b.flow: no pairs: no tool was called in 1 exchange with a model\n"


def test_folders_and_har_files(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run_ = folder / "run"
    run_.mkdir()
    write(run_ / "traffic.flow", ONE)
    SaveHar().export_har(ONE, "a.har")
    assert cli.main(["diff", "run", "a.har"]) == 0
    assert capfd.readouterr().out == "the same; 3 calls side by side\n"


def test_what_cannot_be_made_sense_of_is_2(capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capfd, ONE, [*ONE, exchange(b"no JSON", b"")])
    assert code == 2
    assert "b.flow: not read: POST /anthropic/v1/messages: not a Messages request" in err


def test_neither_keys_nor_control_characters_are_shown(capfd: pytest.CaptureFixture[str]) -> None:
    token = "made-up-token-of-no-known-shape-42"
    a = conversation([f"echo {KEY}"], results={0: "\x1b[2J"}, authorization=f"Bearer {token}")
    b = conversation([f"echo {token}"], results={0: KEY}, authorization=f"Bearer {token}")
    for form in ([], ["--jsonl"], ["--ids"]):
        code, out, err = run(capfd, a, b, *form)
        assert code == 1
        for secret in (KEY[:12], token[:12], "\x1b"):
            assert secret not in out + err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a.flow"], "the following arguments are required: B"),
        (["a.flow", "none"], "moontap diff: none: no such file or folder"),
        (["notes.txt", "a.flow"], "moontap diff: notes.txt is not a flow file"),
        (["a.flow", "a.flow", "--rules", "x.yaml"], "moontap diff: --rules: x.yaml"),
    ],
)
def test_wrong_usage(moontap_command: Moontap, arguments: list[str], said: str) -> None:
    write(moontap_command.folder / "a.flow", ONE)
    (moontap_command.folder / "notes.txt").write_text("hello")
    done = moontap_command.run("diff", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
