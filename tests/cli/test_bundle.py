"""`moontap bundle`: what is in the zip, what is not, and when there is none."""

from __future__ import annotations

import gzip
import json
import shlex
import stat
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from moontap import cli
from moontap.capture import runfile
from moontap.capture.metadata import UPSTREAM_BODY
from moontap.capture.reader import FlowFile
from moontap.care.scrub import Scrubber
from moontap.standin import Mint, Standin
from tests.bundle.reproducing import run as reproduce
from tests.care.planted import TEXT, TOKEN, UUID, VALUES, left
from tests.cli.commands import KEY
from tests.e2e import leaks
from tests.samples import CHAT, chat_events, chat_request, dump, messages_events, messages_request
from tests.saved import conversation, exchange, record, write

LOST = conversation(["pwd", "ls", "date"], lost=frozenset({1}))
FINE = conversation(["make", "test"], first=10, session="s-22", id_="toolu_{}")
assert FINE[-1].response
assert FINE[-1].response.content
FINE[-1].response.content = FINE[-1].response.content.replace(b'": "tool_use"', b'": "end_turn"')
NAMES = ["REPORT.md", "bundle.flow", "findings.jsonl", "pairs.jsonl", "reproduce.py"]
RULES = """
scrub:
  names: [Rosalind, Zoë-Anaïs, 欧阳修远, Quentin Archer, flow, tools]
  paths: [/home/rosalind]
  texts: ['[\\w.]+@[\\w.]+\\w']
  json_paths: [$..customer]
"""
SECRETS = {
    "key": KEY,
    "token": TOKEN,
    "api key": "sk-ant-api03-made-up-9f8e7d6c5b4a",
    "cookie": "session-cookie-made-up-77",
    "elsewhere": "plain.words.of.another.request",
    "session": UUID,
}


def bundle(
    capfd: pytest.CaptureFixture[str], *arguments: object
) -> tuple[int, list[str], list[str]]:
    code = cli.main(["bundle", *map(str, arguments)])
    out, err = capfd.readouterr()
    return code, out.splitlines(), err.splitlines()


def unzipped(file: Path, folder: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as archive:
        archive.extractall(folder)
        return {name: archive.read(name) for name in archive.namelist()}


def names_in(folder: Path) -> set[str]:
    """Which of VALUES is left in a file, or in a body that a flow file has compressed."""
    found = [left(path.read_bytes()) for path in folder.iterdir()]
    for path in folder.glob("*.flow"):
        for flow in FlowFile(path):
            found += [left(one.content or b"") for one in (flow.request, flow.response) if one]
    return set().union(*found)


def planted(folder: Path) -> Path:
    """A capture in which secrets, names and paths stand wherever something can."""
    held = f"{TEXT} {KEY} {SECRETS['elsewhere']} {UUID} {TOKEN}"
    said = {"command": held, "customer": VALUES["selected"]}
    # reproduce.py cuts it at 300 characters, in the middle of the address.
    about = f"{UUID} ".ljust(280, "x") + f" {VALUES['mail']} {held}"
    tools = [{"name": "Bash", "description": about, "input_schema": {"type": "object"}}]
    headers = {
        "authorization": f"Bearer {TOKEN}",
        "x_api_key": SECRETS["api key"],
        "cookie": f"a={SECRETS['cookie']}",
        "user_agent": f"agent of {VALUES['name']}",
        "session": UUID,
    }
    pieces = [held[at : at + 5] for at in range(0, len(held), 5)]
    deltas = [
        {"type": "content_block_delta", "index": 9, "delta": {"type": "text_delta", "text": piece}}
        for piece in pieces
    ]
    first = messages_events("Bash_0", message_id="msg_1", command=held)
    streamed = [b"event: content_block_delta\ndata: %s\n\n" % dump(delta) for delta in deltas]
    opening = messages_request(opening=held, tools=tools, metadata={"user_id": UUID})
    second = messages_request([("Bash_0", held, held)], opening=held, tools=tools)
    one = exchange(opening, b"".join([first[0], *streamed, *first[1:]]), number=1, **headers)
    one.metadata[UPSTREAM_BODY] = one.response.raw_content if one.response else b""
    other = b"".join(messages_events("Bash_0", message_id="msg_2", command=json.dumps(said)))
    two = exchange(second, gzip.compress(other), number=2, **headers)
    assert two.response
    two.response.headers["content-encoding"] = "gzip"
    two.comment = held
    late = {"authorization": f"Bearer {SECRETS['elsewhere']}", "session": UUID}
    three = exchange(messages_request(opening="else"), b"{}", number=3, **late)
    one.id, two.id, three.id = "flow-1", "flow-2", "flow-3"
    folder.mkdir()
    mode = f"reverse:https://{VALUES['name']}.example"
    options = {"mode": [mode], "moontap_dir": VALUES["path"], "moontap_rewrite": f"off {KEY}"}
    (folder / "run.json").write_text(json.dumps({"moontap": "0.1.0", "options": options}))
    write(folder / "traffic.flow", [one, two, three])
    return folder


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.yaml"
    path.write_text(RULES, encoding="utf-8")
    return path


async def test_a_bundle_holds_no_secret_and_shows_the_fault(
    tmp_path: Path, rules: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    capture = planted(tmp_path / "capture")
    everything = {**SECRETS, **{name: VALUES[name] for name in ("path", "mail")}}
    assert leaks.in_folder(capture, everything) == everything.keys()  # the search finds them
    assert names_in(capture) == VALUES.keys()
    code, said, err = bundle(capfd, capture, "--rules", rules, "-o", tmp_path / "b.zip")
    assert (code, err) == (0, [])
    files = unzipped(tmp_path / "b.zip", tmp_path / "b")
    assert list(files) == NAMES
    assert leaks.in_folder(tmp_path / "b", everything) == set()
    assert names_in(tmp_path / "b") == set()
    assert leaks.in_bytes("\n".join(said).encode(), everything) == set()

    report = files["REPORT.md"].decode()
    assert "ROUND 1  message msg_1  tool call Bash_0  " in report
    assert "ROUND 2  message msg_2  tool call Bash_0  " in report
    assert "reused: Bash_0 came in round 1 and again in round 2" in report
    assert "moontap_rewrite  off ***" in report
    assert "moontap_dir" not in report
    assert "1 exchange left out" in report
    assert "secret: " in report
    assert "JSON path: " in report
    # A rule that names a word of ours changes what was said, never the form of the files.
    for line in files["pairs.jsonl"].splitlines():
        assert {"status", "call_flow"} < json.loads(line).keys()
    assert b"\nTOOLS: list[Any] = [\n" in files["reproduce.py"]

    program = files["reproduce.py"].decode()
    for mint, expected in ((Mint.RESPONSE, 1), (Mint.UNIQUE, 0)):
        async with Standin(mint=mint) as standin:
            url = f"{standin.base_url}/anthropic"
            code, out, wrong = await reproduce(tmp_path, program, "--base-url", url)
        assert (code, wrong) == (expected, ""), out


def test_what_is_in_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    flows = [*FINE, *LOST]
    file, out = write(tmp_path / "a.flow", flows), tmp_path / "new" / "b.zip"
    code, said, err = bundle(capfd, file, "-o", out)
    assert (code, err) == (0, [])
    assert said[0].startswith(f"{out}: {', '.join(NAMES)} (")
    assert said[1] == "it shows, with 2 of 7 exchanges:"
    assert said[2].startswith("  reused: Bash_0 came in round 1 and again in round 2, while")
    assert "  5 exchanges left out" in said
    assert said[-1].startswith("names and paths in texts stay: say which in a rules file")
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    files = unzipped(out, tmp_path / "b")
    assert [flow.id for flow in FlowFile(tmp_path / "b" / "bundle.flow")] == [
        flow.id for flow in LOST[:2]
    ]
    findings = [json.loads(line) for line in files["findings.jsonl"].splitlines()]
    assert {line["code"] for line in findings} >= {"id-reused"}
    # What it holds is what anybody can make of bundle.flow again.
    assert cli.main(["pairs", "--jsonl", str(tmp_path / "b" / "bundle.flow")]) == 0
    assert capfd.readouterr().out.encode() == files["pairs.jsonl"]
    assert cli.main(["scrub", "--check", str(tmp_path / "b" / "bundle.flow")]) == 0
    assert bundle(capfd, file, "-o", tmp_path / "again.zip")[0] == 0
    assert (tmp_path / "again.zip").read_bytes() == out.read_bytes()


@pytest.mark.parametrize(
    ("asked", "kept", "shows"),
    [
        (["--finding", "pair-dropped-by-client"], LOST[:3], "pair-dropped-by-client: "),
        (["--around", "toolu_1"], FINE[1:], "no id came twice in these rounds"),
        (["--around", FINE[0].id], FINE[:2], "no id came twice in these rounds"),
    ],
)
def test_about_what_was_asked(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    asked: list[str],
    kept: list[Any],
    shows: str,
) -> None:
    file, out = write(tmp_path / "a.flow", [*FINE, *LOST]), tmp_path / "b.zip"
    code, said, _ = bundle(capfd, file, *asked, "--out", out)
    assert code == 0
    assert any(line.startswith(f"  {shows}") for line in said)
    files = unzipped(out, tmp_path / "b")
    assert files["REPORT.md"].startswith(f"# {shows}".encode())
    assert [one.id for one in FlowFile(tmp_path / "b" / "bundle.flow")] == [one.id for one in kept]


def test_chat_completions(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """From one of several files, with a server that no maintainer could reach."""
    rounds = [
        exchange(
            chat_request([("Bash:0", "pwd", "/w")] * number, stream=False),
            b"".join(chat_events("Bash:0", message_id=f"cmpl-{number}")),
            number=number,
            path=CHAT,
        )
        for number in range(2)
    ]
    for flow in rounds:
        flow.request.host = "127.0.0.1"
    write(tmp_path / "a.flow", FINE)
    write(tmp_path / "b.flow", rounds)
    code, _, _ = bundle(capfd, tmp_path, "-o", tmp_path / "b.zip")
    files = unzipped(tmp_path / "b.zip", tmp_path / "b")
    assert code == 0
    program = files["reproduce.py"].decode()
    for line in ("BASE_URL = 'https://api.moonshot.cn/v1'", "STREAM = False"):
        assert f"\n{line}\n" in program
    assert "2 of 5." in files["REPORT.md"].decode()


@pytest.mark.parametrize(
    ("asked", "code", "said"),
    [
        ([], 1, "nothing wrong was found; --around ID makes a bundle about any tool call or flow"),
        (["--finding", "id-reused"], 1, "no id-reused was found; --around ID makes"),
        (["--around", "x"], 1, "no tool call or flow has the id x; calls are: toolu_0, toolu_1"),
        (["--finding", "id-resued"], 2, "--finding: id-resued is none of: "),
        (["--rules", "none.yaml"], 2, "--rules: none.yaml"),
    ],
)
def test_nothing_to_show(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    asked: list[str],
    code: int,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.flow", FINE)
    found, out, err = bundle(capfd, "a.flow", *asked)
    assert (found, out) == (code, [])
    assert err[-1].startswith(f"moontap bundle: {said}")
    assert [path.name for path in tmp_path.iterdir()] == ["a.flow"]


def test_a_clean_run_is_nothing_to_show(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Three equal calls are good to know, and no fault; it had made a bundle of such a run."""
    file = write(tmp_path / "a.flow", conversation(["ls"] * 3, id_="t_{}"))
    code, _, err = bundle(capfd, file, "-o", tmp_path / "b.zip")
    assert code == 1
    assert err == [
        "moontap bundle: nothing wrong was found; only good to know, shown with --finding: "
        "no-progress; --around ID makes a bundle about any tool call or flow"
    ]
    asked = ("--finding", "no-progress")
    assert bundle(capfd, file, *asked, "-o", tmp_path / "b.zip")[0] == 0


def test_a_run_that_the_guard_stopped(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """By the rules of the run, the loop and the stop."""
    rules = tmp_path / "rules.yaml"
    rules.write_text("progress: {ignore: [{results: [$.at]}]}\n")
    results = {n: json.dumps({"at": n}) for n in range(12)}
    flows = conversation(["ls"] * 12, id_="t_{}", results=results)
    flows[-1].metadata["moontap.blocked"] = "blocked_no_progress"
    noted = {"rules": runfile.noted(str(rules))}
    (tmp_path / "run.json").write_text(json.dumps(noted))
    file = write(tmp_path / "traffic.flow", flows)
    code, _, err = bundle(capfd, file, "-o", tmp_path / "b.zip")
    assert (code, err) == (0, [f"moontap bundle: rules: {rules}, as in the run"])
    report = unzipped(tmp_path / "b.zip", tmp_path / "b")["REPORT.md"].decode()
    assert "after 25 messages, moontap stopped it here (blocked_no_progress)" in report
    assert "no reply" not in report
    assert "answered by moontap" in report
    assert "rules " in report
    assert report.startswith("# no-progress: Bash was called 12 times in a row")
    assert str(tmp_path) not in report


def test_it_refuses_where_the_check_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Only a fault of ours can bring this about: here a scrub that does nothing."""
    capture = planted(tmp_path / "capture")
    monkeypatch.setattr(Scrubber, "scrub", lambda self, flow: Counter())
    monkeypatch.setattr("moontap.commands.bundle._MOST_SAID", 10_000)
    code, out, err = bundle(capfd, capture, "-o", tmp_path / "b.zip")
    assert (code, out) == (1, [])
    assert {line.split(": ")[2] for line in err[:-1]} == {*NAMES}
    place = "bundle.flow: flow 1: metadata moontap.upstream_body event 28 $.delta.text"
    assert f"moontap bundle: not clean: {place}: secret" in err
    assert err[-1] == (
        "moontap bundle: nothing was written: the scrub check failed, and a bundle is for others "
        "to read"
    )
    assert not (tmp_path / "b.zip").exists()
    assert leaks.in_bytes("\n".join(err).encode(), SECRETS) == set()


def test_no_file_is_replaced_unless_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.flow", LOST)
    out = tmp_path / "moontap-bundle.zip"
    out.write_text("mine")
    code, _, err = bundle(capfd, "a.flow")
    assert code == 2
    assert err == [
        "moontap bundle: --out: moontap-bundle.zip exists: --force replaces it",
    ]
    assert out.read_text() == "mine"
    assert bundle(capfd, "a.flow", "--force")[0] == 0
    assert zipfile.is_zipfile(out)


@pytest.mark.parametrize("name", ["a.flow", "soft.flow", "rules.yaml", "-"])
def test_the_evidence_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.flow", LOST)
    (tmp_path / "soft.flow").symlink_to("a.flow")
    (tmp_path / "rules.yaml").write_text(RULES, encoding="utf-8")
    before = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
    code, out, err = bundle(capfd, "a.flow", "--rules", "rules.yaml", "-o", name, "--force")
    assert (code, out, len(err)) == (2, [], 1)
    assert err[0].startswith(f"moontap bundle: --out: {name} ")
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == before


def test_a_file_given_twice_counts_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "a.flow", LOST)
    (tmp_path / "b.flow").symlink_to(file)
    _, said, _ = bundle(capfd, file, file, tmp_path / "b.flow", "-o", tmp_path / "b.zip")
    assert said[1] == "it shows, with 2 of 4 exchanges:"


def test_what_could_not_be_read_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    bad = exchange(b"no JSON", b"", number=30)
    code, said, err = bundle(
        capfd, write(tmp_path / "a.flow", [*LOST, bad]), "-o", tmp_path / "b.zip"
    )
    assert (code, said[1]) == (2, "it shows, with 2 of 5 exchanges:")
    assert "not read: POST /anthropic/v1/messages: not a Messages request" in err[0]
    code, said, err = bundle(capfd, write(tmp_path / "b.flow", [bad]), "-o", tmp_path / "c.zip")
    assert (code, said) == (2, [])
    assert "b.flow: not read: " in err[0]
    assert err[1].startswith("moontap bundle: in what could be read, nothing wrong was found; ")
    assert not (tmp_path / "c.zip").exists()


def test_a_path_of_the_server_is_one_word_of_the_command(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lost = conversation(["pwd", "ls", "date"], lost=frozenset({1}))
    for flow in lost:
        flow.request.path = "/`a`$(touch PWNED)'/v1/messages"
    assert bundle(capfd, write(tmp_path / "a.flow", lost), "-o", tmp_path / "b.zip")[0] == 0
    report = unzipped(tmp_path / "b.zip", tmp_path / "b")["REPORT.md"].decode()
    (line,) = (line for line in report.splitlines() if "--base-url" in line)
    assert shlex.split(line)[-1] == "https://api.moonshot.cn/'a'$(touch PWNED)'"


def test_a_damaged_file_is_used_all_the_same(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "a.flow", LOST)
    with file.open("ab") as more:
        more.write(record(LOST[0])[:-9])
    code, said, err = bundle(capfd, file, "-o", tmp_path / "b.zip")
    assert code == 2
    assert said[1] == "it shows, with 2 of 4 exchanges:"
    assert "left out 1 damaged record" in err[0]
