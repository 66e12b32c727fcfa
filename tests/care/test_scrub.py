"""Whole flows cleaned: every place where a value can stand, its escapes, splits and encodings."""

import base64
import copy
import gzip
import io
import json
import re
from collections.abc import Callable
from typing import Any

import brotli  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mitmproxy import http
from mitmproxy.io import FlowReader, FlowWriter
from mitmproxy.net import encoding as encodings
from mitmproxy.test import tflow

from moontap.capture import metadata
from moontap.capture.exchange import client_request
from moontap.care.connections import forget
from moontap.care.identities import Known
from moontap.care.parts import Finding
from moontap.care.scrub import Scrubber, findings
from moontap.care.words import Kind
from moontap.identity import derived
from moontap.ids import Style
from moontap.jsonpaths import compile_path
from moontap.rewrite import heal
from moontap.rules import Redact, Rules, Scrub
from moontap.wire.protocol import of_request, read_shape
from tests import samples
from tests.care.planted import RULES, TEXT, TOKEN, URL, UUID, VALUES, dump, flow_of, left
from tests.redact.test_body import cut, escaped


def scrubbed(flow: http.HTTPFlow, rules: Rules = RULES, salt: str = "") -> http.HTTPFlow:
    """The flow itself, cleaned; that this is so once and for all is checked on the way."""
    known = Known()
    known.learn(flow)
    Scrubber(rules, known, salt).scrub(flow)
    assert findings(flow, rules) == []
    once = copy.deepcopy(flow.get_state())
    again = Known()
    again.learn(flow)
    assert not Scrubber(rules, again, "another").scrub(flow)
    assert flow.get_state() == once
    return flow


def stored(flow: http.HTTPFlow) -> bytes:
    """What mitmproxy writes for a flow; it must be readable again."""
    file = io.BytesIO()
    FlowWriter(file).add(flow)
    assert len(list(FlowReader(io.BytesIO(file.getvalue())).stream())) == 1
    return file.getvalue()


def put(flow: http.HTTPFlow, place: str, text: str) -> None:
    """Plant a text."""
    assert flow.response
    match place.split():
        case ["request", "header"]:
            flow.request.headers["x-note"] = text
        case ["response", "header"]:
            flow.response.headers["x-note"] = text
        case ["trailer"]:
            flow.response.trailers = http.Headers([(b"x-note", text.encode())])
        case ["path"]:
            flow.request.path = f"/{VALUES['name']}/anthropic/v1/messages"
        case ["query"]:
            flow.request.query["note"] = text
        case ["host"]:
            flow.request.host = "gateway.rosalind.example"
            flow.request.headers["host"] = "gateway.rosalind.example"
            flow.server_conn.address = ("gateway.rosalind.example", 443)
        case ["request", "body"]:
            flow.request.raw_content = dump({"messages": [{"role": "user", "content": text}]})
        case ["nested"]:
            flow.request.raw_content = dump({"a": json.dumps({"b": json.dumps([text])})})
        case ["key"]:
            flow.request.raw_content = dump({text: 1})
        case ["plain", "body"]:
            flow.request.raw_content = text.encode()
        case ["form"]:
            line = 'Content-Disposition: form-data; name="a"\r\n\r\n'
            flow.request.raw_content = f"--x\r\n{line}{text}\r\n--x--".encode()
        case ["response", "body"]:
            flow.response.raw_content = dump([text])
        case ["upstream", "body"]:
            flow.metadata[metadata.UPSTREAM_BODY] = dump([text])
        case ["sse", "comment"]:
            flow.response.raw_content = f": {text}\n\ndata: {{}}\n\n".encode()
        case ["reason"]:
            flow.response.reason = f"not {VALUES['name']}"
        case ["error"]:
            flow.error = tflow.terr(text)
        case ["comment"]:
            flow.comment = text
        case ["metadata"]:
            flow.metadata["mine"] = {"a": [text, 1, None, text.encode()]}
        case ["marked"]:
            flow.marked = text
        case ["close", "reason"]:
            flow.websocket = tflow.twebsocketflow().websocket
            assert flow.websocket
            flow.websocket.close_reason = text
        case ["websocket"]:
            flow.websocket = tflow.twebsocketflow().websocket
            assert flow.websocket
            flow.websocket.messages[0].content = text.encode()


PLACES = {
    "request header": "request header x-note",
    "response header": "response header x-note",
    "trailer": "response trailer x-note",
    "path": "request path",
    "query": "request query",
    "host": "request host",
    "request body": "request body $.messages[0].content",
    "nested": "request body $.a",
    "key": "request body $",
    "plain body": "request body byte 0",
    "form": "request body byte",
    "response body": "response body $[0]",
    "upstream body": "metadata moontap.upstream_body $[0]",
    "sse comment": "response body before event 1",
    "reason": "response reason",
    "error": "error",
    "comment": "comment",
    "metadata": "metadata mine",
    "websocket": "websocket message 0",
    "marked": "marked",
    "close reason": "websocket close reason",
}


@pytest.mark.parametrize("place", PLACES)
def test_every_place(place: str) -> None:
    flow = flow_of()
    put(flow, place, TEXT)
    assert left(stored(flow)) or place in ("path", "host")
    found = findings(flow, RULES)
    assert any(one.where.startswith(PLACES[place]) for one in found)
    said = "\n".join(map(str, found))
    scrubbed(flow)
    data = stored(flow)
    assert left(data) == set()
    assert b"rosalind" not in data.lower()
    assert left(said.encode()) == set()
    assert of_request("POST", flow.request.path)


@pytest.mark.parametrize("how", ["plain", "escaped", "slashes"])
def test_every_spelling_gives_the_same(how: str) -> None:
    value = {"a": TEXT, "b": [json.dumps({"c": TEXT}), f"say {json.dumps(TEXT)}!"]}
    flow = scrubbed(flow_of(dump(value, how), dump(value)))
    assert flow.response
    one, other = flow.request.raw_content or b"", flow.response.raw_content or b""
    assert json.loads(one) == json.loads(other)
    assert json.loads(json.loads(one)["b"][0])["c"] == json.loads(one)["a"]
    assert len(one) == len(dump(value, how))
    assert left(one) == left(other) == set()


def test_json_paths() -> None:
    value = {
        "customer": {"name": VALUES["selected"], "id": 4711, "n": [0, -1.5, True, None, ""]},
        "other": [4711, "x"],
        "arguments": json.dumps({"customer": json.dumps({"a": "b/c", "n": 7})}),
    }
    flow = scrubbed(flow_of(dump(value), dump({"customer": VALUES["selected"]})))
    assert flow.response
    new = json.loads(flow.request.raw_content or b"")
    assert new["other"] == value["other"]
    assert re.fullmatch(r"[a-z]{3} [a-z]{4} [a-z]{5} \d{4}", new["customer"]["name"])
    assert new["customer"]["id"] != 4711
    assert len(str(new["customer"]["id"])) == 4
    assert new["customer"]["n"][2:] == [True, None, ""]
    assert json.loads(flow.response.raw_content or b"") == {"customer": new["customer"]["name"]}
    inner = json.loads(json.loads(new["arguments"])["customer"])
    assert inner.keys() == {"a", "n"}
    assert re.fullmatch(r"[a-z]/[a-z]", inner["a"])


def test_a_path_that_selects_all_leaves_the_protocol() -> None:
    rules = Rules(scrub=Scrub(json_paths=(compile_path("$..*"),)))
    body = samples.messages_request([("Bash_0", "rm", "gone")])
    flow = scrubbed(flow_of(body, b"".join(samples.messages_events("Bash_0", command="rm"))), rules)
    wire = of_request("POST", URL)
    assert wire
    assert flow.response
    request = wire.read_request(flow.request.raw_content or b"")
    reply = read_shape(wire, flow.response.raw_content or b"")
    assert b"rm" not in (flow.request.raw_content or b"")
    history = [call for message in request.messages for call in message.calls]
    assert [call.id for call in history] == [call.id for call in reply.calls]
    assert request.messages[2].results[0].id == history[0].id


# --- streams ------------------------------------------------------------------------------------

ARGUMENTS = json.dumps({"command": TEXT, "customer": {"n": 4711, "s": VALUES["selected"]}})


def messages_stream(pieces: list[str]) -> bytes:
    head = b'data: {"type":"message_start","message":{"id":"msg_1","content":[]}}\n\n'
    block = {"type": "tool_use", "id": "Bash_0", "name": "Bash", "input": {}}
    events: list[dict[str, Any]] = [{"type": "content_block_start", "content_block": block}]
    events += [
        {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": one}}
        for one in pieces
    ]
    return head + b"".join(b"data: %s\n\n" % dump({**event, "index": 0}) for event in events)


def chat_stream(pieces: list[str]) -> bytes:
    first = {"index": 0, "id": "Bash:0", "function": {"name": "Bash", "arguments": ""}}
    calls: list[dict[str, Any]] = [
        first,
        *({"index": 0, "function": {"arguments": one}} for one in pieces),
    ]
    return b"".join(
        b"data: %s\r\n\r\n" % dump({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
        for call in calls
    )


STREAMS: list[tuple[str, Callable[[list[str]], bytes]]] = [
    (URL, messages_stream),
    ("https://api.moonshot.cn/v1/chat/completions", chat_stream),
]


def arguments_of(flow: http.HTTPFlow) -> bytes:
    wire = of_request("POST", flow.request.path)
    assert wire
    assert flow.response
    return read_shape(wire, flow.response.raw_content or b"").calls[0].arguments.encode()


@pytest.mark.parametrize(("url", "make"), STREAMS, ids=["messages", "chat"])
def test_every_split_gives_the_same(url: str, make: Callable[[list[str]], bytes]) -> None:
    whole = flow_of(b"{}", make([ARGUMENTS]), kind="text/event-stream", url=url)
    expected = arguments_of(scrubbed(whole))
    assert json.loads(expected).keys() == {"command", "customer"}
    assert left(expected) == set()
    scrubber = Scrubber(RULES, Known(), "")
    for at in range(1, len(ARGUMENTS)):
        stream = make([ARGUMENTS[:at], ARGUMENTS[at:]])
        flow = flow_of(b"{}", stream, kind="text/event-stream", url=url)
        scrubber.scrub(flow)
        assert flow.response
        assert len(flow.response.raw_content or b"") == len(stream)
        assert arguments_of(flow) == expected
    flow = scrubbed(flow_of(b"{}", make(list(ARGUMENTS)), kind="text/event-stream", url=url))
    assert arguments_of(flow) == expected
    history = scrubbed(flow_of(dump({"input": json.loads(ARGUMENTS), "arguments": ARGUMENTS})))
    body = json.loads(history.request.raw_content or b"")
    assert body["input"] == json.loads(expected) == json.loads(body["arguments"])


@pytest.mark.parametrize(
    "word", ["Rosalind", "Éa", "欧阳", "𠮷田", "AT&T", "O'Hara", "/srv/mül ler"]
)
@settings(max_examples=40)  # for each of seven words
@given(data=st.data())
def test_a_search_in_raw_bytes_misses_no_spelling(word: str, data: st.DataObject) -> None:
    """Without patterns and paths only what may hold a word is looked at."""
    rules = Rules(scrub=Scrub(paths=(word,)) if "/" in word else Scrub(names=(word,)))
    said = f"so {data.draw(st.sampled_from([word, word.upper(), word.lower()]))} it"
    nested = data.draw(escaped(json.dumps([said])))
    events = "".join(
        f'data: {{"index":0,"delta":{{"partial_json":"{data.draw(escaped(piece))}"}}}}\n\n'
        for piece in data.draw(cut(said))
    )
    body = f'{{"a":"{data.draw(escaped(said))}","arguments":"{nested}"}}'
    flow = scrubbed(flow_of(body.encode(), events.encode()), rules)
    assert flow.response
    one = json.loads(flow.request.raw_content or b"")
    lines = (flow.response.raw_content or b"").decode().splitlines()[::2]
    joined = "".join(json.loads(line[6:])["delta"]["partial_json"] for line in lines)
    assert one["a"] == joined == json.loads(one["arguments"])[0]
    assert word.lower() not in joined.lower()
    assert joined.startswith("so ")
    assert joined.endswith(" it")


def test_pieces_that_a_path_selects_count_as_one_text() -> None:
    rules = Rules(scrub=Scrub(json_paths=(compile_path("$..text"),)))
    pieces = ["The who", "le tr", "uth"]
    deltas = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": one}}
        for one in pieces
    ]
    stream = b"".join(b"data: %s\n\n" % dump(delta) for delta in deltas)
    history = dump({"content": [{"type": "text", "text": "".join(pieces)}]})
    flow = scrubbed(flow_of(history, stream, kind="text/event-stream"), rules)
    assert flow.response
    said = "".join(
        json.loads(line[6:])["delta"]["text"]
        for line in (flow.response.raw_content or b"").splitlines()
        if line
    )
    assert re.fullmatch(r"T?[A-Z][a-z]{2} [a-z]{5} [a-z]{5}", said)
    assert json.loads(flow.request.raw_content or b"")["content"][0]["text"] == said


@pytest.mark.parametrize("names", [("data", "event", "id", "content_block_stop"), ("text", "role")])
def test_names_that_are_words_of_the_protocol(names: tuple[str, ...]) -> None:
    rules = Rules(scrub=Scrub(names=names))
    stream = b": data is here\n" + b"".join(samples.messages_events("Bash_0"))
    body = samples.messages_request([("Bash_0", "a text of my role", "event data")])
    flow = scrubbed(flow_of(body, stream, kind="text/event-stream"), rules)
    assert flow.response
    kept = flow.response.raw_content or b""
    assert kept.partition(b"\n")[2] == stream.partition(b"\n")[2]
    assert json.loads(flow.request.raw_content or b"").keys() == json.loads(body).keys()
    assert (b"text of my role" in (flow.request.raw_content or b"")) == ("text" not in names)


# --- identities, secrets, connections -----------------------------------------------------------


def test_identities_are_the_same_everywhere() -> None:
    user = json.dumps({"device_id": "ab12" * 16, "account_uuid": "", "session_id": UUID})
    body = {
        "metadata": {"user_id": user},
        "messages": [{"role": "user", "content": f"~/.claude/{UUID}.jsonl {UUID[:-1]}0"}],
    }
    headers = {
        "x-claude-code-session-id": UUID,
        "user-agent": "claude-cli/2.1.328",
        "x-forwarded-for": "203.0.113.77, 127.0.0.1",
        "openai-organization": "org-abc123",
    }
    flow = flow_of(dump(body), b'["org-abc123 from 203.0.113.77"]', headers)
    assert flow.response
    flow.response.headers["msh-request-id"] = "0a1b2c3d-1234-4abc-8def-1234567890ab"
    flow.metadata["moontap.session"] = UUID
    scrubbed(flow)
    session = flow.request.headers["x-claude-code-session-id"]
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}", session)
    assert session != UUID
    assert flow.metadata["moontap.session"] == session
    new = json.loads(flow.request.raw_content or b"")
    named = json.loads(new["metadata"]["user_id"])
    assert named["session_id"] == session
    assert re.fullmatch("[0-9a-f]{64}", named["device_id"])
    assert new["messages"][0]["content"] == f"~/.claude/{session}.jsonl {UUID[:-1]}0"
    # what a stranger can make nothing of, and support asks for
    assert flow.request.headers["user-agent"] == "claude-cli/2.1.328"
    assert flow.response.headers["msh-request-id"].startswith("0a1b2c3d")
    data = stored(flow)
    assert b"org-abc123" not in data
    assert b"203.0.113.77" not in data
    assert b"127.0.0.1" in data


def test_a_derived_session_follows_its_text() -> None:
    flows = []
    for history in ([], [("Bash_0", "ls", "x")]):
        flow = flow_of(samples.messages_request(history, opening=f"I am {VALUES['name']}"))
        flow.metadata["moontap.session"] = derived(f"I am {VALUES['name']}")
        flows.append(scrubbed(flow))
    wire = of_request("POST", URL)
    assert wire
    for flow in flows:
        opening = wire.read_request(client_request(flow)).opening
        assert flow.metadata["moontap.session"] == derived(opening)
        assert VALUES["name"] not in opening


def test_secrets_as_ever_and_across_flows() -> None:
    first = flow_of(dump({"a": f"{TOKEN} of {VALUES['name']}"}))
    second = flow_of(b"{}", headers={"authorization": f"Bearer {TOKEN}", "cookie": "a=b"})
    second.metadata["proxyauth"] = ["me", "made-up-password"]
    known = Known()
    for flow in (first, second):
        known.learn(flow)
    scrubber = Scrubber(RULES, known)
    where = [one.where for one in findings(first, RULES, known) if one.kind is Kind.SECRET]
    assert where == ["request body $.a"]
    assert scrubber.scrub(first)[Kind.SECRET] == 1
    assert scrubber.scrub(second)[Kind.SECRET] == 3
    assert re.fullmatch(r"\*{18} of [A-Z][a-z]{7}", json.loads(first.request.content or b"")["a"])
    assert second.request.headers["authorization"] == "Bearer ***"
    assert second.metadata["proxyauth"] == ["***", "***"]
    assert findings(second, RULES, known) == []


KEY = "sk-aB3dE5gH7jK9mN1pQ3rS5tU7"


@pytest.mark.parametrize(
    ("where", "plant"),
    [
        ("request method", lambda flow: setattr(flow.request.data, "method", KEY.encode())),
        ("request scheme", lambda flow: setattr(flow.request, "scheme", KEY)),
        ("request http version", lambda flow: setattr(flow.request, "http_version", KEY)),
        ("response http version", lambda flow: setattr(flow.response, "http_version", KEY)),
        ("request host", lambda flow: setattr(flow.request.data, "host", f"{KEY}.example")),
        ("request header names", lambda flow: flow.request.headers.update({f"x-{KEY}": KEY})),
        ("response header names", lambda flow: flow.response.headers.update({f"x-{KEY}": KEY})),
        (
            "response trailer names",
            lambda flow: setattr(flow.response, "trailers", http.Headers([(KEY.encode(), b"1")])),
        ),
        ("metadata keys", lambda flow: flow.metadata.update({KEY: KEY})),
        ("metadata mine", lambda flow: flow.metadata.update({"mine": {KEY: 1}})),
        ("marked", lambda flow: setattr(flow, "marked", KEY)),
        ("request query", lambda flow: setattr(flow.request, "path", f"/v1/messages?{KEY}")),
    ],
)
def test_secrets_in_small_places(where: str, plant: Callable[[http.HTTPFlow], None]) -> None:
    flow = flow_of(b'{"a":1}')
    forget(flow)
    assert findings(flow) == []
    plant(flow)
    found = [str(one) for one in findings(flow) if one.kind is not Kind.CONNECTION]
    assert found == [f"{where}: secret"]
    scrubbed(flow)
    assert KEY.encode() not in stored(flow)


@pytest.mark.parametrize("name", ["snappy", "gzip"])
def test_bodies_that_cannot_be_read(name: str) -> None:
    body = b"\x05\x00made-\x05\x00up.to\x05\x00ken_0\x00\xff"
    flow = flow_of(body, body)
    assert flow.response
    for message in (flow.request, flow.response):
        message.headers["content-encoding"] = name
    flow.metadata[metadata.UPSTREAM_BODY] = body
    flow.metadata[metadata.UPSTREAM_ENCODING] = name
    forget(flow)
    places = ("metadata moontap.upstream_body", "request body", "response body")
    assert [str(one) for one in findings(flow)] == [f"{place}: unreadable" for place in places]
    scrubbed(flow)
    assert flow.request.raw_content == flow.response.raw_content == b"*" * len(body)
    assert flow.metadata[metadata.UPSTREAM_BODY] == b"*" * len(body)


def test_a_decoded_body_is_one_place() -> None:
    body = gzip.compress(dump([KEY]))
    flow = flow_of(b"{}", body)
    assert flow.response
    flow.response.headers["content-encoding"] = "gzip"
    flow.metadata[metadata.UPSTREAM_BODY] = body
    flow.metadata[metadata.UPSTREAM_ENCODING] = "gzip"
    forget(flow)
    places = ("metadata moontap.upstream_body $[0]", "response body $[0]")
    assert [str(one) for one in findings(flow)] == [f"{place}: secret" for place in places]


def test_redaction_rules_hold_too() -> None:
    rules = Rules(Redact(("x-team",), (re.compile("pin [0-9]+"),), (compile_path("$..pw"),)))
    flow = flow_of(b'{"a":"pin 12345","pw":"x"}', headers={"x-team": "hush"})
    found = {str(one) for one in findings(flow, rules)}
    assert {"request body $.a: secret", "request body $.pw: secret"} <= found
    assert "request header x-team: secret" in found
    scrubbed(flow, rules)
    assert flow.request.raw_content == b'{"a":"*********","pw":"*"}'


def test_connections_say_nothing_of_the_machine() -> None:
    flow = flow_of()
    flow.client_conn = tflow.tclient_conn()
    flow.client_conn.peername = ("192.0.2.55", 51234)
    flow.client_conn.sockname = ("192.0.2.1", 8080)
    flow.server_conn = tflow.tserver_conn()
    flow.server_conn.peername = ("198.51.100.7", 443)
    flow.server_conn.via = ("https", ("proxy.internal.example", 3128))
    times = flow.client_conn.timestamp_start, flow.server_conn.timestamp_tcp_setup
    assert Finding("client connection", Kind.CONNECTION) in findings(flow)
    scrubbed(flow)
    data = stored(flow)
    for text in (b"192.0.2", b"198.51.100", b"internal", b"51234", b"8080", b"3128"):
        assert text not in data
    assert flow.server_conn.address == ("api.moonshot.cn", 443)
    assert times == (flow.client_conn.timestamp_start, flow.server_conn.timestamp_tcp_setup)


# --- encodings, chunks, healed requests ---------------------------------------------------------

ENCODERS: list[tuple[str | None, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    (None, gzip.compress),
    ("br", brotli.compress),
    ("zstd", lambda data: encodings.encode(data, "zstd")),
]


@pytest.mark.parametrize(("name", "encode"), ENCODERS, ids=["gzip", "gzip unsaid", "br", "zstd"])
def test_compressed_bodies_and_their_chunks(
    name: str | None, encode: Callable[[bytes], bytes]
) -> None:
    plain = dump([TEXT, "x" * 200])
    body = encode(plain)
    flow = flow_of(body, body, {"content-encoding": name} if name else {})
    assert flow.response
    flow.request.headers["content-length"] = str(len(body))
    if name:
        flow.response.headers["content-encoding"] = name
    flow.metadata[metadata.CHUNKS] = [[20, 1.5], [len(body) - 20, 9.0]]
    scrubbed(flow)
    assert flow.response.raw_content == flow.request.raw_content
    assert len(flow.response.raw_content or b"") == len(plain)
    assert "content-encoding" not in flow.response.headers
    assert flow.request.headers["content-length"] == str(len(plain))
    chunks = flow.metadata[metadata.CHUNKS]
    assert sum(size for size, _ in chunks) == len(plain)
    assert [at for _, at in chunks] == [1.5, 9.0]
    clean = flow_of(encode(b'["nothing"]'), b"{}", {"content-encoding": name} if name else {})
    before = clean.request.raw_content
    assert scrubbed(clean).request.raw_content == before


def test_base64_is_not_looked_into_and_left_whole() -> None:
    picture = base64.b64encode(bytes(range(256)) * 4).decode()
    flow = scrubbed(flow_of(dump({"source": {"data": picture}, "a": TEXT})))
    assert json.loads(flow.request.raw_content or b"")["source"]["data"] == picture


@pytest.mark.parametrize("tool", ["Bash", "mcp__rosalind__search"])
def test_healed_requests_can_still_be_unhealed(tool: str) -> None:
    rules = Rules(scrub=Scrub(RULES.scrub.names, json_paths=(compile_path("$..customer"),)))
    id_ = f"{tool}_0"
    history = [(id_, f"ask {VALUES['name']}", "a"), (id_, "äö 欧阳修远", "b"), (id_, "c", "d")]
    sent = samples.messages_request(history, opening=TEXT)
    wire = of_request("POST", URL)
    assert wire
    healed = heal(wire, sent, wire.read_request(sent).messages, Style.OPAQUE)
    assert healed
    flow = flow_of(healed.body)
    flow.metadata[metadata.HEALED] = [list(edit) for edit in healed.edits]
    assert client_request(flow) == sent
    direct = scrubbed(flow_of(sent), rules).request.raw_content
    scrubbed(flow, rules)
    assert client_request(flow) == direct
    assert b"osalind" not in stored(flow)
    ids = wire.read_request(flow.request.raw_content or b"").call_ids
    assert len(set(ids)) == 3


def test_odd_things_are_survived() -> None:
    nested = b'{"x":' * 5000 + TEXT.encode() + b"}" * 5000
    flow = flow_of(nested, b"\xff\xfe" + TEXT.encode() + b"\xff")
    flow.metadata[metadata.HEALED] = [["no", "edit"]]
    assert any(one.kind is Kind.UNREADABLE for one in findings(flow, RULES))
    scrubbed(flow)
    assert len(flow.request.raw_content or b"") == len(nested)
    assert left(stored(flow)) == set()
    bare = tflow.tflow(err=True)
    bare.request.raw_content = None
    scrubbed(bare)


def test_a_salt_of_ones_own() -> None:
    one, other = (scrubbed(flow_of(dump(TEXT)), salt=salt) for salt in ("a", "b"))
    assert one.request.raw_content != other.request.raw_content


@given(st.binary(max_size=60), st.sampled_from([None, "gzip", "br", "zstd", "deflate"]))
def test_any_body_is_survived(body: bytes, name: str | None) -> None:
    rules = Rules(scrub=Scrub(texts=(re.compile(r"[a-z0-9]+"),), json_paths=RULES.scrub.json_paths))
    flow = flow_of(body, body, {"content-encoding": name} if name else {})
    scrubbed(flow, rules)
    stored(flow)
