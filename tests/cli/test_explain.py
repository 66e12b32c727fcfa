"""`moontap explain`: what happened, told for a person."""

from __future__ import annotations

from pathlib import Path

import pytest
from mitmproxy import http

from moontap import cli
from moontap.capture.reader import FlowFile
from moontap.capture.upstream import before_the_tap
from tests.cli.commands import KEY
from tests.findings.rig import Ex, flows, message, text, user
from tests.saved import conversation, record, write

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
    _, out, _ = run(capfd, "--full", write(tmp_path / "guarded.flow", made))
    assert "moontap reminds the model that it repeats itself; the model calls" in prose(out)
    assert "one result comes back; moontap stops it (blocked_no_progress)" in prose(out)
