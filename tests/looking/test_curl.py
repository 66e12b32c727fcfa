"""The script of a request: run with bash and curl, before a server that writes down what comes."""

from __future__ import annotations

import gzip
import os
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from mitmproxy import http
from mitmproxy.test import tflow

from moontap.looking.curl import Script, script
from moontap.redact.flow import SECRET_HEADERS, Redactor
from moontap.rules import Rules
from moontap.rules.redact import Redact

KEY = "sk-" + "Kq7" * 12
OTHER = "Zt9" * 9

type Fields = list[tuple[bytes, bytes]]


class Recorded:
    """A server that answers `ok` and keeps the bytes of each request."""

    def __init__(self) -> None:
        self.requests: list[tuple[bytes, Fields, bytes]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as file:
                first = file.readline().rstrip(b"\r\n")
                fields: Fields = []
                while line := file.readline().rstrip(b"\r\n"):
                    name, _, value = line.partition(b":")
                    fields.append((name, value.removeprefix(b" ")))
                length = {name.lower(): value for name, value in fields}.get(
                    b"content-length", b"0"
                )
                self.requests.append((first, fields, file.read(int(length))))
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture(scope="module")
def recorded() -> Iterator[Recorded]:
    made = Recorded()
    yield made
    made.close()


def request_to(
    port: int,
    body: bytes | None = b"{}",
    fields: Fields | None = None,
    path: bytes = b"/anthropic/v1/messages?beta=true",
    method: str = "POST",
) -> http.HTTPFlow:
    flow = tflow.tflow()
    flow.request = http.Request.make(method, f"http://127.0.0.1:{port}/", b"")
    flow.request.headers = http.Headers(fields or [])
    flow.request.raw_content = body
    flow.request.data.path = path
    if body is not None:
        flow.request.headers["content-length"] = str(len(body))
    return flow


def made(flow: http.HTTPFlow, rules: Rules | None = None, *, anthropic: bool = True) -> Script:
    clean = flow.copy()
    Redactor(rules).redact(clean)
    names = SECRET_HEADERS.union(rules.redact.headers if rules else ())
    return script(
        flow.request, clean.request, secret_headers=names, anthropic=anthropic, streamed=True
    )


def run(tmp_path: Path, text: bytes, **variables: str) -> subprocess.CompletedProcess[bytes]:
    file = tmp_path / "request.sh"
    file.write_bytes(text)
    return subprocess.run(
        ["bash", file],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), **variables},
        capture_output=True,
        timeout=60,
        check=False,
    )


NASTY = 'it\'s "$HOME" `id` \\ $(id) %s !! 你好 🌙'.encode()


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"model":"kimi-k3"}', id="plain"),
        pytest.param(b'{"text":"' + NASTY + b'"}', id="what a shell reads"),
        pytest.param(b"one\n\ntwo\n\n\n", id="line feeds at the end"),
        pytest.param(b"\n", id="one line feed"),
        pytest.param(b"one\r\ntwo\r\n", id="CRLF"),
        pytest.param(b"a\0b\x01\x7f\xff\xfe", id="NUL and no UTF-8"),
        pytest.param(b"END_OF_BODY\nEND_OF_BODY_1\n", id="the words that end it"),
        pytest.param(b'{"text":"' + b"x" * 5_000_000 + b'"}', id="5 MB in one line"),
        pytest.param(bytes(range(256)) * 400, id="100 KB of bytes"),
        pytest.param("\x9b31m".encode(), id="a terminal's command"),
        pytest.param(b"", id="empty"),
    ],
)
def test_the_body_arrives_as_it_was(recorded: Recorded, tmp_path: Path, body: bytes) -> None:
    fields = [(b"authorization", b"Bearer " + KEY.encode()), (b"content-type", b"text/plain")]
    result = made(request_to(recorded.port, body, fields))
    ran = run(tmp_path, result.text, ANTHROPIC_AUTH_TOKEN=KEY)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"ok", b"")
    assert recorded.requests[-1][2] == body
    assert not result.masked


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(
            [
                (b"X-Odd", NASTY),
                (b"x-latin", b"caf\xe9 \xff"),
                (b"x-twice", b"1"),
                (b"x-twice", b"2"),
                (b"x-empty", b""),
                (b"x-'quote", b"1"),
                (b"accept-encoding", b"identity"),
            ],
            id="odd",
        ),
        pytest.param([(b"accept", b"*/*"), (b"user-agent", b"me")], id="curl's own"),
        pytest.param([(b"Host", b"api.moonshot.cn"), (b"content-type", b"x")], id="another host"),
    ],
)
def test_headers_arrive_as_they_were(recorded: Recorded, tmp_path: Path, fields: Fields) -> None:
    dropped: Fields = [(b"connection", b"keep-alive"), (b"te", b"x"), (b"expect", b"100-continue")]
    flow = request_to(recorded.port, b"{}", [*dropped, *fields])
    ran = run(tmp_path, made(flow).text)
    assert (ran.returncode, ran.stdout) == (0, b"ok"), ran.stderr
    _, got, _ = recorded.requests[-1]
    own = (b"content-length", *(() if b"Host" in dict(fields) else (b"host",)))
    assert sorted(one for one in got if one[0].lower() not in own) == sorted(fields)


@pytest.mark.parametrize(
    "path",
    [
        b"/v1/messages?beta=true",
        b"/v1/[a]{b,c}/../x?q[]=1",
        b"/v1/a'b$HOME`id`?x=%20&y=\"",
        b"/v1/files#part",
        b"/v1/caf\xc3\xa9",
        b"//double",
        b"/v1/%2E%2e/x",
        b"*",
        b"?x=1",
        b"@127.0.0.1:1/v1",
        b":1@127.0.0.1:1/",
        b".example/x",
        b"http://api.moonshot.cn/v1/x?y=1",
    ],
)
def test_the_address_arrives_as_it_was(recorded: Recorded, tmp_path: Path, path: bytes) -> None:
    ran = run(tmp_path, made(request_to(recorded.port, b"{}", path=path)).text)
    assert (ran.returncode, ran.stdout) == (0, b"ok"), ran.stderr
    assert recorded.requests[-1][0] == b"POST %s HTTP/1.1" % path


@pytest.mark.parametrize(
    ("method", "body"), [("GET", None), ("GET", b""), ("PUT", b"x"), ("POST", b""), ("DELETE", b"")]
)
def test_methods(recorded: Recorded, tmp_path: Path, method: str, body: bytes | None) -> None:
    flow = request_to(recorded.port, body or b"", method=method, path=b"/v1/models")
    ran = run(tmp_path, made(flow).text)
    assert (ran.returncode, ran.stdout) == (0, b"ok"), ran.stderr
    first, fields, got = recorded.requests[-1]
    assert (first, got) == (f"{method} /v1/models HTTP/1.1".encode(), body or b"")
    length = {name.lower(): value for name, value in fields}.get(b"content-length")
    assert length == str(len(body or b"")).encode()
    assert b"content-type" not in dict(fields)


@pytest.mark.parametrize(
    ("attribute", "value", "said"),
    [
        ("scheme", b"file", "scheme"),
        ("scheme", b"-K/etc/hosts", "scheme"),
        ("scheme", KEY.encode(), "scheme"),
        ("method", b"", "method"),
        ("method", b"GET / HTTP/1.1\r\nx: y\r\n\r\nGET", "method"),
        ("method", KEY.encode(), "secret"),
        ("method", b"CONNECT", "method"),
        ("host", "{a,b}.example", "host"),
        ("host", "a@b", "host"),
        ("host", "a/b", "host"),
        ("host", "", "host"),
        ("host", "a\nb", "host"),
        ("host", f"{KEY}.example", "secret"),
        ("port", 0, "host"),
        ("path", b"/v1 HTTP/1.1\r\nx: y", "control"),
        ("path", b"/v1\0", "control"),
    ],
)
def test_what_no_curl_could_send_is_refused(
    attribute: str, value: bytes | str | int, said: str
) -> None:
    flow = request_to(1)
    setattr(flow.request.data, attribute, value)
    with pytest.raises(ValueError, match=f"it cannot be sent: .*{said}") as raised:
        made(flow)
    assert KEY not in str(raised.value)


def test_a_head_with_a_body_is_refused() -> None:
    with pytest.raises(ValueError, match=r"it cannot be sent: .*HEAD"):
        made(request_to(1, b"{}", method="HEAD"))


@pytest.mark.parametrize(
    ("host", "port", "address"),
    [
        ("::1", 80, b"http://[::1]/v1"),
        ("::1", 8080, b"http://[::1]:8080/v1"),
        ("fe80::1%eth0", 80, b"http://[fe80::1%25eth0]/v1"),
        ("api.example", 80, b"http://api.example/v1"),
        ("api.example", 443, b"http://api.example:443/v1"),
    ],
)
def test_hosts(host: str, port: int, address: bytes) -> None:
    flow = request_to(1, path=b"/v1")
    flow.request.data.host, flow.request.data.port = host, port
    text = made(flow).text
    assert b"\n  '%s'" % address in text
    assert b" -g " in text


BEARER = b"Bearer " + KEY.encode()
BASIC = "dTpwYXNzd29yZA=="
RULES = Rules(redact=Redact(headers=("x-team", "path")))


@pytest.mark.parametrize(
    ("fields", "anthropic", "variables"),
    [
        ([(b"authorization", BEARER)], True, {"ANTHROPIC_AUTH_TOKEN": KEY}),
        ([(b"Authorization", BEARER)], False, {"OPENAI_API_KEY": KEY}),
        ([(b"x-api-key", KEY.encode())], True, {"ANTHROPIC_API_KEY": KEY}),
        (
            [(b"x-api-key", KEY.encode()), (b"authorization", BEARER)],
            True,
            {"ANTHROPIC_API_KEY": KEY},
        ),
        ([(b"cookie", b"a=b; c=d")], True, {"SECRET_COOKIE": "a=b; c=d"}),
        (
            [(b"cookie", b"a"), (b"cookie", b"b")],
            True,
            {"SECRET_COOKIE": "a", "SECRET_COOKIE_2": "b"},
        ),
        ([(b"path", b"t'$x")], True, {"SECRET_PATH": "t'$x"}),
        ([(b"x-note", b"use " + KEY.encode())], True, {"SECRET_X_NOTE": f"use {KEY}"}),
        ([(b"authorization", b"sk-odd words")], True, {"SECRET_AUTHORIZATION": "sk-odd words"}),
        (
            [(b"authorization", b"Basic " + BASIC.encode())],
            True,
            {"SECRET_AUTHORIZATION": BASIC},
        ),
    ],
)
def test_secrets_are_variables(
    recorded: Recorded,
    tmp_path: Path,
    fields: Fields,
    anthropic: bool,
    variables: dict[str, str],
) -> None:
    result = made(request_to(recorded.port, b"{}", fields), RULES, anthropic=anthropic)
    assert list(result.variables) == list(variables)
    for value in variables.values():
        assert len(value) < 3 or value.encode() not in result.text
    ran = run(tmp_path, result.text, **variables)
    assert (ran.returncode, ran.stdout) == (0, b"ok"), ran.stderr
    got = recorded.requests[-1][1]
    assert [one for one in got if one in fields] == fields


def test_a_variable_that_is_not_set_is_asked_for(recorded: Recorded, tmp_path: Path) -> None:
    before = len(recorded.requests)
    result = made(request_to(recorded.port, b"{}", [(b"authorization", BEARER)]))
    ran = run(tmp_path, result.text)
    assert (ran.returncode, len(recorded.requests)) == (1, before)
    assert b"ANTHROPIC_AUTH_TOKEN: set it first" in ran.stderr


@pytest.mark.parametrize(
    ("path", "variables"),
    [
        (f"/v1/x?key={OTHER}&a=1", {"SECRET_KEY": OTHER}),
        (f"/v1/x?a={KEY}&b=2", {"SECRET_A": KEY}),
        (f"/v1/{KEY}/x", {"SECRET_PART": KEY}),
        (f"/v1/x?{KEY}", {"SECRET_PART": KEY}),
        (
            "/v1/x?access_token=abc&signature=%2Fd",
            {"SECRET_ACCESS_TOKEN": "abc", "SECRET_SIGNATURE": "%2Fd"},
        ),
        ("/v1/x?key=&max_tokens=5", {}),
    ],
)
def test_secrets_in_the_address_are_variables(
    recorded: Recorded, tmp_path: Path, path: str, variables: dict[str, str]
) -> None:
    result = made(request_to(recorded.port, b"{}", path=path.encode()))
    assert list(result.variables) == list(variables)
    for value in variables.values():
        assert value.encode() not in result.text
    ran = run(tmp_path, result.text, **variables)
    assert (ran.returncode, ran.stdout) == (0, b"ok"), ran.stderr
    assert recorded.requests[-1][0] == f"POST {path} HTTP/1.1".encode()


@pytest.mark.parametrize("packed", [False, True])
def test_secrets_in_the_body_are_stars(recorded: Recorded, tmp_path: Path, packed: bool) -> None:
    body = b'{"text":"%s"}' % KEY.encode()
    fields = [(b"content-encoding", b"gzip")] if packed else []
    result = made(request_to(recorded.port, gzip.compress(body) if packed else body, fields))
    assert result.masked
    assert b"Secrets in the body are * here" in result.text
    assert run(tmp_path, result.text).stdout == b"ok"
    _, got, sent = recorded.requests[-1]
    assert sent == re.sub(rb"sk-\w+", b"*" * len(KEY), body)
    assert b"content-encoding" not in dict(got)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (b"x-broken", b"a\r\nb: c", "x-broken"),
        (b"x\nb: c", b"", r"x\nb: c"),
        (b"@/etc/hosts", b"a", "@/etc/hosts"),
        (b"x y", b"a", "x y"),
        (b"x;", b"", "x;"),
        (b"", b"a", ""),
    ],
)
def test_a_header_that_no_curl_can_send_is_named(
    recorded: Recorded, tmp_path: Path, name: bytes, value: bytes, said: str
) -> None:
    result = made(request_to(recorded.port, b"{}", [(name, value)]))
    assert result.left_out == (name.decode(),)
    assert f"the header {said}.".encode() in result.text
    assert run(tmp_path, result.text).stdout == b"ok"


def test_a_body_that_was_not_kept() -> None:
    with pytest.raises(ValueError, match="not kept"):
        made(request_to(1, None))
