"""Secrets in bodies: whatever hides them, they are gone, and nothing else is."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moontap.jsonpaths import compile_path
from moontap.redact.body import mask_body, mask_plain
from moontap.redact.secrets import SHAPES, Needles

KEY = "sk-kimi-aB3dE5gH7jK9mN1pQ3rS5tU7"
VALUE = "tok-en_12345"
NONE = Needles()

PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn\nAbc+/9xyz==\n"
    "-----END RSA PRIVATE KEY-----"
)
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjMifQ.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"


@pytest.mark.parametrize(
    "secret",
    [
        "sk-aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5dE7fG9hJ1kL3",
        "sk-ant-api03-aB3d_5gH7jK9mN1pQ3rS5tU7vW9x-Y1zA",
        KEY,
        "sk-proj-aB3dE5gH7jK9mN1pQ3rS",
        "AKIAIOSFODNN7EXAMPLE",
        "ASIAIOSFODNN7EXAMPLE",
        "ghp_aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5",
        "gho_aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3bC5",
        "github_pat_11AB3dE5gH7jK9mN1pQ3rS_5tU7vW9xY1zA3bC5dE7fG9",
        "xoxb-123456789012-1234567890123-aB3dE5gH7jK9mN1pQ3rS5tU7",
        "AIzaSyB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3b",
        "glpat-aB3dE5gH7jK9mN1pQ3rS",
        "glpat-aB3dE5gH7jK9mN1pQ3rS.01.1a2b3c4d5",
        "hf_aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH",
        JWT,
        PEM,
    ],
)
@pytest.mark.parametrize(
    "around", ["{}", "key: {}.", '"{}"', "a={}&b", "k%3D{}", "\x1b[32m{}\x1b[0m", "x\n{}\ny", "_{}"]
)
def test_shapes(secret: str, around: str) -> None:
    text = around.format(secret)
    masked, count = mask_body(text.encode(), NONE)
    stars = "".join("\n" if one == "\n" else "*" for one in secret)
    assert masked.decode() == around.format(stars)
    assert count == 1
    in_json = json.dumps({"a": [text], "n": 1.5})
    masked, count = mask_body(in_json.encode(), NONE)
    assert json.loads(masked) == {
        "a": [around.format("*" * (len(json.dumps(secret)) - 2))],
        "n": 1.5,
    }
    assert count == 1


@pytest.mark.parametrize(
    "text",
    [
        "sk-short",
        "sk-toggleable__label-arrow-collapsed",
        "risk-aB3dE5gH7jK9mN1pQ3rS5tU7vW9x",
        "task-2026-11-29-09-00-00-run-number-1",
        "AKIAIOSFODNN7EXAMPLES4",
        "AKIAiosfodnn7example",
        "ghp_tooshort12345",
        "xoxo-hugs-and-kisses-for-everyone",
        "AIzaTooShort",
        "eyJhbGciOiJIUzI1NiJ9 alone",
        "toolu_01A09q90qw90lq917835lq9",
        "chatcmpl-tool-3f2b8c1e9d4a4b7f8e6d5c4b3a291807",
        "550e8400-e29b-41d4-a716-446655440000",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----",
        "look for -----BEGIN PRIVATE KEY----- in the file",
        "d" * 64,
        "hf_hub_download_and_something_more_yet",
    ],
)
def test_near_misses(text: str) -> None:
    for body in (text.encode(), json.dumps({"a": text}).encode()):
        assert mask_body(body, NONE) == (body, 0)


@pytest.mark.parametrize(
    "text",
    [
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\nAbCd",
        "     1\t-----BEGIN EC PRIVATE KEY-----\n     2\tMHcCAQEEIAbCdEfGh1234\n     3\tAbC=",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQPGBF5example1234567890\n=abcd\n"
        "-----END PGP PRIVATE KEY BLOCK-----",
    ],
)
def test_key_blocks_cut_off_or_numbered(text: str) -> None:
    masked = json.loads(mask_body(json.dumps([text]).encode(), NONE)[0])[0]
    assert re.search(r"[A-Za-z0-9]{3}", masked) is None


def test_a_body_without_secrets_is_not_even_copied() -> None:
    body = json.dumps({"a": ["text"] * 1000}).encode()
    assert mask_body(body, Needles((), [VALUE]))[0] is body


@pytest.mark.parametrize(
    ("body", "masked"),
    [
        # escapes count as the characters they stand for, and are masked whole
        (rb'["\u0073k-kimi-aB3dE5gH7jK9mN1pQ3rS5tU7"]', b'["' + b"*" * 37 + b'"]'),
        (rb'["a\nsk-kimi-aB3dE5gH7jK9mN1pQ3rS5tU7\n"]', rb'["a\n' + b"*" * 32 + rb'\n"]'),
        # as JSON in a JSON string
        (
            rb'{"arguments":"{\"k\":\"\\nsk-kimi-aB3dE5gH7jK9mN1pQ3rS5tU7\"}"}',
            rb'{"arguments":"{\"k\":\"\\n' + b"*" * 32 + rb'\"}"}',
        ),
        (
            rb'{"arguments":"{\"k\":\"\\u0073k-kimi-aB3dE5gH7jK9mN1pQ3rS5tU7\"}"}',
            rb'{"arguments":"{\"k\":\"' + b"*" * 38 + rb'\"}"}',
        ),
        # characters of several bytes before it
        ('["äö\U0001f600 tok-en_12345"]'.encode(), '["äö\U0001f600 ************"]'.encode()),
        # as a key
        (b'{"tok-en_12345":1}', b'{"************":1}'),
        # cut off in the middle of a string, an escape, a character
        (b'{"a":"tok-en_12345', b'{"a":"************'),
        (b'{"a":"tok-en_12345\\', b'{"a":"************\\'),
        (b'{"a":"tok-en_12345\xc3', b'{"a":"************\xc3'),
        # broken, not UTF-8, not JSON
        (b'{"a" "b", tok-en_12345 "}', b'{"a" "b", ************ "}'),
        (b"\xff\xfe\x00tok-en_12345\x00\xff", b"\xff\xfe\x00************\x00\xff"),
        (b"<html>tok-en_12345</html>", b"<html>************</html>"),
        (
            b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\ntok-en_12345\r\n--x--',
            b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n************\r\n--x--',
        ),
        (b'{"a":"tok-en_12345"}\n{"a":"tok-en_12345"}\n', b'{"a":"************"}\n' * 2),
    ],
)
def test_where_secrets_stand(body: bytes, masked: bytes) -> None:
    assert mask_body(body, Needles((), [VALUE]))[0] == masked


def test_a_value_that_is_a_number_stays_one() -> None:
    needles = Needles((), ["12345678"])
    assert mask_body(b'{"uid": 12345678, "s": "12345678"}', needles) == (
        b'{"uid": 11111111, "s": "********"}',
        2,
    )


@pytest.mark.parametrize(
    ("pattern", "body", "masked"),
    [
        (r"password=\S+", b'{"a":"password=hunter2"}', b'{"a":"****************"}'),
        # the inner JSON stays JSON too
        (
            r"password=\S+",
            rb'{"arguments":"{\"c\":\"password=hunter2\"}"}',
            rb'{"arguments":"{\"c\":\"****************\"}"}',
        ),
        (r"^hunter\d$", b'["hunter2","hunter22"]', b'["*******","hunter22"]'),
        (r"\d{16}", b'{"card":4111111111111111,"n":5}', b'{"card":1111111111111111,"n":5}'),
        (r"(?i)pin \d+", b"my PIN 1234\n", b"my ********\n"),
        (r"k.se", '{"a":"k\\u00e4se käse"}'.encode(), b'{"a":"********* *****"}'),
        (r"(?s)a.b", b"a\nb a\r\n", b"*\n* a\r\n"),
    ],
)
def test_patterns_see_decoded_text(pattern: str, body: bytes, masked: bytes) -> None:
    assert mask_body(body, Needles([re.compile(pattern)]))[0] == masked


@pytest.mark.parametrize(
    ("body", "masked"),
    [
        (b"event: my pin 12\ndata: {}\n\n", b"event: my ******\ndata: {}\n\n"),
        (b"data: {}\nid:pin 1\n\n", b"data: {}\nid:*****\n\n"),
        (b"data: {}\r\n: pin 1\r\n\r\n", b"data: {}\r\n: *****\r\n\r\n"),
        (b"event: pin\ndata: 12\n\n", b"event: ***\ndata: 12\n\n"),
        (b"event: da\ndata: 1\n\n", b"event: da\ndata: 1\n\n"),
    ],
)
def test_patterns_see_what_stands_around_the_data(body: bytes, masked: bytes) -> None:
    pattern = re.compile(r"pin( \d+)?|^ev\w+|da\ndata")
    assert mask_body(body, Needles([pattern]))[0] == masked


@pytest.mark.parametrize(
    ("path", "body", "masked"),
    [
        ("$..password", b'{"a":{"password":"h\\u00e4x"}}', b'{"a":{"password":"********"}}'),
        ("$.n", b'{"n":-12.50e3}', b'{"n":-11.11e1}'),
        ("$.n", b'{"n":0}', b'{"n":1}'),
        ("$.n", b'{"n":120}', b'{"n":111}'),
        ("$.n", b'{"n":[true,null,false,"",{"k":["xy",7]}]}', None),
        ("$.n", b'{"n":"a","n":"b","n":null}', b'{"n":"*","n":"*","n":null}'),
        ("$..password", rb'{"\u0070assword":"x"}', rb'{"\u0070assword":"*"}'),
        (
            "$..password",
            rb'{"arguments":"{\"password\":\"a\\\"b\",\"n\":1}"}',
            rb'{"arguments":"{\"password\":\"******\",\"n\":1}"}',
        ),
        ("$..n", rb'{"arguments":"{\"n\":4\u0032}"}', rb'{"arguments":"{\"n\":1\u0031}"}'),
        ("$..password", b'{"password":"hunt', b'{"password":"****'),
        ("$..password", b'{"password":12', b'{"password":11'),
        (
            "$..password",
            rb'{"arguments":"{\"password\":\"hun',
            rb'{"arguments":"{\"password\":\"***',
        ),
        ("$.a", b'{"a":"x"}\n{"a":"y"}\n', b'{"a":"*"}\n{"a":"*"}\n'),
        ("$[?@.k=='s'].v", b'[{"k":"s","v":"x"},{"k":"t","v":"y"}]', None),
        ("$.a", b'<a>"a"</a>', b'<a>"a"</a>'),
    ],
)
def test_json_paths(path: str, body: bytes, masked: bytes | None) -> None:
    result, _ = mask_body(body, NONE, [compile_path(path)])
    expected = {
        b'{"n":[true,null,false,"",{"k":["xy",7]}]}': b'{"n":[true,null,false,"",{"k":["**",1]}]}',
        b'[{"k":"s","v":"x"},{"k":"t","v":"y"}]': b'[{"k":"s","v":"*"},{"k":"t","v":"y"}]',
    }
    assert result == (masked or expected[body])


def messages(*fragments: str, kind: str = "partial_json") -> bytes:
    return b"".join(
        b"event: content_block_delta\ndata: "
        + json.dumps(
            {"type": "content_block_delta", "index": 1, "delta": {"type": "x", kind: fragment}}
        ).encode()
        + b"\n\n"
        for fragment in fragments
    )


def chat(*fragments: str) -> bytes:
    return b"".join(
        b"data: "
        + json.dumps(
            {
                "choices": [
                    {
                        "index": 0,
                        "delta": {"tool_calls": [{"index": 0, "function": {"arguments": one}}]},
                    }
                ]
            }
        ).encode()
        + b"\r\n\r\n"
        for one in fragments
    )


@pytest.mark.parametrize(
    ("stream", "masked"),
    [
        (messages("a tok-", "en_12", "345 b"), messages("a ****", "*****", "*** b")),
        (
            messages("tok-", "en_12345", kind="thinking"),
            messages("****", "********", kind="thinking"),
        ),
        (messages("tok-", "en_12345", kind="new"), messages("****", "********", kind="new")),
        (chat('{"k":"tok-', 'en_12345"}'), chat('{"k":"****', '********"}')),
        # cut inside an escape of the inner JSON
        (chat('{"k":"\\u00', '74ok-en_12345"}'), chat('{"k":"*****', '*************"}')),
        # another channel in between
        (
            messages("tok-", kind="text") + chat("zz") + messages("en_12345", kind="text"),
            messages("****", kind="text") + chat("zz") + messages("********", kind="text"),
        ),
        # no JSON at all, and what is not data
        (b"data: tok-\n\ndata: en_12345\n\n", b"data: ****\n\ndata: ********\n\n"),
        (b": tok-en_12345\n\ndata: x\n\n", b": ************\n\ndata: x\n\n"),
        (b"event: tok-en_12345\ndata: {}\n\n", b"event: ************\ndata: {}\n\n"),
        # several data lines
        (b'data: {"a":\ndata: "tok-en_12345"}\n\n', b'data: {"a":\ndata: "************"}\n\n'),
        # broken off in the last event
        (
            messages("tok-") + messages("en_12345")[:-5],
            messages("****") + messages("********")[:-5],
        ),
        (
            b'data: {"delta":{"text":"tok-"}}\n\ndata: {"delta":{"text":"en_12345',
            b'data: {"delta":{"text":"****"}}\n\ndata: {"delta":{"text":"********',
        ),
        # a whole value in one event
        (b'data: {"id":"tok-en_12345"}\n\n', b'data: {"id":"************"}\n\n'),
        # Responses
        (
            b'data: {"type":"d","output_index":0,"delta":"tok-"}\n\n'
            b'data: {"type":"d","output_index":0,"delta":"en_12345"}\n\n',
            b'data: {"type":"d","output_index":0,"delta":"****"}\n\n'
            b'data: {"type":"d","output_index":0,"delta":"********"}\n\n',
        ),
        # a block that starts with text
        (
            b'data: {"index":0,"content_block":{"type":"text","text":"tok-"}}\n\n'
            b'data: {"index":0,"delta":{"type":"text_delta","text":"en_12345"}}\n\n',
            b'data: {"index":0,"content_block":{"type":"text","text":"****"}}\n\n'
            b'data: {"index":0,"delta":{"type":"text_delta","text":"********"}}\n\n',
        ),
        # Halves of two strings are no secret
        (
            b'data: {"index":0,"delta":{"text":"tok-"}}\n\n'
            b'data: {"index":1,"delta":{"text":"en_12345"}}\n\n',
            None,
        ),
    ],
)
def test_streams(stream: bytes, masked: bytes | None) -> None:
    assert mask_body(stream, Needles((), [VALUE]))[0] == (masked or stream)


def test_blocks_that_take_turns() -> None:
    def events(*pieces: tuple[int, str]) -> bytes:
        starts = [{"index": index, "content_block": {"type": "tool_use"}} for index in (0, 1)]
        deltas = [{"index": index, "delta": {"partial_json": piece}} for index, piece in pieces]
        return b"".join(b"data: %s\n\n" % json.dumps(one).encode() for one in (*starts, *deltas))

    stream = events((0, "tok-"), (1, "ls"), (0, "en_12"), (1, "tok-en"), (0, "345"), (1, "_12345"))
    masked = events((0, "****"), (1, "ls"), (0, "*****"), (1, "******"), (0, "***"), (1, "******"))
    assert mask_body(stream, Needles((), [VALUE])) == (masked, 2)


def test_a_split_secret_counts_once() -> None:
    stream = messages("a tok-", "en_12345 ", "tok-en_12345")
    assert mask_body(stream, Needles((), [VALUE]))[1] == 2


@pytest.mark.parametrize("make", [messages, chat])
def test_rules_see_assembled_arguments(make: object) -> None:
    assert callable(make)
    stream = make('{"pass', 'word":"hun', 'ter2","c":"curl -u ', 'me:pw x"}')
    masked = make('{"pass', 'word":"***', '****","c":"curl ***', '***** x"}')
    needles = Needles([re.compile(r"-u \S+")])
    assert mask_body(stream, needles, [compile_path("$.password")])[0] == masked


def test_a_second_message_starts_its_blocks_anew() -> None:
    start = b'data: {"type":"content_block_start","index":1,"content_block":{"input":{}}}\n\n'
    first, second = messages('{"password":"a"}'), messages('{"pass', 'word":"b"}')
    stream = start + first + start + second
    result, _ = mask_body(stream, NONE, [compile_path("$.password")])
    assert result == start + messages('{"password":"*"}') + start + messages('{"pass', 'word":"*"}')


# --- properties ---------------------------------------------------------------------------------

SECRETS = st.sampled_from([KEY, VALUE, JWT, "AKIAIOSFODNN7EXAMPLE"])
FILLER = st.text(st.sampled_from(' .,\n"\\{}[]ä\U0001f600='), max_size=8)


@st.composite
def escaped(draw: st.DrawFn, text: str) -> str:
    """A text as the inside of a JSON string, each character in any of its spellings."""
    out = []
    for one in text:
        if one in '"\\\n' or draw(st.integers(0, 5)) == 0:
            units = one.encode("utf-16-be")
            pairs = [units[index : index + 2].hex() for index in range(0, len(units), 2)]
            upper = draw(st.booleans())
            out += [f"\\u{pair.upper() if upper else pair}" for pair in pairs]
        else:
            out.append(one)
    return "".join(out)


@st.composite
def cut(draw: st.DrawFn, text: str) -> list[str]:
    """A text cut anywhere."""
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


def outside_equal(before: bytes, after: bytes) -> bool:
    return len(before) == len(after) and all(
        b == a or b == 0x2A for a, b in zip(before, after, strict=True)
    )


@given(st.data(), SECRETS, FILLER, FILLER)
def test_no_escaping_hides_a_secret(data: st.DataObject, secret: str, a: str, b: str) -> None:
    inside = data.draw(escaped(a + secret + b))
    nested = data.draw(escaped(json.dumps({"k": a + secret + b})))
    body = f'{{"x": 1, "s": "{inside}", "arguments": "{nested}"}}'.encode()
    masked, _ = mask_body(body, Needles((), [VALUE]))
    value = json.loads(masked)
    assert secret not in value["s"]
    assert secret not in json.loads(value["arguments"])["k"]
    assert value["s"].replace("*", "") == a + b
    assert outside_equal(body, masked)


@given(st.data(), SECRETS, FILLER, FILLER, st.booleans())
def test_no_split_hides_a_secret(
    data: st.DataObject, secret: str, a: str, b: str, nested: bool
) -> None:
    text = a + secret + b
    whole = f'{{"k":"{data.draw(escaped(text))}"}}' if nested else text
    pieces = data.draw(cut(whole))
    events = [
        f'data: {{"index":0,"delta":{{"type":"t","partial_json":"{data.draw(escaped(piece))}"}}}}'
        for piece in pieces
    ]
    body = "\n\n".join(events).encode() + data.draw(st.sampled_from([b"\n\n", b"", b"\n"]))
    masked, _ = mask_body(body, Needles((), [VALUE]))
    assert outside_equal(body, masked)
    joined = "".join(
        json.loads(line[6:])["delta"]["partial_json"] for line in masked.decode().splitlines()[::2]
    )
    found = json.loads(joined)["k"] if nested else joined
    assert secret not in found
    assert found.replace("*", "") == a + b
    assert mask_body(masked, Needles((), [VALUE])) == (masked, 0)


JSON_PARTS = [b'{"', b'"', b"\\", b"\\u00", b"73", b"[", b"]", b":", b",", b"1", b"null", b'"}}']
STREAM_PARTS = [b"data: ", b"\n\n", b"\r", b'{"delta":{"text":"', b"\xff", b"\xc3"]
FRAGMENTS = st.sampled_from([*JSON_PARTS, *STREAM_PARTS, VALUE.encode(), KEY.encode()])


@given(st.one_of(st.binary(), st.lists(FRAGMENTS).map(b"".join)), st.booleans())
def test_any_bytes_keep_their_length(body: bytes, stream: bool) -> None:
    needles = Needles([re.compile(r"1+")], [VALUE])
    for one in (body, b"{" + body, b"data: " + body):
        masked, _ = mask_body(one, needles, [compile_path("$..text")], stream)
        assert len(masked) == len(one)
        assert VALUE.encode() not in masked
        assert mask_plain(one, needles)[0].count(VALUE.encode()) == 0


def test_every_shape_names_its_source() -> None:
    assert all(shape.source for shape in SHAPES)
