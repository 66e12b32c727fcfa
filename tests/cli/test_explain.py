"""`moontap explain`: what happened, told for a person."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mitmproxy import http

from moontap import cli
from moontap.capture import runfile
from moontap.capture.reader import FlowFile
from moontap.capture.upstream import before_the_tap
from tests.cli.commands import KEY
from tests.findings.rig import Ex, flows, message, text, user
from tests.saved import conversation, exchange, record, write

FLOWS = Path(__file__).parents[2] / "flows"
LOST = FLOWS / "claude-code-loses-pairs.flow"


def run(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = cli.main(["explain", *map(str, arguments)])
    out, err = capfd.readouterr()
    return code, out, err


def prose(out: str) -> str:
    return " ".join(out.split())


def test_the_baseline_of_claude_code(capfd: pytest.CaptureFixture[str]) -> None:
    """Reused ids, dropped pairs, empty turns, repeats; who, why, and what to type."""
    code, out, err = run(capfd, LOST)
    assert (code, err) == (0, "")
    said = prose(out)
    for words in (
        "claude-cli/2.1.328; 8 requests, 15 calls",
        "as Bash_0 (used before), and Bash",
        "<< id-reused (it begins here)",
        "4-8 5 times: the client drops two calls with their results, one empty user turn; the "
        "model calls the same again: two Bash",
        "Where it went wrong first: exchange 2 (flow ",
        "[pair-dropped-by-client, error, 11 times up to exchange 8]",
        "[empty-user-turn, warning, 5 times up to exchange 8]",
        "[no-progress, ",
        "13 of 15 calls came under an id that the server had used before",
        "dropped 11 pairs of call and result, and repaired its history so in 6 requests",
        "5 user turns said nothing",
        "Most likely: the model, or the API in front of it, together with a client that pairs by",
        "It ends with 2 calls whose result is not in it",
    ):
        assert words in said, words
    assert out.rstrip().endswith("\n    moontap run -- claude")
    assert len(out.splitlines()) < 45


@pytest.mark.parametrize("name", ["claude-code-rewritten", "claude-code-sub-agents"])
def test_with_unique_ids_nothing_went_wrong(capfd: pytest.CaptureFixture[str], name: str) -> None:
    code, out, _ = run(capfd, FLOWS / f"{name}.flow")
    assert code == 0
    assert out.partition("\n")[0].endswith("nothing went wrong")
    assert "Most likely" not in out


def test_full_tells_each_exchange(capfd: pytest.CaptureFixture[str]) -> None:
    rows = [line[:4] for line in run(capfd, "--full", LOST)[1].splitlines()]
    assert {f"  {number} " for number in range(1, 9)} <= set(rows)


def test_several_files_each_on_its_own(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    good, bad = FLOWS / "chat-400.flow", FLOWS / "messages-504.flow"
    damaged = tmp_path / "damaged.flow"
    damaged.write_bytes(good.read_bytes()[:-20])
    code, out, err = run(capfd, good, bad, damaged)
    assert code == 2
    assert out.count("The conversation: session") == 3
    assert "refused with 400" in out
    assert "refused with 504" in out
    assert "damaged.flow: left out" in err


def test_a_mitmproxy_without_moontap_knows_less(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def bare(flow: http.HTTPFlow) -> http.HTTPFlow:
        made = before_the_tap(flow)
        made.metadata.clear()
        return made

    file = write(tmp_path / "bare.flow", map(bare, FlowFile(LOST)))
    said = prose(run(capfd, file)[1])
    assert "It was recorded without moontap: there are no times of chunks" in said
    assert "moontap run -- claude" in said


def test_one_session_of_several(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    other = conversation(["make"], first=10, session="t-2")
    file = write(tmp_path / "two.flow", [*conversation(["pwd"], session="s-1"), *other])
    _, out, _ = run(capfd, file, "--session", "t-")
    assert "session t-2" in out
    assert "session s-1" not in out
    code, _, err = run(capfd, file, "--session", "x")
    assert code == 2
    assert err == "moontap explain: --session x: there are s-1, t-2\n"


def test_a_session_of_one_file_among_several(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A folder of captures: most of its files do not have it."""
    for name in ("s-1", "t-2", "u-3"):
        write(tmp_path / f"{name}.flow", conversation(["pwd"], session=name))
    code, out, err = run(capfd, tmp_path, "--session", "t-")
    assert (code, err) == (0, "")
    assert "t-2.flow" in out
    assert "session t-2" in out
    assert "s-1" not in out
    assert "u-3" not in out
    code, out, err = run(capfd, tmp_path, "--session", "x")
    assert (code, out) == (2, "")
    assert err == "moontap explain: --session x: there are s-1, t-2, u-3\n"


def test_what_could_not_be_read_is_said(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    bad = exchange(b"no JSON", b"")
    code, out, err = run(capfd, write(tmp_path / "bad.flow", [bad]))
    assert code == 2
    assert out.endswith("bad.flow: 1 exchange, none with a model that could be read; 1 could not\n")
    assert "bad.flow: not read: POST /anthropic/v1/messages: not a Messages request" in err
    fine = [Ex([user("go")], message(text("Done.")))]
    code, out, err = run(capfd, write(tmp_path / "a.flow", [*flows(*fine), bad]))
    assert code == 2
    assert "1 not read, 1 conversation, nothing went wrong in the others" in out
    assert err.count("\n") == 1


def test_an_empty_file_is_nothing_to_tell_of(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """As for moontap lint."""
    empty = write(tmp_path / "none.flow", [])
    code, out, err = run(capfd, empty)
    assert (code, out) == (2, "")
    assert "none.flow: is empty" in err
    code, out, err = run(capfd, empty, LOST)
    assert code == 2
    assert out.startswith((f"{LOST}: ", "flows/"))
    assert err == f"moontap explain: {empty}: is empty\n"


def test_a_command_to_paste_is_one_word_a_thing(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = flows(Ex([user("go")], message(text("Done.")), status=500))
    made[0].id = "$(touch PWNED)"
    for name in ("a b.flow", "$(touch PWNED).flow", "-x.flow"):
        write(Path(name), made)
    _, out, _ = run(capfd, tmp_path)
    typed = [line.strip() for line in out.splitlines() if line.startswith("    moontap ")]
    assert typed == [
        "moontap bundle '$(touch PWNED).flow'",
        "moontap bundle ./-x.flow",
        "moontap bundle 'a b.flow'",
    ]


def test_the_rules_say_what_is_looked_for(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("findings: {off: [no-progress]}\n")
    _, out, _ = run(capfd, LOST, "--rules", rules)
    assert "The rules turn off: no-progress (findings.off)." in out
    assert "[no-progress" not in out
    rules.write_text("findings: {of: []}\n")
    code, _, err = run(capfd, LOST, "--rules", rules)
    assert code == 2
    assert err.startswith("moontap explain: --rules: ")


def test_keys_are_masked(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    said = f"my key is {KEY}"
    exchange = Ex([user(said)], message(text(said)), request_headers={"x-api-key": KEY})
    file = write(tmp_path / "keys.flow", flows(exchange))
    _, out, err = run(capfd, "--full", file)
    assert "my key is" in out
    assert KEY not in out + err


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere", 'with "" it keeps nothing'),
        (".", "holds no flow file"),
    ],
)
def test_nothing_to_read(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, name: str, words: str
) -> None:
    code, out, err = run(capfd, tmp_path / name)
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1


def test_no_exchange_with_a_model(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    flow = flows(Ex([user("go")]))[0]
    flow.request.path = "/v1/models"
    file = tmp_path / "other.flow"
    file.write_bytes(record(flow))
    code, out, _ = run(capfd, file)
    assert code == 0
    assert "none of 1 exchange is with a model" in prose(out)


def test_what_the_guard_did(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    made = conversation(["ls", "ls", "ls"])
    made[2].metadata["moontap.reminded"] = [[0, 0, b""]]
    made[3].metadata["moontap.blocked"] = "blocked_no_progress"
    made[3].metadata["moontap.repeats"] = 3
    _, out, _ = run(capfd, "--full", write(tmp_path / "guarded.flow", made))
    assert "\nmoontap stopped it at exchange 4: the same had been done 3 times in a row" in out
    assert "moontap reminds the model that it repeats itself; the model calls" in prose(out)
    assert "one result comes back; moontap stops it (blocked_no_progress)" in prose(out)


def polling(folder: Path, at: Path) -> Path:
    """A run whose rules leave a time out of the results, so that they are the same."""
    results = {n: json.dumps({"state": "running", "checked_at": n}) for n in range(12)}
    folder.mkdir()
    file = write(folder / "traffic.flow", conversation(["ls"] * 12, id_="t_{}", results=results))
    said = {"v": 1, "rules": runfile.noted(str(at)), "options": {"moontap_guard": "block"}}
    (folder / "run.json").write_text(json.dumps(said))
    return file


def test_the_rules_of_the_run_are_in_force(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It said "nothing went wrong" of a run that the guard had stopped by these rules."""
    rules = tmp_path / "rules.yaml"
    rules.write_text("progress: {ignore: [{results: [$.checked_at]}]}\n")
    file = polling(tmp_path / "run", rules)
    _, out, _ = run(capfd, file)
    assert f"  rules: {rules}, as in the run\n" in out
    assert "12 times in a row" in out
    assert "the results are the same" in out
    assert "differ" not in out
    assert "--guard block" not in out
    rules.unlink()
    _, out, _ = run(capfd, file)
    assert f"  rules: the run had {rules}, which is not here: results may differ" in out
    assert "nothing went wrong" in out


def test_lines_are_whole_where_no_person_reads_them(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """grep finds what stands in one line."""
    _, out, _ = run(capfd, LOST)
    assert max(map(len, out.splitlines())) > 200
    assert any("Where it went wrong first: exchange 2" in line for line in out.splitlines())


@pytest.mark.parametrize("text", ['{"type": "user", "uuid": "1"}\n', "no flow\n"])
def test_other_evidence_is_for_lint(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, text: str
) -> None:
    other = tmp_path / "session.jsonl"
    other.write_text(text)
    code, out, err = run(capfd, other)
    assert (code, out) == (2, "")
    assert err.rstrip().endswith(f"is read by: moontap lint {other}")
    assert err.count("\n") == 1
    other = other.rename(tmp_path / "session.txt")
    code, out, err = run(capfd, LOST, other)
    assert code == 2
    assert "The conversation: session" in out
    assert err.rstrip().endswith("is read by: moontap lint FILE")
