from __future__ import annotations

from pathlib import Path

import pytest

from moontap.standin import (
    Call,
    Conversation,
    Fault,
    FaultKind,
    Pacing,
    Script,
    ScriptError,
    Step,
    load_script,
    parse_script,
    script_yaml,
)


def test_the_documented_script_is_read_whole() -> None:
    example = (script_yaml.__doc__ or "").partition("\n\n")[2]
    assert parse_script(example.partition("an error.\n\n")[2] or example) == Script(
        model="kimi-k3",
        seed=7,
        default=Conversation(
            steps=(
                Step(
                    text="I look where I am.",
                    thinking="Where am I?",
                    calls=(Call("Bash", {"command": "pwd", "description": "where"}),),
                ),
                Step(
                    calls=(
                        Call("Bash", {"command": "ls", "description": "files"}),
                        Call("Bash", {"command": "date", "description": "time"}),
                    )
                ),
            ),
            final="All done.",
        ),
        conversations=(Conversation(match="You are a helper", final="Helped."),),
        pacing=Pacing(0, 0, 12),
        faults=(
            Fault(FaultKind.CUT, 3, after_events=5),
            Fault(FaultKind.STATUS, 1, status=429, body="slow down"),
            Fault(FaultKind.ENCODING, None, encoding="br", header=False),
        ),
    )


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        pytest.param("", 1, ["empty", "steps"], id="empty"),
        pytest.param("- a", 1, ["must be keys with values", "steps"], id="not a mapping"),
        pytest.param("final: [", 1, ["not valid YAML"], id="broken YAML"),
        pytest.param("final: a\nsteps: []\n\tx: 1", 3, ["not valid YAML"], id="tab"),
        pytest.param("final: \x00", 1, ["not valid YAML"], id="control character"),
        pytest.param("final: x\nstep: []", 2, ["'step'", "did you mean 'steps'"], id="near key"),
        pytest.param("zzz: 1", 1, ["'zzz'", "known: conversations, f"], id="unknown key"),
        pytest.param(
            "final: a\nfinal: b", 2, ["'final' stands here and in line 1"], id="key twice"
        ),
        pytest.param("final: 3", 1, ["must be text", "quotes"], id="number for text"),
        pytest.param("seed: x", 1, ["'seed'", "a whole number"], id="seed"),
        pytest.param("seed: true", 1, ["a whole number"], id="boolean for number"),
        pytest.param("steps: {}", 1, ["a list"], id="mapping for list"),
        pytest.param("steps:\n  - text: x", 2, ["lacks 'calls'"], id="no calls"),
        pytest.param("steps:\n  - calls: []", 2, ["no calls", "'final'"], id="empty calls"),
        pytest.param("steps: [{calls: [{}]}]", 1, ["lacks 'name'"], id="no name"),
        pytest.param("steps: [{calls: [{name: ''}]}]", 1, ["is empty"], id="empty name"),
        pytest.param(
            "steps:\n- calls:\n  - name: a\n    arguments: {at: 2026-01-01}",
            4,
            ["arguments.at' must be a JSON value, is a date", "quotes"],
            id="a date",
        ),
        pytest.param(
            "steps: [{calls: [{name: a, arguments: &x {y: *x}}]}]",
            1,
            ["alias of what it stands in"],
            id="circle",
        ),
        pytest.param(
            "steps: [{calls: [{name: a, arguments: {a: 1, a: 2}}]}]",
            1,
            ["'a' stands here"],
            id="argument twice",
        ),
        pytest.param("steps: [{calls: [{name: a, arguments: [1]}]}]", 1, ["text"], id="a list"),
        pytest.param("conversations: [{final: x}]", 1, ["lacks 'match'"], id="no match"),
        pytest.param("pacing: {event_ms: -1}", 1, ["0 or more"], id="negative"),
        pytest.param("pacing: {event_ms: .inf}", 1, ["'.inf'", "a finite one"], id="infinite"),
        pytest.param("pacing: {delta_chars: 0}", 1, ["1 or more"], id="zero"),
        pytest.param("faults: [{always: true}]", 1, ["lacks 'kind'"], id="no kind"),
        pytest.param("faults: [{kind: cutt}]", 1, ["did you mean 'cut'"], id="near kind"),
        pytest.param("faults:\n- kind: cut", 2, ["when", "at_request"], id="no time"),
        pytest.param(
            "faults: [{kind: cut, always: true, at_request: 1}]", 1, ["either"], id="both times"
        ),
        pytest.param("faults: [{kind: crlf, at_request: 0}]", 1, ["1 or more"], id="request 0"),
        pytest.param(
            "faults: [{kind: crlf, ms: 3, always: true}]", 1, ["no 'ms'", "no settings"], id="stray"
        ),
        pytest.param(
            "faults:\n- kind: crlf\n  always: true\n  ms: 3", 4, ["no 'ms'"], id="line of the stray"
        ),
        pytest.param(
            "faults: [{kind: status, always: true}]", 1, ["lacks 'status'"], id="no status"
        ),
        pytest.param(
            "faults: [{kind: status, status: 99, always: true}]", 1, ["200 to 599"], id="status 99"
        ),
        pytest.param(
            "faults: [{kind: encoding, encoding: lzw, always: true}]",
            1,
            ["br, gzip, zstd"],
            id="coding",
        ),
    ],
)
def test_errors_name_file_line_and_remedy(text: str, line: int, words: list[str]) -> None:
    with pytest.raises(ScriptError) as caught:
        parse_script(text, "my.yaml")
    message = str(caught.value)
    assert message.startswith(f"my.yaml:{line}: ")
    assert "; " in message
    assert "\n" not in message
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("content", "words"), [(None, "cannot be read"), (b"final: \xff", "not UTF-8")]
)
def test_unreadable_files(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "s.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ScriptError, match=words):
        load_script(path)


@pytest.mark.parametrize("kind", list(FaultKind))
def test_every_fault_kind_can_be_written(kind: FaultKind) -> None:
    needs = {
        FaultKind.STATUS: "status: 400",
        FaultKind.STALL: "ms: 5",
        FaultKind.ENCODING: "encoding: zstd",
        FaultKind.CHOICES: "choices: 3",
    }
    entry = ", ".join(filter(None, [f"kind: {kind}", "at_request: 2", needs.get(kind)]))
    (fault,) = parse_script(f"faults: [{{{entry}}}]").faults
    assert (fault.kind, fault.at_request) == (kind, 2)


def test_active_faults_are_those_of_the_request_and_the_lasting_ones() -> None:
    once, ever = Fault(FaultKind.CUT, 2), Fault(FaultKind.CRLF)
    script = Script(faults=(once, ever))
    assert script.active(1) == {FaultKind.CRLF: ever}
    assert script.active(2) == {FaultKind.CRLF: ever, FaultKind.CUT: once}
