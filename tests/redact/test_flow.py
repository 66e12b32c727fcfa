"""Whole flows on their way to the disk: headers, addresses, bodies, metadata, encodings."""

import copy
import io
import json
import logging
import re
import zlib
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import brotli  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mitmproxy import http
from mitmproxy.io import FlowReader, FlowWriter
from mitmproxy.net import encoding as encodings
from mitmproxy.test import tflow

from moontap.capture import metadata
from moontap.jsonpaths import compile_path
from moontap.redact import coded
from moontap.redact.flow import Redactor
from moontap.rules import Redact, Rules
from tests.fixed import gzip_fixed

TOKEN = "made-up.token_0001"
STARS = "*" * len(TOKEN)


def flow_of(
    request: bytes = b"{}",
    response: bytes | None = b"{}",
    request_headers: dict[str, str] | None = None,
    response_headers: dict[str, str] | None = None,
    url: str = "https://api.moonshot.cn/v1/chat/completions",
) -> http.HTTPFlow:
    flow = tflow.tflow()
    given = {"authorization": f"Bearer {TOKEN}"} if request_headers is None else request_headers
    flow.request = http.Request.make("POST", url, b"", {})
    # Not through make(): it drops a content-encoding that it does not know.
    flow.request.headers.update(given)
    flow.request.raw_content = request
    if response is not None:
        flow.response = http.Response.make(200)
        flow.response.headers.update(response_headers or {})
        flow.response.raw_content = response
    return flow


def stored(flow: http.HTTPFlow) -> bytes:
    """What mitmproxy writes for a flow; it must be readable again."""
    file = io.BytesIO()
    FlowWriter(file).add(flow)
    assert len(list(FlowReader(io.BytesIO(file.getvalue())).stream())) == 1
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "value", "masked"),
    [
        ("Authorization", f"Bearer {TOKEN}", "Bearer ***"),
        ("authorization", TOKEN, "***"),
        ("AUTHORIZATION", f"Bearer   {TOKEN}", "Bearer ***"),
        ("X-Api-Key", TOKEN, "***"),
        ("Cookie", f"a=b; s={TOKEN}", "***"),
        ("Proxy-Authorization", f"Basic {TOKEN}", "Basic ***"),
        ("msh-uid", TOKEN, "***"),
        ("Msh-Gid", TOKEN, "***"),
        ("X-Team", TOKEN, "***"),
        ("Authorization", "Bearer short", "Bearer ***"),
        ("Authorization", f"bearer\t{TOKEN} x", "bearer ***"),
        ("Authorization", f"AWS4-HMAC-SHA256 {TOKEN}", "AWS4-HMAC-SHA256 ***"),
        # The first word of anything else may be the key.
        ("Authorization", f"{TOKEN} x", "***"),
        ("Authorization", f"x {TOKEN}", "***"),
        ("Authorization", f"BearerX {TOKEN}", "***"),
    ],
)
def test_secret_headers_and_what_they_carried(name: str, value: str, masked: str) -> None:
    redactor = Redactor(Rules(Redact(headers=("x-team",))))
    flow = flow_of(f'{{"a":"{TOKEN}"}}'.encode(), request_headers={name: value})
    count = redactor.redact(flow)
    assert flow.request.headers[name] == masked
    if TOKEN in value:
        assert count == 2
        assert flow.request.raw_content == f'{{"a":"{STARS}"}}'.encode()
        assert TOKEN.encode() not in stored(flow)


def test_a_header_that_comes_several_times() -> None:
    flow = flow_of()
    assert flow.response
    flow.response.headers.fields = (
        (b"Set-Cookie", b"a=12345678; Path=/; Expires=Thu"),
        (b"set-cookie", b"b=x"),
        (b"X-Other", b"12345678"),
    )
    assert Redactor().redact(flow) == 4
    assert flow.response.headers.fields == (
        (b"Set-Cookie", b"***"),
        (b"set-cookie", b"***"),
        (b"X-Other", b"********"),
    )


def test_a_token_anywhere_else() -> None:
    flow = flow_of(url=f"https://api.moonshot.cn/u/{TOKEN}/v1/messages?key={TOKEN}&x=1")
    assert flow.response
    flow.request.headers["x-copy"] = f"is {TOKEN}"
    flow.request.trailers = http.Headers([(b"x-last", TOKEN.encode()), (b"cookie", b"a=b")])
    flow.response.reason = f"no {TOKEN}"
    flow.response.raw_content = f"<b>{TOKEN}</b>".encode()
    flow.error = tflow.terr(f"refused {TOKEN}")
    flow.comment = TOKEN
    flow.metadata.update(
        {
            "moontap.upstream_body": b"data: " + TOKEN.encode(),
            "moontap.session": f"s-{TOKEN}",
            "moontap.chunks": [[10, 1.5]],
            "moontap.healed": [[1, 2, TOKEN.encode()]],
            "other": {"a": [TOKEN, True, None]},
            "proxyauth": ("me", "short"),
        }
    )
    assert Redactor().redact(flow) == 15
    assert flow.request.path == f"/u/{STARS}/v1/messages?key={STARS}&x=1"
    assert flow.metadata["moontap.chunks"] == [[10, 1.5]]
    assert flow.metadata["other"] == {"a": [STARS, True, None]}
    assert flow.metadata["proxyauth"] == ["***", "***"]
    assert flow.request.trailers["cookie"] == "***"
    assert TOKEN.encode() not in stored(flow)


def test_encoded_forms_of_a_token() -> None:
    token = 'ab/cd+ef=="q"&x'
    flow = flow_of(
        json.dumps({"a": token}).encode().replace(b"/", b"\\/"),
        json.dumps([token]).encode().replace(b"&", b"\\u0026"),
        {"x-api-key": token},
        url="https://api.moonshot.cn/v1/messages?k=ab%2Fcd%2Bef%3D%3D%22q%22%26x",
    )
    assert Redactor().redact(flow) == 4
    assert flow.response
    assert set(json.loads(flow.response.raw_content or b"")[0]) == {"*"}
    assert set(json.loads(flow.request.raw_content or b"")["a"]) == {"*"}
    assert flow.request.path == "/v1/messages?k=" + "*" * 29


ODD_TOKENS = [
    "Zm9vYmFy/cXV4+IQ==!tok",
    "(pass word)~with *odd* 'signs'!",
    "100%/safe%2Fenough",
    "a/b+c=d/e+f=g/h",  # no run that is worth a search
    "密码是这个啊/天地",
    '<x> "said" & y/z',
]
URL_ENCODERS: dict[str, Callable[[str], str]] = {
    "quote": quote,
    "all": lambda value: quote(value, safe=""),
    "lower case": lambda value: re.sub("%..", lambda one: one[0].lower(), quote(value, safe="")),
    "encodeURIComponent": lambda value: quote(value, safe="!'()*~"),
    "encodeURI": lambda value: quote(value, safe=";,/?:@&=+$#!'()*~"),
    "form": quote_plus,
    "URLSearchParams": lambda value: quote_plus(value, safe="*").replace("~", "%7E"),
    "twice": lambda value: quote(quote(value, safe=""), safe=""),
    "three times": lambda value: quote(quote_plus(quote(value))),
}


@pytest.mark.parametrize("how", URL_ENCODERS)
@pytest.mark.parametrize("token", ODD_TOKENS)
def test_url_encoded_forms_of_a_token(token: str, how: str) -> None:
    said = URL_ENCODERS[how](token)
    text = f"curl http://x/?a=%20b&k={said}&z=1"
    middle = len(text) - len(said) // 2 - 4
    events = b"".join(
        b"data: %s\n\n" % json.dumps({"delta": {"text": part}}).encode()
        for part in (text[:middle], text[middle:])
    )
    flow = flow_of(json.dumps({"a": [text]}).encode(), events)
    flow.request.headers.fields = ((b"x-api-key", token.encode()),)
    flow.request.path = f"/v1/messages?k={said}&z=1" if said.isascii() else "/v1/messages"
    flow.request.headers["x-note"] = text
    flow.comment = json.dumps([text])
    Redactor().redact(flow)
    masked = text.replace(said, "*" * len(said))
    assert json.loads(flow.request.raw_content or b"") == {"a": [masked]}
    assert flow.response
    lines = (flow.response.raw_content or b"").splitlines()[::2]
    assert "".join(json.loads(line[6:])["delta"]["text"] for line in lines) == masked
    assert flow.request.headers["x-note"] == masked
    assert said.isascii() <= (flow.request.path == f"/v1/messages?k={'*' * len(said)}&z=1")
    assert json.loads(flow.comment) == [masked]


def test_basic_credentials_are_known_in_clear_too() -> None:
    flow = flow_of(
        b"hunter2hunter2", request_headers={"authorization": "Basic bWU6aHVudGVyMmh1bnRlcjI="}
    )
    Redactor().redact(flow)
    assert flow.request.raw_content == b"*" * 14


def test_live_flows_keep_their_secrets() -> None:
    live = flow_of(f'["{TOKEN}"]'.encode(), f'["{TOKEN}"]'.encode())
    live.metadata["moontap.healed"] = [[0, 1, TOKEN.encode()]]
    before = copy.deepcopy(live.get_state())
    saved = live.copy()
    assert Redactor().redact(saved) == 4
    assert live.get_state() == before


def test_the_state_before_an_edit_is_not_saved() -> None:
    flow = flow_of(TOKEN.encode())
    flow.backup()
    flow.comment = "edited"
    Redactor().redact(flow)
    assert TOKEN.encode() not in stored(flow)


def test_masking_again_finds_nothing() -> None:
    flow = flow_of(f'["{TOKEN}"]'.encode())
    assert Redactor().redact(flow) == 2
    assert Redactor().redact(flow) == 0


def gzip_twice(data: bytes) -> bytes:
    return gzip_fixed(data[:9]) + gzip_fixed(data[9:])


def raw_deflate(data: bytes) -> bytes:
    state = zlib.compressobj(wbits=-15)
    return state.compress(data) + state.flush()


ENCODERS = [
    ("gzip", gzip_fixed),
    ("gzip", gzip_twice),
    (None, gzip_fixed),
    (None, lambda data: encodings.encode(data, "zstd")),
    (None, zlib.compress),
    ("snappy", gzip_fixed),  # not what it says
    ("x-mine", lambda data: encodings.encode(data, "zstd")),
    ("deflate", zlib.compress),
    ("deflate", raw_deflate),
    ("br", brotli.compress),
    ("zstd", lambda data: encodings.encode(data, "zstd")),
    ("gzip, br", lambda data: brotli.compress(gzip_fixed(data))),
]


@pytest.mark.parametrize(("name", "encode"), ENCODERS)
def test_compressed_bodies(name: str | None, encode: Callable[[bytes], bytes]) -> None:
    secret = json.dumps({"a": ["x" * 50, TOKEN]}).encode()
    harmless = json.dumps({"a": ["x" * 50]}).encode()
    headers = {"content-encoding": name} if name else {}
    for plain in (secret, harmless):
        body = encode(plain)
        flow = flow_of(b"", body, response_headers=headers | {"content-length": str(len(body))})
        assert flow.response
        flow.metadata["moontap.upstream_body"] = body
        if name:
            flow.metadata["moontap.upstream_encoding"] = name
        Redactor().redact(flow)
        if plain is secret:
            kept = plain.replace(TOKEN.encode(), STARS.encode())
            assert flow.response.raw_content == kept
            assert "content-encoding" not in flow.response.headers
            assert flow.response.headers["content-length"] == str(len(kept))
            assert flow.metadata["moontap.upstream_body"] == kept
            assert "moontap.upstream_encoding" not in flow.metadata
        else:
            assert flow.response.raw_content is body
            assert flow.response.headers.get("content-encoding") == name
            assert flow.metadata["moontap.upstream_body"] is body
            assert flow.metadata.get("moontap.upstream_encoding") == name


@pytest.mark.parametrize(("name", "encode"), [one for one in ENCODERS if one[0] != "gzip, br"])
def test_compressed_and_broken_off(name: str | None, encode: Callable[[bytes], bytes]) -> None:
    # What follows the secret does not compress, so the cut lies behind it.
    noise = "".join(chr(33 + (index * index * 7919) % 90) for index in range(60000))
    body = encode(f"data: {TOKEN} {noise}".encode())[:-200]
    flow = flow_of(b"", body, response_headers={"content-encoding": name} if name else {})
    assert flow.response
    Redactor().redact(flow)
    for left in (flow.response.raw_content or b"", _as_far_as_it_goes(flow.response)):
        assert TOKEN.encode() not in left


def _as_far_as_it_goes(response: http.Response) -> bytes:
    try:
        return response.get_content(strict=False) or b""
    except ValueError:
        return b""


@pytest.mark.parametrize("name", ["gzip", "br", "zstd", "aes128gcm", "identity"])
def test_an_encoding_that_is_not_what_it_says(name: str) -> None:
    flow = flow_of(b"", f"plain {TOKEN}".encode(), response_headers={"content-encoding": name})
    assert flow.response
    Redactor().redact(flow)
    assert flow.response.raw_content == f"plain {STARS}".encode()


def test_a_body_too_large_to_decode_is_blanked(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(coded, "_MOST_DECODED", 10000)
    body = gzip_fixed(b"a" * 20000 + TOKEN.encode())
    flow = flow_of(b"", body, response_headers={"content-encoding": "gzip"})
    assert flow.response
    Redactor().redact(flow)
    assert flow.response.raw_content == b"*" * len(body)
    assert "kept as '*'" in caplog.text


@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        (Rules(), STARS.encode()),
        # What the path would have selected cannot be known, so nothing is kept.
        (Rules(Redact(json_paths=(compile_path("$..x"),))), None),
    ],
)
def test_absurd_nesting_is_masked_all_the_same(
    rules: Rules, kept: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    redactor = Redactor(rules)
    nested = b'{"x":' * 5000 + f'"{TOKEN}"'.encode() + b"}" * 5000
    body = b"data: " + nested + b"\n\n"
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            flow = flow_of(body)
            redactor.redact(flow)
            expected = body.replace(TOKEN.encode(), kept) if kept else b"*" * len(body)
            assert flow.request.raw_content == expected
    assert len(caplog.records) == 1
    assert TOKEN not in caplog.text


def snappy(data: bytes) -> bytes:
    """As its format describes: a length, then stretches in clear, here of five bytes."""
    parts = [data[at : at + 5] for at in range(0, len(data), 5)]
    return bytes([len(data)]) + b"".join(bytes([(len(one) - 1) << 2]) + one for one in parts)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("snappy", snappy(TOKEN.encode())),
        ("gzip, snappy", snappy(TOKEN.encode())),
        ("gzip", brotli.compress(TOKEN.encode() * 9)),
        ("br", encodings.encode(TOKEN.encode() * 9, "zstd")),
        ("gzip", gzip_fixed(b"[1]") + brotli.compress(TOKEN.encode() * 9)),
        (None, gzip_fixed(b"[1]") + encodings.encode(TOKEN.encode(), "zstd")),
    ],
)
def test_a_body_that_nobody_can_read_is_blanked(
    name: str | None, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    headers = {"content-encoding": name} if name else {}
    redactor = Redactor()
    for _ in range(2):
        flow = flow_of(body, body, headers | {"x-api-key": TOKEN}, headers)
        flow.metadata[metadata.UPSTREAM_BODY] = body
        if name:
            flow.metadata[metadata.UPSTREAM_ENCODING] = name
        redactor.redact(flow)
        assert flow.response
        assert flow.request.raw_content == flow.response.raw_content == b"*" * len(body)
        assert flow.metadata[metadata.UPSTREAM_BODY] == b"*" * len(body)
        assert redactor.redact(flow) == 0
    assert len(caplog.records) == 1
    assert "kept as '*'" in caplog.text


@pytest.mark.parametrize("name", ["utf-8", "aws-chunked", "gzip"])
@pytest.mark.parametrize("text", ["a\t\x1b[31mb\r\n", "密码 of nobody"])
def test_a_text_under_an_encoding_that_is_none_is_kept(name: str, text: str) -> None:
    body = text.encode()[:-1]
    flow = flow_of(body, b"{}", {"content-encoding": name})
    assert Redactor().redact(flow) == 0
    assert flow.request.raw_content is body


@pytest.mark.parametrize("body", [b"\x1f\x8b\x00\xff", b"x\x9c\x00\xff", b"\x89PNG\r\n\x00\x01"])
def test_what_only_begins_like_an_encoding_is_kept(body: bytes) -> None:
    flow = flow_of(body, body)
    assert Redactor().redact(flow) == 1
    assert flow.request.raw_content is body


KEY = "sk-aB3dE5gH7jK9mN1pQ3rS5tU7"


def _websocket(flow: http.HTTPFlow) -> None:
    flow.websocket = tflow.twebsocketflow().websocket
    assert flow.websocket
    flow.websocket.close_reason = f"bye {KEY}"


def _response_header(flow: http.HTTPFlow) -> None:
    assert flow.response
    flow.response.headers[f"X-{KEY}"] = "1"


def _trailer(flow: http.HTTPFlow) -> None:
    assert flow.response
    flow.response.trailers = http.Headers([(KEY.encode(), b"1")])


def _response_version(flow: http.HTTPFlow) -> None:
    assert flow.response
    flow.response.http_version = KEY


SMALL_PLACES: dict[str, Callable[[http.HTTPFlow], None]] = {
    "close reason": _websocket,
    "marked": lambda flow: setattr(flow, "marked", KEY),
    "metadata key": lambda flow: flow.metadata.update({KEY: 1}),
    "metadata key below": lambda flow: flow.metadata.update({"a": [{KEY: 1}]}),
    "header name": lambda flow: flow.request.headers.update({f"X-{KEY}": "1"}),
    "response header name": _response_header,
    "trailer name": _trailer,
    "method": lambda flow: setattr(flow.request, "method", KEY),
    "scheme": lambda flow: setattr(flow.request, "scheme", KEY),
    "version": lambda flow: setattr(flow.request, "http_version", KEY),
    "response version": _response_version,
    "host": lambda flow: setattr(flow.request.data, "host", f"{KEY}.example"),
    "authority": lambda flow: setattr(flow.request, "authority", f"{KEY}@example"),
}


@pytest.mark.parametrize("place", SMALL_PLACES)
def test_a_key_in_the_small_places(place: str) -> None:
    flow = flow_of(request_headers={"x-other": "1"})
    SMALL_PLACES[place](flow)
    assert KEY.encode() in stored(flow)
    assert Redactor().redact(flow) == 1
    assert KEY.encode() not in stored(flow)
    assert flow.request.headers["x-other"] == "1"
    assert Redactor().redact(flow) == 0


def test_two_keys_that_get_the_same_name() -> None:
    flow = flow_of()
    flow.metadata.update({KEY: 1, KEY[:-1] + "8": 2, "mine": 3})
    Redactor().redact(flow)
    stars = "*" * len(KEY)
    assert flow.metadata == {stars: 1, stars + "*": 2, "mine": 3}


def test_names_that_a_flow_is_read_by_stay() -> None:
    flow = flow_of(request_headers={"cookie": "a=content-type; b=moontap.chunks"})
    flow.request.headers["content-type"] = "a/b"
    flow.metadata[metadata.CHUNKS] = [[1, 2.0]]
    Redactor().redact(flow)
    assert flow.request.headers["content-type"] == "a/b"
    assert metadata.CHUNKS in flow.metadata


def test_patterns_leave_the_frame_alone() -> None:
    rules = Rules(Redact(patterns=(re.compile(r"[0-9a-z/]+"),)))
    flow = flow_of(b'["abc"]', url="https://api.moonshot.cn/v1/messages?beta=true")
    flow.request.headers["content-length"] = "7"
    flow.request.headers["x-mine"] = "abc"
    Redactor(rules).redact(flow)
    assert flow.request.path == "/v1/messages?****=****"
    assert flow.request.headers["content-length"] == "7"
    assert flow.request.headers["x-mine"] == "***"
    assert flow.request.raw_content == b'["***"]'


def test_a_streamed_reply_is_known_by_its_header_or_its_look() -> None:
    stream = (
        b'\r\nretry: 1\r\ndata: {"delta":{"text":"made-up."}}\r\n\r\n'
        b'data: {"delta":{"text":"token_0001"}}\r\n\r\n'
    )
    for headers in ({"content-type": "text/event-stream; charset=utf-8"}, {}):
        flow = flow_of(b"", stream, response_headers=headers)
        assert flow.response
        Redactor().redact(flow)
        assert flow.response.raw_content == stream.replace(b"made-up.", b"*" * 8).replace(
            b"token_0001", b"*" * 10
        )


@pytest.mark.parametrize("gone", ["response", "request body", "response body"])
def test_flows_with_parts_missing(gone: str) -> None:
    flow = flow_of(response=None if gone == "response" else b"{}")
    if gone == "request body":
        flow.request.raw_content = None
    if gone == "response body" and flow.response:
        flow.response.raw_content = None
    assert Redactor().redact(flow) == 1


def test_websocket_messages() -> None:
    flow = tflow.twebsocketflow()
    flow.request.headers["x-api-key"] = TOKEN
    assert flow.websocket
    flow.websocket.messages[0].content = f"hi {TOKEN}".encode()
    Redactor().redact(flow)
    assert flow.websocket.messages[0].content == f"hi {STARS}".encode()


def test_mask_text_for_log_lines() -> None:
    redactor = Redactor(Rules(Redact(patterns=(re.compile("ä+"),))))
    key = "sk-aB3dE5gH7jK9mN1pQ3rS5tU7"
    assert redactor.mask_text(f"key {key}, ää") == f"key {'*' * len(key)}, ****"
    assert redactor.mask_text("nothing") == "nothing"


@given(st.binary(max_size=60), st.sampled_from([None, "gzip", "br", "zstd", "deflate"]))
def test_any_body_is_survived(body: bytes, name: str | None) -> None:
    flow = flow_of(body, body, response_headers={"content-encoding": name} if name else {})
    Redactor().redact(flow)
    stored(flow)
