"""`moontap show`: an exchange by any of its ids."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from moontap import cli
from moontap.capture.metadata import UPSTREAM_BODY
from tests.cli.commands import KEY
from tests.samples import dump, messages_events, messages_request
from tests.saved import conversation, exchange, record, write

LOST = conversation(["pwd", "ls", "date"], lost=frozenset({1}), msh_request_id="client-side")
FINE = conversation(["make", "test"], first=10, session="s-22", id_="toolu_{}")
FOUND = re.compile(r"  (info|warning|error): ")
MODELS = exchange(b"", b"{}", number=20, path="/v1/models", session=None)
for number, one in enumerate(LOST):
    assert one.response
    one.response.headers["msh-request-id"] = f"req-{number}"


def run(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, list[str], list[str]]:
    code = cli.main(["show", *map(str, arguments)])
    out, err = capfd.readouterr()
    return code, out.splitlines(), err.splitlines()


def objects(capfd: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, Any]]:
    code, out, _ = run(capfd, *arguments, "--json")
    assert code == 0
    return [json.loads(line) for line in out]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "a.flow", [*LOST, *FINE, MODELS])


def test_one_exchange(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capfd, LOST[1].id, file)
    assert (code, err) == (0, [])
    assert out[:14] == [
        f"exchange 2 of {file}",
        "  flow      0001-s-1  2027-01-15T08:00:01.000Z",
        "  request   POST https://api.moonshot.cn/anthropic/v1/messages",
        "  session   s-1",
        "  asked     kimi-k3, streamed, 3 messages, 0 tools, 307 bytes",
        "  new",
        '    1 assistant: call Bash Bash_0 {"command": "pwd"}',
        "    2 user: result of Bash_0: did pwd",
        "  answer    status 200, tool_use",
        "  message   msg_a1",
        "  request id  req-1",
        '  call      Bash Bash_0 (used before, unanswered) {"command": "ls"}',
        "  results that it brought",
        "    Bash Bash_0, ok: did pwd",
    ]
    rest = "\n".join(out[14:])
    assert "  error: id-reused: The id `Bash_0` was used in exchange 1" in rest
    assert "docs/findings.md#id-reused" in rest
    # What its call came to is known only later.
    assert "  error: pair-dropped-by-client (found at exchange 3): " in rest


@pytest.mark.parametrize(
    ("id_", "flows"),
    [
        ("Bash_0", LOST[:3]),
        ("toolu_1", FINE[1:2]),
        ("req-2", LOST[2:3]),
        (FINE[0].id, FINE[:1]),
        ("0011", FINE[1:2]),
        ("msg_a1", [*LOST, *FINE]),
        (MODELS.id, [MODELS]),
        ("00", [*LOST, *FINE, MODELS]),
    ],
)
def test_it_is_found_by_any_id(
    file: Path, capfd: pytest.CaptureFixture[str], id_: str, flows: list[Any]
) -> None:
    assert [one["flow"] for one in objects(capfd, id_, file)] == [flow.id for flow in flows]


def test_several_are_listed_the_newest_last(
    file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    older = write(tmp_path / "z.flow", LOST[:1])
    newer = write(tmp_path / "0.flow", FINE)
    code, out, _ = run(capfd, "Bash_0", newer, file)
    assert code == 0
    assert out[0] == "3 exchanges, the newest last:"
    assert out[1:4] == [
        "  2027-01-15T08:00:00.000Z  0000-s-1  Bash Bash_0 (ok)",
        "  2027-01-15T08:00:01.000Z  0001-s-1  Bash Bash_0 (used before, unanswered)",
        "  2027-01-15T08:00:02.000Z  0002-s-1  Bash Bash_0 (used before, ok)",
    ]
    assert out[4].endswith(f"moontap show 0002-s-1 {file}")
    found = objects(capfd, "Bash_0", file, older)
    assert [one["at"] for one in found] == sorted(one["at"] for one in found)
    assert len(found) == 4


def test_of_many_the_last_are_listed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The Bash_0 of a loop was 157 lines, and an exchange had the same finding 155 times."""
    loop = conversation(["pwd"] + ["ls"] * 29, lost=frozenset(range(1, 30)))
    file = write(tmp_path / "a.flow", loop)
    _, out, _ = run(capfd, "Bash_0", file)
    assert out[:2] == ["30 exchanges, the newest last:", "  … 10 before; --all lists them"]
    assert len(out) == 23
    _, out, _ = run(capfd, "Bash_0", file, "--all")
    assert len(out) == 32
    assert len(objects(capfd, "Bash_0", file)) == 30
    _, out, _ = run(capfd, loop[1].id, file)
    codes = [line.split(": ")[1].partition(" ")[0] for line in out if FOUND.match(line)]
    assert sorted(codes) == sorted(set(codes))
    (said,) = [line for line in out if ": no-progress (" in line]
    assert "12 times in a row" in said
    assert "4 times, exchange 5 to 14)" in said


def test_the_guard_s_answer_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    flows = conversation(["ls"])
    flows[1].metadata["moontap.blocked"] = "blocked_no_progress"
    _, out, _ = run(capfd, flows[1].id, write(tmp_path / "a.flow", flows))
    assert (
        "  answer    status 200, moontap stopped it, nothing was sent on (blocked_no"
        in "\n".join(out)
    )


def test_both_ids_of_a_rewritten_call(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    flow = exchange(messages_request(), b"".join(messages_events("Bash_0_abc")))
    flow.metadata[UPSTREAM_BODY] = b"".join(messages_events("Bash_0"))
    flow.request.headers["user-agent"] = "x"
    file = write(tmp_path / "a.flow", [flow])
    for id_ in ("Bash_0", "Bash_0_abc"):
        (one,) = objects(capfd, id_, file)
        (call,) = one["calls"]
        assert (call["id"], call["upstream_id"], call["rewritten"]) == (
            "Bash_0_abc",
            "Bash_0",
            True,
        )
    _, out, _ = run(capfd, "Bash_0", file)
    assert '  call      Bash Bash_0_abc (upstream Bash_0, unanswered) {"command": "pwd"}' in out


def test_an_exchange_that_is_with_no_model(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capfd, MODELS.id, file)
    assert code == 0
    assert "  request   POST https://api.moonshot.cn/v1/models" in out
    assert "  answer    status 200" in out


def test_a_request_that_cannot_be_read(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "a.flow", [exchange(b"no JSON", b"")])
    for id_, shows in (("0000", True), ("none", False)):
        code, out, err = run(capfd, id_, file)
        assert code == 2
        assert any("  not read: POST /anthropic/v1/messages: " in line for line in out) is shows
        assert "a.flow: not read: POST /anthropic/v1/messages: not a Messages request" in err[0]


@pytest.mark.parametrize("odd", [float("nan"), 1e18, -1e300])
def test_a_time_that_is_none(tmp_path: Path, capfd: pytest.CaptureFixture[str], odd: float) -> None:
    flows = conversation(["pwd"])
    for flow in flows:
        flow.request.timestamp_start = odd
    file = write(tmp_path / "a.flow", flows)
    assert "  flow      0000-s-1" in run(capfd, "0000", file)[1]
    assert [one["at"] for one in objects(capfd, "00", file)] == [None, None]


def test_the_command_for_one_of_several_can_be_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    flows = conversation(["pwd", "ls"])
    for id_, typed in (("$(touch PWNED)", "show '$(touch PWNED)' 'a b.flow'"), ("-x", None)):
        flows[2].id = id_
        _, out, _ = run(capfd, "msg_a1", write(Path("a b.flow"), flows))
        assert out[0] == "3 exchanges, the newest last:"
        assert out[-1].endswith(typed) if typed else not out[-1].startswith("one of them")


def test_nothing_from_the_wire_moves_the_cursor_or_shows_a_key(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    evil = f"\x1b[2J\r\u202e{KEY}"
    flows = conversation([evil], results={0: evil}, opening=evil, authorization=f"Bearer {KEY}")
    for flow in flows:
        assert flow.response
        flow.response.headers["msh-request-id"] = "r\x1b[2J"
    file = write(tmp_path / "a.flow", flows)
    for id_ in ("Bash_0", flows[1].id, "00"):
        code, out, _ = run(capfd, id_, file)
        text = "\n".join(out)
        assert code == 0
        assert not set(text.replace("\n", "")) & {"\x1b", "\r", "\u202e"}
        assert KEY[:12] not in text
    assert KEY[:12] not in json.dumps(objects(capfd, "00", file))


def test_a_long_history_is_shown_in_short(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    history = [(f"toolu_{n}", "x" * 5000, "y" * 50_000) for n in range(40)]
    file = write(tmp_path / "a.flow", [exchange(messages_request(history), b"{}")])
    _, out, _ = run(capfd, "0000", file)
    assert len(out) < 60
    assert max(map(len, out)) < 700
    assert "    … 69 before" in out
    (one,) = objects(capfd, "0000", file)
    assert len(one["new"]) == 81


@pytest.mark.parametrize(
    ("id_", "code", "said"),
    [
        (
            "nope\x1b",
            1,
            "no tool call, message, request or flow has the id nope\\x1b in 8 exchanges",
        ),
        ("", 2, "give an id"),
    ],
)
def test_nothing_found(
    file: Path, capfd: pytest.CaptureFixture[str], id_: str, code: int, said: str
) -> None:
    assert run(capfd, id_, file) == (code, [], [f"moontap show: {said}"])


def test_a_damaged_file(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with file.open("ab") as more:
        more.write(record(LOST[0])[:-9])
    code, out, err = run(capfd, "req-2", file)
    assert code == 2
    assert out[0] == f"exchange 3 of {file}"
    assert "left out 1 damaged record" in err[0]
    assert run(capfd, "nope", file)[0] == 2
    assert run(capfd, "req-2", file.parent / "none.flow")[0] == 2


def test_surrogates_that_no_terminal_takes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    body = dump({"model": "kimi-k3", "messages": [{"role": "user", "content": "X"}]})
    flow = exchange(body.replace(b'"X"', b'"\\ud83d"'), b"{}")
    code, out, _ = run(capfd, "0000", write(tmp_path / "a.flow", [flow]))
    assert code == 0
    assert any(line.startswith("    0 user: ") for line in out)
