"""The bytes of each fault, made by `Model` without a server (those of the transport itself are in
test_server.py)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moontap.standin import Call, Conversation, Fault, FaultKind, Mint, Pacing, Script, Step
from moontap.standin.coding import decode
from moontap.standin.model import Model
from moontap.standin.plan import Plan
from tests.standin.bodies import chat_request, messages_request, result, used

TWO = Step(
    text="Hi",
    calls=(Call("Bash", {"command": "pwd"}), Call("Bash", {"command": "ls"})),
)


def plan(path: str, *faults: Fault, mint: Mint = Mint.RESPONSE, stream: bool = True) -> Plan:
    script = Script(default=Conversation(steps=(TWO,)), faults=faults, seed=1)
    make = chat_request if path.startswith("/v1/chat") else messages_request
    request = make(stream=stream)
    answer, _, _ = Model(script, mint).answer("POST", path, {}, json.dumps(request).encode())
    return answer


def body(path: str, *faults: Fault, **more: Any) -> bytes:
    return b"".join(plan(path, *faults, **more).chunks)


def objects(raw: bytes) -> list[dict[str, Any]]:
    lines = raw.decode().splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


def fragments(raw: bytes) -> list[dict[str, Any]]:
    """The tool-call fragments of a Chat stream, of every choice."""
    return [
        fragment | {"choice": choice["index"]}
        for event in objects(raw)
        for choice in event["choices"]
        for fragment in choice["delta"].get("tool_calls", [])
    ]


MESSAGES = "/anthropic/v1/messages?beta=true"
CHAT = "/v1/chat/completions"


def test_a_messages_stream_without_faults() -> None:
    raw = body(MESSAGES)
    assert raw.startswith(b'event: message_start\ndata: {"type":"message_start","message":{"id":"')
    assert raw.endswith(b'event: message_stop\ndata: {"type":"message_stop"}\n\n')
    events = objects(raw)
    starts = [e["content_block"] for e in events if e["type"] == "content_block_start"]
    assert [s.get("id") for s in starts] == [None, "Bash_0", "Bash_1"]
    pieces = [e["delta"]["partial_json"] for e in events
              if e["type"] == "content_block_delta" and e["index"] == 1]  # fmt: skip
    assert "".join(pieces) == '{"command":"pwd"}'
    assert len(pieces) >= 3
    assert events[-2]["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}
    assert events[0]["message"]["id"].startswith("chatcmpl-")


def test_a_chat_stream_without_faults() -> None:
    raw = body(CHAT)
    assert raw.endswith(b"data: [DONE]\n\n")
    assert b"event:" not in raw
    parts = fragments(raw)
    assert [p["id"] for p in parts if "id" in p] == ["Bash:0", "Bash:1"]
    written = [p["function"]["arguments"] for p in parts if p["index"] == 0]
    assert "".join(written) == '{"command":"pwd"}'
    assert len(written) >= 3
    (last,) = objects(raw)[-1]["choices"]
    assert last["finish_reason"] == "tool_calls"
    assert last["usage"]["completion_tokens"] > 0


FRAMING = [
    (MESSAGES, FaultKind.CRLF, lambda raw: raw.replace(b"\n", b"\r\n")),
    (CHAT, FaultKind.CRLF, lambda raw: raw.replace(b"\n", b"\r\n")),
    (MESSAGES, FaultKind.DATA_NO_SPACE,
     lambda raw: raw.replace(b"event: ", b"event:").replace(b"data: ", b"data:")),
    (CHAT, FaultKind.DATA_NO_SPACE, lambda raw: raw.replace(b"data: ", b"data:")),
    (MESSAGES, FaultKind.NO_EVENT_LINE,
     lambda raw: b"".join(x for x in raw.splitlines(True) if not x.startswith(b"event:"))),
    (CHAT, FaultKind.NO_EVENT_LINE, lambda raw: raw),
    (CHAT, FaultKind.SPACE_SEPARATOR, lambda raw: raw.replace(b"\n\n", b"\n \n")),
    (MESSAGES, FaultKind.SPACE_SEPARATOR, lambda raw: raw),
    (CHAT, FaultKind.COMMENTS,
     lambda raw: raw.replace(b"\n\n", b"\n\n: keep-alive\n\n", raw.count(b"\n\n") - 1)),
    (MESSAGES, FaultKind.COMMENTS,
     lambda raw: raw.replace(
         b"\n\n",
         b'\n\n: keep-alive\n\nevent: ping\ndata: {"type": "ping"}\n\n',
         raw.count(b"\n\n") - 1)),
]  # fmt: skip


@pytest.mark.parametrize(("path", "kind", "expected"), FRAMING)
def test_framing_faults_change_the_framing_alone(path: str, kind: FaultKind, expected: Any) -> None:
    assert body(path, Fault(kind)) == expected(body(path))


def test_double_stop() -> None:
    stops = [e["index"] for e in objects(body(MESSAGES, Fault(FaultKind.DOUBLE_STOP)))
             if e["type"] == "content_block_stop"]  # fmt: skip
    assert stops == [0, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("fault", "ids"),
    [
        (Fault(FaultKind.SAME_ID), ["Bash_0", "Bash_0"]),
        (Fault(FaultKind.SAME_ID, id="undefined"), ["undefined", "undefined"]),
        (Fault(FaultKind.EMPTY_ID), ["", ""]),
        (Fault(FaultKind.LATE_ID), ["Bash_0", "Bash_1"]),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_ids_of_messages(fault: Fault, ids: list[str], stream: bool) -> None:
    raw = body(MESSAGES, fault, stream=stream)
    if stream:
        blocks = [e["content_block"] for e in objects(raw) if e["type"] == "content_block_start"]
    else:
        blocks = json.loads(raw)["content"]
    assert [b["id"] for b in blocks if b["type"] == "tool_use"] == ids


def test_id_every_fragment() -> None:
    ids = [p["id"] for p in fragments(body(CHAT, Fault(FaultKind.ID_EVERY_FRAGMENT)))]
    assert len(ids) == len(set(ids)) > 4


def test_null_id_continuation() -> None:
    ids = [p["id"] for p in fragments(body(CHAT, Fault(FaultKind.NULL_ID_CONTINUATION)))]
    assert [i for i in ids if i] == ["Bash:0", "Bash:1"]
    assert ids.count(None) == len(ids) - 2 > 2


def test_late_id() -> None:
    first, second, *_ = fragments(body(CHAT, Fault(FaultKind.LATE_ID)))
    assert "id" not in first
    assert first["function"]["name"] == "Bash"
    assert second["id"] == "Bash:0"


def test_interleaved_chat() -> None:
    order = [p["index"] for p in fragments(body(CHAT, Fault(FaultKind.INTERLEAVED)))]
    assert order[:4] == [0, 1, 0, 1]


def test_interleaved_messages() -> None:
    order = [(e["type"], e["index"]) for e in objects(body(MESSAGES, Fault(FaultKind.INTERLEAVED)))
             if e.get("index")]  # fmt: skip
    assert order[:4] == [
        ("content_block_start", 1),
        ("content_block_start", 2),
        ("content_block_delta", 1),
        ("content_block_delta", 2),
    ]
    assert order[-2:] == [("content_block_stop", 1), ("content_block_stop", 2)]


@pytest.mark.parametrize("stream", [True, False])
def test_choices(stream: bool) -> None:
    raw = body(CHAT, Fault(FaultKind.CHOICES, choices=3), stream=stream)
    if stream:
        ids = [(p["choice"], p["id"]) for p in fragments(raw) if "id" in p]
    else:
        ids = [(c["index"], call["id"]) for c in json.loads(raw)["choices"]
               for call in c["message"]["tool_calls"]]  # fmt: skip
    assert sorted(ids) == [(c, f"Bash:{i}") for c in range(3) for i in range(2)]


@pytest.mark.parametrize(
    ("path", "last"),
    [
        (
            MESSAGES,
            b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error",'
            b'"message":"full"}}\n\n',
        ),
        (CHAT, b'data: {"error":{"message":"full","type":"server_error"}}\n\n'),
    ],
)
def test_error_event(path: str, last: bytes) -> None:
    answer = plan(path, Fault(FaultKind.ERROR_EVENT, after_events=2, message="full"))
    assert (answer.status, len(answer.chunks), answer.chunks[-1]) == (200, 3, last)
    assert answer.chunks[:2] == plan(path).chunks[:2]


@pytest.mark.parametrize(
    ("path", "fault", "content_type", "expected"),
    [
        (MESSAGES, Fault(FaultKind.STATUS, status=400, message="m"), "application/json",
         b'{"type":"error","error":{"type":"invalid_request_error","message":"m"}}'),
        (MESSAGES, Fault(FaultKind.STATUS, status=401, message="m"), "application/json",
         b'{"error":{"message":"m","type":"authentication_error"}}'),
        (CHAT, Fault(FaultKind.STATUS, status=400, message="m"), "application/json",
         b'{"error":{"message":"m","type":"invalid_request_error"}}'),
        (CHAT, Fault(FaultKind.STATUS, status=504, body="<html>"), "text/html", b"<html>"),
        (CHAT, Fault(FaultKind.STATUS, status=429, body="no"), "text/plain; charset=utf-8", b"no"),
        (CHAT, Fault(FaultKind.STATUS, status=429, body='{"a":1}'), "application/json", b'{"a":1}'),
        (CHAT, Fault(FaultKind.STATUS, status=200, body="x", content_type="a/b"), "a/b", b"x"),
    ],
)  # fmt: skip
def test_status(path: str, fault: Fault, content_type: str, expected: bytes) -> None:
    answer = plan(path, fault)
    assert (answer.status, answer.content_type) == (fault.status, content_type)
    assert answer.chunks == (expected,)


@pytest.mark.parametrize("path", [MESSAGES, CHAT])
@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
@pytest.mark.parametrize("header", [True, False])
def test_encoding(path: str, coding: str, header: bool) -> None:
    answer = plan(path, Fault(FaultKind.ENCODING, encoding=coding, header=header))
    assert decode(b"".join(answer.chunks), coding) == body(path)
    assert (("content-encoding", coding) in answer.headers) == header


@pytest.mark.parametrize("path", [MESSAGES, CHAT])
def test_whole_and_empty(path: str) -> None:
    whole = plan(path, Fault(FaultKind.WHOLE))
    assert (whole.content_type, whole.chunks) == (
        "application/json",
        plan(path, stream=False).chunks,
    )
    empty = plan(path, Fault(FaultKind.EMPTY))
    assert (empty.status, empty.chunks) == (200, ())


@pytest.mark.parametrize(
    ("fault", "stream", "length"),
    [
        (Fault(FaultKind.CUT, after_events=0), True, lambda chunks: 0),
        (Fault(FaultKind.CUT, after_events=2), True, lambda chunks: len(b"".join(chunks[:2]))),
        (Fault(FaultKind.CUT, after_bytes=77), True, lambda chunks: 77),
        (Fault(FaultKind.CUT), False, lambda chunks: len(chunks[0]) // 2),
    ],
)
@pytest.mark.parametrize("path", [MESSAGES, CHAT])
def test_cut(path: str, fault: Fault, stream: bool, length: Any) -> None:
    answer = plan(path, fault, stream=stream)
    sound = plan(path, stream=stream).chunks
    assert answer.cut
    assert b"".join(answer.chunks) == b"".join(sound)[: length(sound)]


def test_waits() -> None:
    script = Script(
        pacing=Pacing(first_byte_ms=5, event_ms=1),
        faults=(Fault(FaultKind.STALL, ms=100, after_events=2),),
    )
    raw = json.dumps(messages_request(stream=True)).encode()
    answer, _, _ = Model(script).answer("POST", MESSAGES, {}, raw)
    assert [answer.waits[i] for i in range(4)] == [5, 1, 101, 1]


@pytest.mark.parametrize(("forgotten", "call_id"), [(0, "Bash_2"), (1, "Bash_1"), (9, "Bash_0")])
def test_forget_makes_history_ids_collide(forgotten: int, call_id: str) -> None:
    faults = (Fault(FaultKind.FORGET, calls=forgotten),) if forgotten else ()
    request = messages_request(used("x", "1"), result("x"), used("y", "2"), result("y"))
    model = Model(Script(default=Conversation(steps=(TWO,)), faults=faults), Mint.HISTORY)
    _, _, note = model.answer("POST", MESSAGES, {}, json.dumps(request).encode())
    assert note["ids"][0] == call_id


def test_a_seed_makes_the_bytes_repeatable() -> None:
    for path in (MESSAGES, CHAT):
        assert body(path, mint=Mint.UNIQUE) == body(path, mint=Mint.UNIQUE)


def test_the_same_request_twice_gets_two_message_ids() -> None:
    model = Model(Script(seed=3, default=Conversation(steps=(TWO,))))
    raw = json.dumps(messages_request()).encode()
    notes = [model.answer("POST", MESSAGES, {}, raw)[2] for _ in range(2)]
    assert notes[0]["message_id"] != notes[1]["message_id"]
    assert [n["ids"] for n in notes] == [["Bash_0", "Bash_1"]] * 2


def test_faults_count_only_requests_that_take_part() -> None:
    model = Model(Script(faults=(Fault(FaultKind.STATUS, 2, status=503),),
                         default=Conversation(steps=(TWO,))))  # fmt: skip
    sent = [messages_request(tools=[]), messages_request(), messages_request(tools=[]),
            messages_request(), messages_request()]  # fmt: skip
    plans = [model.answer("POST", MESSAGES, {}, json.dumps(b).encode())[0] for b in sent]
    assert [p.status for p in plans] == [200, 200, 200, 503, 200]


def test_thinking_comes_first_and_is_signed() -> None:
    step = Step(text="t", thinking="hm, so", calls=(Call("Bash"),))
    model = Model(Script(default=Conversation(steps=(step,))))

    def raw(path: str, request: dict[str, Any]) -> bytes:
        return b"".join(model.answer("POST", path, {}, json.dumps(request).encode())[0].chunks)

    kinds = [e["delta"]["type"] for e in objects(raw(MESSAGES, messages_request(stream=True)))
             if e["type"] == "content_block_delta"]  # fmt: skip
    assert kinds[:3] == ["thinking_delta", "signature_delta", "text_delta"]
    blocks = json.loads(raw(MESSAGES, messages_request()))["content"]
    assert blocks[0]["type"] == "thinking"
    assert blocks[0]["signature"]
    deltas = [c["delta"] for e in objects(raw(CHAT, chat_request(stream=True)))
              for c in e["choices"]]  # fmt: skip
    assert [next(iter(d)) for d in deltas[1:4]] == ["reasoning_content", "content", "tool_calls"]
    message = json.loads(raw(CHAT, chat_request()))["choices"][0]["message"]
    assert message["reasoning_content"] == "hm, so"


def test_usage_on_top_when_asked() -> None:
    asked = chat_request(stream=True, stream_options={"include_usage": True})
    chunks = Model().answer("POST", CHAT, {}, json.dumps(asked).encode())[0].chunks
    last = json.loads(chunks[-2][6:])
    assert last["choices"] == []
    assert last["usage"]["total_tokens"] > 0
