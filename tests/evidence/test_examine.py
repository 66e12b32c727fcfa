"""What is found in evidence that is no flow, and where."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from moontap.evidence.examine import Examined, examine
from moontap.evidence.inputs import files, opened
from moontap.evidence.kinds import Kind
from moontap.evidence.recognise import recognise
from moontap.evidence.source import Unknown, Unusable, read
from moontap.evidence.transcript import Transcript
from moontap.findings.types import Severity
from moontap.redact.flow import Redactor
from moontap.rules import Rules, load_rules
from tests.evidence import documents
from tests.evidence.documents import called, joined, use
from tests.samples import dump

KEY = "sk-made-up-7f3kq9z2m4x8c1v6b5n0"


def seen(data: bytes, rules: Rules | None = None) -> Examined:
    examined = examine(read("evidence", data), rules or Rules())
    assert not examined.faults, examined.faults
    return examined


def places(examined: Examined, code: str) -> list[int | None]:
    return [one.line for one in examined.findings if one.finding.code == code]


def codes(examined: Examined, least: Severity = Severity.WARNING) -> set[str]:
    return {
        one.finding.code for one in examined.findings if one.finding.severity.rank >= least.rank
    }


def test_a_transcript_with_its_requests_shows_each_dropped_pair() -> None:
    records = documents.noted_transcript(6)
    examined = seen(joined(records))
    said = [n for n, one in enumerate(records, 1) if one["type"] == "assistant"]
    # Of six calls the first keeps its result; each of the others is named at its own record.
    assert places(examined, "pair-dropped-by-client") == said[1:]
    assert places(examined, "id-reused") == [said[1]]
    assert "no-progress" in codes(examined)
    assert examined.exchanges == 7
    assert examined.notes == []


def test_a_transcript_whose_client_lost_nothing_shows_no_dropped_pair() -> None:
    examined = seen(joined(documents.noted_transcript(2, lost=False)))
    assert codes(examined) == set()


def test_a_transcript_without_its_requests_shows_reuse_and_says_what_it_cannot_show() -> None:
    examined = seen(joined(documents.transcript(4)))
    assert {"id-reused", "no-progress"} <= codes(examined, Severity.INFO)
    assert "pair-dropped-by-client" not in codes(examined, Severity.INFO)
    assert any("cannot be seen" in note for note in examined.notes)
    assert codes(seen(joined(documents.transcript(2, "Bash_{}")))) == set()


def test_a_record_a_block_is_one_reply_and_parallel_results_one_turn() -> None:
    first, asked, *_ = documents.transcript(0)
    base = {"sessionId": documents.SESSION, "isSidechain": False}
    blocks = [{"type": "text", "text": "both"}, use("a", "pwd"), use("b", "ls")]
    records: list[dict[str, Any]] = [first, asked]
    for n, block in enumerate(blocks):
        message = {"id": "msg_1", "role": "assistant", "content": [block], "stop_reason": None}
        uuid = {"uuid": f"b{n}", "parentUuid": f"b{n - 1}" if n else "u0"}
        records.append({"type": "assistant", "message": message, **uuid, **base})
    for id_, parent in (("a", "b1"), ("b", "b2")):
        block = {"type": "tool_result", "tool_use_id": id_, "content": "x"}
        message = {"role": "user", "content": [block]}
        uuid = {"uuid": f"r-{id_}", "parentUuid": parent}
        records.append({"type": "user", "message": message, **uuid, **base})
    end = {"id": "msg_2", "role": "assistant", "content": [{"type": "text", "text": "ok"}]}
    records.append({"type": "assistant", "message": end, "uuid": "e", "parentUuid": "r-b", **base})
    examined = seen(joined(records))
    assert (examined.exchanges, codes(examined)) == (2, set())


def test_each_of_parallel_results_is_named_at_its_own_record() -> None:
    first, asked, *_ = documents.transcript(0)
    base = {"sessionId": documents.SESSION, "isSidechain": False}
    records: list[dict[str, Any]] = [first, asked]
    for n, id_ in enumerate(("a", "b")):
        message = {"id": "msg_1", "role": "assistant", "content": [use(id_, "pwd", n)]}
        records.append({"type": "assistant", "message": message, "uuid": id_, **base})
    for id_ in ("a", "b", "zz"):
        block = {"type": "tool_result", "tool_use_id": id_, "content": "x"}
        message = {"role": "user", "content": [block]}
        records.append({"type": "user", "message": message, "uuid": f"r-{id_}", **base})
    end = {"id": "msg_2", "role": "assistant", "content": [use("", "ls")]}
    text = {"id": "msg_2", "role": "assistant", "content": [{"type": "text", "text": "ok"}]}
    records += ({"type": "assistant", "message": one, "uuid": "e", **base} for one in (text, end))
    examined = seen(joined(records))
    assert places(examined, "result-orphan") == [7]
    assert places(examined, "id-empty") == [9]


def test_going_back_to_an_earlier_prompt_cuts_the_history() -> None:
    records = documents.transcript(3, "Bash_{}")
    back = {**records[1], "uuid": "x0", "parentUuid": "u2"}
    reply = {**records[2], "uuid": "x1", "parentUuid": "x0"}
    told = Transcript(joined([*records, back, reply]), Rules(), []).turns()
    histories = [one.turn.sent.request.messages for one in told if one.turn.sent]
    # Three turns, then the prompt behind the first of them: what was said after it is gone.
    assert [len(messages) for messages in histories] == [1, 3, 5, 4]
    assert [message.role for message in histories[-1]] == ["user", "assistant", "user", "user"]


def test_a_request_that_goes_on_from_nowhere_is_said_by_its_line() -> None:
    records = documents.noted_transcript(4)
    line = next(n for n, one in enumerate(records) if one["type"] == "api-request")
    examined = seen(joined(records[line + 1 :]))
    assert [damage.line for damage in examined.damage][:1] == [3]
    assert "cannot be rebuilt" in examined.damage[0].what


def test_an_error_that_claude_code_notes_is_a_refusal() -> None:
    records = documents.noted_transcript(1)
    text = [{"type": "text", "text": "API Error: 400 tool call id Bash_0 is duplicated"}]
    refused = {
        **records[5],
        "message": {"id": "x", "role": "assistant", "model": "<synthetic>", "content": text},
        "isApiErrorMessage": True,
        "apiErrorStatus": 400,
        "apiErrorType": "invalid_request_error",
        "requestRef": "r0",
    }
    assert "api-refused" in codes(seen(joined([*records[:5], refused])))


@pytest.mark.parametrize("repairs", [1, 4, 60])
def test_a_debug_log_tells_repairs_and_ids(repairs: int) -> None:
    examined = seen(joined(documents.debug_log(repairs)))
    found = {one.finding.code: one.finding for one in examined.findings}
    assert set(found) == {"id-reused", "pair-dropped-by-client"}
    assert found["pair-dropped-by-client"].evidence.facts["repairs"] == repairs
    assert found["pair-dropped-by-client"].evidence.facts["dropped"] == repairs
    assert found["id-reused"].evidence.ids == ("Bash_0",)
    assert found["id-reused"].evidence.facts["count"] == repairs + 1
    first = next(n for n, line in enumerate(documents.debug_log(repairs), 1) if "repaired" in line)
    assert {one.line for one in examined.findings} == {first}
    assert not {"id-reused", "pair-dropped-by-client"} & {one.code for one in examined.skipped}


def test_conversations_side_by_side_in_a_debug_log_are_told_apart() -> None:
    """Sub-agents log into the same file, and their ids are of their own."""
    main = documents.debug_log(3)
    other = [line.replace("chatcmpl-", "chatcmpl-sub-") for line in main]
    mixed = [line for pair in zip(main, other, strict=True) for line in pair]
    found = [one.finding for one in seen(joined(mixed)).findings]
    assert [one.evidence.facts["count"] for one in found if one.code == "id-reused"] == [4, 4]
    [lost] = [one.evidence.facts for one in found if one.code == "pair-dropped-by-client"]
    assert (lost["repairs"], lost["dropped"]) == (6, 6)


def test_a_debug_log_without_repairs_has_nothing() -> None:
    assert seen(joined(documents.debug_log(0))).findings == []


@pytest.mark.parametrize(
    ("make", "exchanges", "conversations"),
    [(documents.context, 6, 1), (documents.wired, 9, 2)],
)
def test_kimi_sessions_are_told_turn_by_turn(make: Any, exchanges: int, conversations: int) -> None:
    examined = seen(joined(make(6)))
    assert (examined.exchanges, examined.conversations) == (exchanges, conversations)
    assert {"id-reused", "no-progress"} <= codes(examined, Severity.INFO)
    assert codes(seen(joined(make(2, "Bash:{}")))) == set()


def test_arguments_in_parts_are_put_together() -> None:
    cut = [one for one in documents.wired(2, "Bash:{}") if "arguments_part" not in str(one)]
    assert "arguments-invalid" in codes(seen(joined(cut)))


@pytest.mark.parametrize("indent", [None, 2])
def test_a_finding_in_a_body_names_the_line_of_its_message(indent: int | None) -> None:
    said = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [use("a", "pwd")]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "zz", "content": "x"}]},
    ]
    body = json.dumps({"model": "kimi-k3", "max_tokens": 9, "messages": said}, indent=indent)
    examined = seen(body.encode())
    lines = body.splitlines()
    third = next(n for n, line in enumerate(lines, 1) if "zz" in line)
    [line] = places(examined, "result-orphan")
    assert line is not None
    assert line <= third
    assert line == third if indent is None else lines[line - 1].strip() == "{"


def test_bytes_behind_a_break_are_named_and_what_stands_before_is_used() -> None:
    calls = [called("a", "pwd"), called("a", "ls")]
    said = [{"role": "user", "content": "go"}, {"role": "assistant", "tool_calls": calls}]
    whole = dump({"model": "kimi-k3", "messages": [*said, {"role": "tool", "content": "x" * 99}]})
    cut = whole[:-60]
    examined = seen(cut)
    [damage] = examined.damage
    # The place is that of the string which breaks off; half a message is not made up.
    assert damage.byte == cut.rindex(b'"xxx')
    assert codes(examined, Severity.INFO) == codes(
        seen(dump({"model": "kimi-k3", "messages": said})), Severity.INFO
    )


def test_checks_that_could_not_run_are_listed_with_what_they_need() -> None:
    why = {one.code: one.why for one in seen(dump(documents.MESSAGES_REPLY)).skipped}
    assert why["request-retried"].startswith("needs the messages of a request and several requests")
    assert "tool-undeclared" in why
    assert not set(why) & codes(seen(dump(documents.MESSAGES_REPLY)), Severity.INFO)


def test_the_rules_hold(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text("findings:\n  off: [id-reused]\n  severity: {pair-dropped-by-client: info}\n")
    rules = load_rules(str(path))
    for data in (joined(documents.debug_log(3)), joined(documents.noted_transcript(3))):
        examined = seen(data, rules)
        levels = {one.finding.code: one.finding.severity for one in examined.findings}
        assert "id-reused" not in levels
        assert levels["pair-dropped-by-client"] is Severity.INFO
        assert "switched off in the rules" in {one.why for one in examined.skipped}


def test_secrets_do_not_come_out() -> None:
    error = {"error": {"message": f"Incorrect API key {KEY}", "type": "invalid_request_error"}}
    records = [*documents.transcript(3, KEY + "_{}"), {"type": "user", "message": KEY}]
    for data in (dump(error), joined(records), joined([*documents.debug_log(1), KEY])):
        assert KEY not in str(seen(data))


def test_secrets_are_found_by_structure_and_once_decoded(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text("redact: {json_paths: ['$..command']}\n")
    redactor = Redactor(load_rules(str(path)))
    for data in (dump(documents.MESSAGES_REQUEST), joined(documents.transcript())):
        known = recognise(read("evidence", data), redactor)
        assert b'"**"' in known.text
        assert '"ls"' not in known.text.decode() + str(known.value)
    # Nobody looks for JSON's escapes in a log, but what is said of it is looked at again.
    error = json.dumps(
        {"type": "error", "error": {"type": "invalid_request_error", "message": "@"}}
    )
    line = "2026-11-29T12:00:09.000Z [ERROR] API error (attempt 1/11): 400 400 "
    examined = seen(joined([line + error.replace("@", "no \\u0073" + KEY[1:])]))
    assert "no ***" in str(examined.findings)
    assert KEY not in str(examined)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b" \n\t\n", "is empty"),
        (b"hello", "not known; it begins with 'hello'"),
        (b"{}", "not known"),
        (b'{"a": 1}', "not known"),
        (b"[1, 2]", "not known"),
        (b"\x1f\x8bnot gzip", "cannot be unpacked"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "not known"),
        (b'{"v":1,"status":"ok","arguments_sha256":"x","tool":"Bash"}\n', "give the traffic.flow"),
        (b'{"v":1,"code":"id-reused","severity":"error","party":"api"}\n', "moontap explain"),
        (b'{\n  "v": 1,\n  "mitmproxy": "12.3.1"\n}\n', "give the folder"),
        (b'{"model":"k","messages":"hello"}', "its `messages` is a string; it must be a list such"),
        (b'{"messages":"hello"}', "its `messages` is a string"),
        (b'{"messages":"hello","id":7}', "not known"),
        (b'{"model":"k","mesages":[{"role":"user"}]}', "`mesages`, where `messages` is meant"),
        (b"[" * 200_000, "looks like JSON, but it is nested too deeply"),
        (b'{"messages": [], "n": %s}' % (b"7" * 5000), "it holds a number of 5,000 digits"),
        (gzip.compress(b"", mtime=0), "is empty"),
    ],
)
def test_what_is_not_known_is_said_with_what_would_do(data: bytes, words: str) -> None:
    with pytest.raises(Unusable, match=words) as raised:
        seen(data)
    if isinstance(raised.value, Unknown):
        assert "a capture folder, a flow file" in str(raised.value)


def test_a_folder_stands_for_what_it_holds(tmp_path: Path) -> None:
    project = tmp_path / "projects" / "-w"
    sub = project / "s1" / "subagents"
    sub.mkdir(parents=True)
    (project / "s1.jsonl").write_bytes(joined(documents.transcript()))
    (sub / "agent-a.jsonl").write_bytes(joined(documents.transcript(2, "x_{}")))
    (project / "pairs.jsonl").write_text("{}")
    found = files(str(tmp_path / "projects"))
    assert [Path(one).name for one in found] == ["agent-a.jsonl", "s1.jsonl"]
    kinds = {examine(*_opened(one)).kind for one in found}
    assert kinds == {Kind.TRANSCRIPT}
    (tmp_path / "none").mkdir()
    with pytest.raises(Unusable, match="holds no flow file"):
        files(str(tmp_path / "none"))


def _opened(name: str) -> tuple[Any, Rules, Kind | None]:
    source, kind = opened(name)
    return source, Rules(), kind
