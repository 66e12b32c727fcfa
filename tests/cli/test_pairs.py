"""`moontap pairs`: the log made anew from whatever holds flows."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mitmproxy import http
from mitmproxy.addons.savehar import SaveHar
from mitmproxy.test import tflow

from moontap import cli
from moontap.capture.recorder import Recorder
from moontap.rules import load_rules
from tests.cli.commands import COMMAND, KEY, Moontap
from tests.samples import CHAT, chat_events, chat_request, messages_events, messages_request
from tests.saved import conversation, exchange, record, write

MAIN = conversation(["pwd", "ls", "date"], lost=frozenset({1}), results={0: "x" * 70_000})
SUB = conversation(["make"], first=10, session="s-2", agent="a-1", id_="Bash_{}")
CHATTED = [
    exchange(chat_request(), b"".join(chat_events("Bash:0")), number=20, path=CHAT, session="t-1"),
    exchange(
        chat_request([("Bash:0", "pwd", "/w")]),
        b"".join(chat_events()),
        number=21,
        path=CHAT,
        session="t-1",
    ),
]
FLOWS = [*MAIN, *SUB, *CHATTED, tflow.tflow(resp=True)]
STATUSES = ["ok", "unanswered", "ok", "ok", "ok"]


def capture(folder: Path, flows: list[http.HTTPFlow], rules: str | None = None) -> Path:
    """What the tap saves of these."""
    recorder = Recorder(folder, load_rules(rules), dict)
    for flow in flows:
        recorder.keep(flow.copy())
        recorder.log()
    recorder.close()
    assert recorder.path
    return recorder.path


def run(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = cli.main(["pairs", *map(str, arguments)])
    out, err = capfd.readouterr()
    return code, out, err


def lines(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_a_capture_gives_its_own_log(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    made = capture(tmp_path, FLOWS)
    logged = (made / "pairs.jsonl").read_text()
    assert [line["status"] for line in lines(logged)] == STATUSES
    assert "result_truncated" in logged
    (made / "pairs.jsonl").unlink()
    for path in (made, made / "traffic.flow", tmp_path):
        assert run(capfd, path, "--jsonl") == (0, logged, "")


def test_the_rules_of_the_run_give_its_own_log(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("limits:\n  result_bytes: 3\nredact:\n  patterns: ['did \\w+']\n")
    made = capture(tmp_path / "runs", FLOWS, str(rules))
    code, out, _ = run(capfd, made, "--jsonl", "--rules", rules)
    assert (code, out) == (0, (made / "pairs.jsonl").read_text())
    assert "did" not in out


def test_a_har_export_gives_the_same_pairs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run(capfd, write(tmp_path / "a.flow", FLOWS), "--jsonl")
    path = tmp_path / "a.har"
    SaveHar().export_har(FLOWS, str(path))
    code, exported, err = run(capfd, path, "--jsonl")
    assert (code, err) == (0, "")
    ids = {flow.id: f"har-{number}" for number, flow in enumerate(FLOWS, 1)}
    expected = lines(out)
    for line in expected:
        line["call_flow"] = ids[line["call_flow"]]
        line["result_flow"] = ids.get(line["result_flow"])
    found = lines(exported)
    for line in (*found, *expected):  # an export rounds what it times
        assert line.pop("called_at")
        line.pop("latency_s")
    assert found == expected
    assert len(found) == 5


def test_a_table_for_each_session(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capfd, write(tmp_path / "a.flow", FLOWS))
    assert (code, err) == (0, "")
    titles = [line.strip() for line in out.splitlines() if line.startswith("session ")]
    assert titles == ["session s-1", "session s-2", "session t-1"]
    rows = [[cell.strip() for cell in line.split("│")] for line in out.splitlines() if "│" in line]
    assert [(row[2], row[5], row[7]) for row in rows] == [
        ("Bash", "Bash_0", "ok"),
        ("Bash", "Bash_0 *", "unanswered"),
        ("Bash", "Bash_0 *", "ok"),
        ("Bash", "Bash_0", "ok"),
        ("Bash", "Bash:0", "ok"),
    ]
    assert out.splitlines()[-1] == "5 pairs: 4 ok, 1 unanswered; 2 with an id used before (*)"


@pytest.mark.parametrize(
    ("asked", "commands"),
    [
        (["--status", "unanswered"], ["ls"]),
        (["--status", "unanswered", "--status", "error"], ["ls"]),
        (["--session", "s-2"], ["make"]),
        (["--session", "s"], ["pwd", "ls", "date", "make"]),
        (["--tool", "Bash", "--session", "t"], ["pwd"]),
        (["--tool", "Read", "--tool", "Bash", "--status", "unanswered"], ["ls"]),
    ],
)
def test_only_what_is_asked_for(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], asked: list[str], commands: list[str]
) -> None:
    code, out, _ = run(capfd, write(tmp_path / "a.flow", FLOWS), "--jsonl", *asked)
    assert code == 0
    assert [line["arguments"]["command"] for line in lines(out)] == commands


def test_several_files_are_told_apart(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    paths = [write(tmp_path / name, flows) for name, flows in (("a.flow", MAIN), ("b.flow", SUB))]
    code, out, err = run(capfd, *paths)
    assert (code, err) == (0, "")
    assert [line.strip() for line in out.splitlines() if "session" in line] == [
        f"{paths[0]}, session s-1",
        f"{paths[1]}, session s-2",
    ]
    assert f"{paths[1]}: 1 pair: 1 ok" in out
    code, out, err = run(capfd, *paths, "--jsonl")
    assert len(lines(out)) == 4
    assert err.splitlines() == [
        f"moontap pairs: {paths[0]}: 3 pairs: 2 ok, 1 unanswered; 2 with an id used before",
        f"moontap pairs: {paths[1]}: 1 pair: 1 ok",
    ]


def test_each_file_is_a_log_of_its_own(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    # In one log the second file's requests would be taken for a retry, and logged no more.
    path = write(tmp_path / "a.flow", MAIN)
    again = write(tmp_path / "b.flow", MAIN)
    _, out, _ = run(capfd, path, "--jsonl")
    _, twice, _ = run(capfd, path, again, "--jsonl")
    assert twice == out * 2


MODELS = exchange(b"", b"{}", path="/v1/models", kind="application/json")
TALK = exchange(messages_request(), b"".join(messages_events()))


@pytest.mark.parametrize(
    ("flows", "asked", "why"),
    [
        ([], [], "no pairs: there is no HTTP exchange in it"),
        ([tflow.ttcpflow()], [], "no pairs: there is no HTTP exchange in it"),
        ([MODELS], [], "no pairs: none of 1 exchange is with a model in a protocol that is paired"),
        ([TALK], [], "no pairs: no tool was called in 1 exchange with a model"),
        (SUB, ["--tool", "Read"], "none of 1 pair is what was asked for; there are the sessions "),
        (SUB, ["--session", "x"], "s-2 and the tools Bash"),
    ],
)
@pytest.mark.parametrize("form", [[], ["--jsonl"]], ids=["table", "jsonl"])
def test_no_pairs_and_why(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    flows: list[Any],
    asked: list[str],
    why: str,
    form: list[str],
) -> None:
    code, out, err = run(capfd, write(tmp_path / "a.flow", flows), *asked, *form)
    assert (code, out) == (0, "")
    assert why in err
    assert err.count("\n") == 1


def test_none_in_any_of_several_files_is_said_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    paths = [write(tmp_path / name, SUB) for name in ("a.flow", "b.flow")]
    code, out, err = run(capfd, *paths, "--tool", "Read")
    assert (code, out) == (0, "")
    assert err.startswith("moontap pairs: none of 2 pairs in 2 files is what was asked for")
    assert err.count("\n") == 1


def test_damage_is_said_and_the_rest_is_used(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "a.flow", MAIN)
    path.write_bytes(path.read_bytes() + record(SUB[0])[:-1])
    code, out, err = run(capfd, path, "--jsonl")
    assert code == 2
    assert len(lines(out)) == 3
    assert "left out 1 damaged record" in err
    assert "4 readable exchanges were used" in err


def test_a_request_that_cannot_be_read_is_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    bad = exchange(b"{", b"", number=99)
    code, out, err = run(capfd, write(tmp_path / "a.flow", [*SUB, bad]), "--jsonl")
    assert (code, len(lines(out))) == (2, 1)
    assert "not read: POST /anthropic/v1/messages: not a Messages request" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.flow"], "moontap pairs: none.flow: no such file or folder"),
        ([], "the following arguments are required: FILE"),
        (["a.flow", "--status", "lost"], "invalid choice: 'lost'"),
        (["a.flow", "--rules", "none.yaml"], "moontap pairs: --rules: none.yaml"),
        (["notes.txt"], "moontap pairs: notes.txt is not a flow file"),
    ],
)
def test_wrong_usage(moontap_command: Moontap, arguments: list[str], said: str) -> None:
    write(moontap_command.folder / "a.flow", SUB)
    (moontap_command.folder / "notes.txt").write_text("hello")
    done = moontap_command.run("pairs", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_no_key_of_a_file_that_mitmdump_wrote_is_shown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    token = "made-up-token-of-no-known-shape-42"
    flows = conversation(
        [f"echo {KEY}", "env"],
        results={0: f"{KEY}\n", 1: f"TOKEN={token}"},
        authorization=f"Bearer {token}",
    )
    for form in ([], ["--jsonl"]):
        code, out, err = run(capfd, write(tmp_path / "a.flow", flows), *form)
        assert code == 0
        assert "Bash" in out
        for secret in (KEY, token):
            assert secret[:20] not in out + err
    assert "TOKEN=****" in out


def test_what_a_result_holds_cannot_move_the_cursor(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    flows = conversation(["cat x"], results={0: "\x1b[2J\x07"}, session="\x1b[31ms")
    _, out, err = run(capfd, write(tmp_path / "a.flow", flows))
    assert "\x1b" not in out + err
    assert "\\x1b[2J" in out


def test_a_reader_that_leaves_ends_it(moontap_command: Moontap) -> None:
    path = write(moontap_command.folder / "a.flow", conversation(["pwd"] * 30, id_="Bash_{}") * 9)
    with subprocess.Popen(
        [*COMMAND, "pairs", "--jsonl", str(path), *[str(path)] * 20],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=moontap_command.environment,
    ) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline().startswith('{"v":1')
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0
