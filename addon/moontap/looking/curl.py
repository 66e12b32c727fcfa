"""A request as a shell script that sends it once more with curl.

The request as it went upstream and the same without secrets in, the script's bytes out. No secret
stands in it: keys are variables, set by who runs it. The body arrives byte by byte as it was, at
the host that got it and at no other; pure.
"""

import base64
import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from ipaddress import AddressValueError, IPv6Address

from mitmproxy import http

from moontap.capture.upstream import HOP_BY_HOP
from moontap.redact.flow import SCHEMES
from moontap.report.text import plain

_OWN = HOP_BY_HOP | {"content-length", "host", "expect"}
"""Headers that curl makes itself, of what it sends."""

_ODD_IN_TEXT = bytes({*range(32), 127} - {*b"\t\n"})
_C1 = re.compile(rb"\xc2[\x80-\x9f]")  # in UTF-8; to a terminal the beginning of a command
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A method, or the name of a header. Source: RFC 9110, 5.6.2."""
_HOST = re.compile(r"\w[\w.-]*")
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
_PORTS = {b"http": 80, b"https": 443}
"""The schemes that are sent, and their ports."""
_SCHEME = re.compile(rb"((?:%s)[ \t]+)(?=\S)" % SCHEMES.encode(), re.I)
_SECRET_NAME = re.compile(
    r"(?:key|token|secret|passw(?:or)?d|signature|sig|auth|credential)$", re.I
)
_ODD = re.compile(rb"[#\x00-\x20\x7f-\xff]")  # no part of an address that curl would take
_LINE = 76


@dataclass(frozen=True, slots=True)
class Script:
    """text: of the file. variables: what to set before it runs, and what each is. masked: secrets
    in its body are now `*`. left_out: headers that no curl could send."""

    text: bytes
    variables: Mapping[str, str]
    masked: bool
    left_out: tuple[str, ...]


@dataclass(slots=True)
class _Variables:
    """One for each secret value; the values are not in the script."""

    names: dict[bytes, str] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)

    def name(self, value: bytes, wanted: str, about: str) -> str:
        if value not in self.names:
            name, number = wanted, 1
            while name in self.said:
                number += 1
                name = f"{wanted}_{number}"
            self.names[value], self.said[name] = name, about
        return self.names[value]


def script(
    request: http.Request,
    clean: http.Request,
    *,
    secret_headers: Set[str],
    anthropic: bool,
    streamed: bool,
) -> Script:
    """The script for a request. clean: a copy that `redact.flow.Redactor` has masked.

    secret_headers: names in lower case. anthropic: what the key's variable is called. streamed: to
    be shown as it comes. Raises ValueError where its body is not there, or where no curl could send
    it as it was.
    """
    if reason := _unsendable(request, clean):
        raise ValueError(f"it cannot be sent: {reason}")
    body = clean.raw_content
    if body is None:
        raise ValueError("its body was not kept")
    if body and request.data.method == b"HEAD":
        raise ValueError("it cannot be sent: with a body, curl sends no HEAD")
    sends = bool(body) or _has_empty_body(request)
    variables, left_out = _Variables(), list[str]()
    headers = list(_headers(request, clean, secret_headers, anthropic, variables, left_out))
    address, options = _address(request, clean, variables)
    arguments = [
        # -g: what is in brackets or braces is no pattern of many addresses.
        b"curl -sS" + b"N" * streamed + b" -g" + options,
        *_method(request, sends),
        address,
        *[b"-H " + header for header in headers],
        *[b"-H " + _quoted(name + b":") for name in _unwanted(clean, sends)],
        *_compressed(clean),
    ]
    masked = body != request.raw_content
    text = [*_about(request, body, variables.said, masked, left_out)]
    text += [b': "${%s:?set it first}"' % name.encode() for name in variables.said]
    text += list(_sent(body, b" \\\n  ".join(arguments), sends))
    return Script(b"\n".join(text) + b"\n", dict(variables.said), masked, tuple(left_out))


def _about(
    request: http.Request,
    body: bytes,
    variables: Mapping[str, str],
    masked: bool,
    left_out: list[str],
) -> Iterator[bytes]:
    yield b"#!/usr/bin/env bash"
    yield f"# The request as upstream got it; its body has {len(body):,} bytes.".encode()
    for name, about in variables.items():
        yield f"# Set {name} first: {plain(about)}.".encode()
    if masked:
        yield b"# Secrets in the body are * here, so that the answer may be another."
    for header in left_out:
        yield f"# Left out, no curl can send it: the header {plain(header)}.".encode()


def _unsendable(request: http.Request, clean: http.Request) -> str:
    """Why it is not, in words that hold nothing of it; empty where it is."""
    sent, shown = request.data, clean.data
    if sent.scheme not in _PORTS:
        return "its scheme is neither http nor https"
    if not _TOKEN.fullmatch(sent.method) or sent.method == b"CONNECT":
        return "its method is none that curl sends"
    if not (_is_ipv6(sent.host) or _HOST.fullmatch(sent.host)) or not 0 < sent.port < 65_536:
        return "its host is no name and no address"
    if _CONTROL.search(sent.path):
        return "there are control characters in its path"
    if (sent.method, sent.host, request.host_header) != (
        shown.method,
        shown.host,
        clean.host_header,
    ):
        return "there is a secret in its method or host"
    return ""


def _has_empty_body(request: http.Request) -> bool:
    """Whether it says so itself: of no bytes, curl would leave the length out."""
    method = request.data.method
    says = "content-length" in request.headers or method in (b"POST", b"PUT", b"PATCH")
    return says and method != b"HEAD"


def _method(request: http.Request, sends: bool) -> list[bytes]:
    method = request.data.method
    if method == b"HEAD":
        return [b"--head"]
    if method == b"GET" and not sends:
        return []
    return [b"-X " + _quoted(method)]


# headers


def _headers(
    request: http.Request,
    clean: http.Request,
    secret_headers: Set[str],
    anthropic: bool,
    variables: _Variables,
    left_out: list[str],
) -> Iterator[bytes]:
    """Each as a word of the shell."""
    fields = request.headers.fields
    if "content-encoding" not in clean.headers:  # a body that was masked is kept decoded
        fields = tuple(one for one in fields if one[0].lower() != b"content-encoding")
    for (name, value), (shown, masked) in zip(fields, clean.headers.fields, strict=True):
        lower = name.decode("latin-1").lower()
        if lower in _OWN:
            continue
        # What begins with an @, which no name does, curl takes for a file of headers.
        odd = not _TOKEN.fullmatch(name) or any(byte in value for byte in (b"\0", b"\r", b"\n"))
        if odd or name != shown:  # the name holds a secret
            left_out.append(shown.decode("utf-8", "backslashreplace"))
        elif not value.strip():
            yield _quoted(shown + b";")
        elif lower in secret_headers or masked != value:
            scheme = _SCHEME.match(value) if "authorization" in lower else None
            start = scheme.end() if scheme else 0
            wanted = _variable(lower, value, anthropic)
            variable = variables.name(value[start:], wanted, f"the header {lower}")
            yield _quoted(shown + b": " + value[:start]) + _expanded(variable)
        else:
            yield _quoted(shown + b": " + value)
    host = (clean.host_header or "").encode("utf-8", "surrogateescape")
    if _CONTROL.search(host):
        left_out.append("host")
    elif host and host != _host(request):
        yield _quoted(b"host: " + host)


def _variable(header: str, value: bytes, anthropic: bool) -> str:
    """The name by which SDKs know it, where they do."""
    if header == "authorization" and value[:7].lower() == b"bearer ":
        return "ANTHROPIC_AUTH_TOKEN" if anthropic else "OPENAI_API_KEY"
    if header == "x-api-key":
        return "ANTHROPIC_API_KEY" if anthropic else "OPENAI_API_KEY"
    return _named(header)


def _named(of: str) -> str:
    """A variable that is none of the shell's own, such as PATH."""
    return "SECRET_" + re.sub(r"[^A-Z0-9]", "_", of.upper())


def _unwanted(clean: http.Request, sends: bool) -> Iterator[bytes]:
    """Headers that curl would add."""
    yield b"expect"
    for name in ("accept", "user-agent", *(("content-type",) if sends else ())):
        if name not in clean.headers:
            yield name.encode()


def _compressed(clean: http.Request) -> Iterator[bytes]:
    """So that a compressed answer is readable; what is asked for is the header's."""
    if clean.headers.get("accept-encoding", "identity") not in ("identity", ""):
        yield b"--compressed"


# the address


def _address(
    request: http.Request, clean: http.Request, variables: _Variables
) -> tuple[bytes, bytes]:
    """The address as a word of the shell, and the options that keep curl from reading it its own
    way."""
    path, mark, query = request.data.path.partition(b"?")
    shown_path, _, shown_query = clean.data.path.partition(b"?")
    site = request.data.scheme + b"://" + _host(request)
    parts = [*_parts(path, shown_path, b"/", "the address", variables), mark]
    parts += _parts(query, shown_query, b"&", "the query", variables)
    # Newer curls take `%2e` for a dot.
    options = b" --path-as-is" if b"/." in path or b"%2e" in path.lower() else b""
    # What does not begin with a slash would go on with the host: `@another.host/`.
    whole = request.data.path
    if (whole and not whole.startswith(b"/")) or _ODD.search(whole):
        return _word([site, b"/"]), b" --request-target " + _word(parts) + options
    return _word([site, *parts]), options


def _host(request: http.Request) -> bytes:
    """Host and port, as they stand in an address."""
    data = request.data
    host = f"[{data.host.replace('%', '%25')}]" if _is_ipv6(data.host) else data.host
    port = "" if data.port == _PORTS[data.scheme] else f":{data.port}"
    return f"{host}{port}".encode()


def _is_ipv6(host: str) -> bool:
    try:
        scope = IPv6Address(host).scope_id
    except AddressValueError:
        return False
    return scope is None or _HOST.fullmatch(scope) is not None


def _word(parts: list[bytes | str]) -> bytes:
    """Literal bytes and variables as one word of the shell."""
    word, literal = b"", b""
    for part in parts:
        if isinstance(part, bytes):
            literal += part
        else:
            word += (_quoted(literal) if literal else b"") + _expanded(part)
            literal = b""
    return word + _quoted(literal) if literal or not word else word


def _parts(
    path: bytes, clean: bytes, between: bytes, about: str, variables: _Variables
) -> list[bytes | str]:
    """Literal bytes, and the names of variables."""
    parts: list[bytes | str] = []
    pieces, shown = path.split(between), clean.split(between)
    if len(pieces) != len(shown):  # a pattern has matched across them
        pieces, shown = [path], [clean]
    for at, (piece, masked) in enumerate(zip(pieces, shown, strict=True)):
        parts.append(between if at else b"")
        name, equals, value = piece.partition(b"=") if between == b"&" else (b"", b"", piece)
        if not equals or name != masked.partition(b"=")[0]:  # there is no name, or it is a secret
            name, equals, value = b"", b"", piece
        text = name.decode("latin-1")
        if value and (piece != masked or _SECRET_NAME.search(text)):
            what = f"{text} in {about}, as it stands there" if text else f"a part of {about}"
            parts += [name + equals, variables.name(value, _named(text or "part"), what)]
        else:
            parts.append(piece)
    return parts


# the body


def _sent(body: bytes, curl: bytes, sends: bool) -> Iterator[bytes]:
    """The body, fed to curl by a here-document: no limit of an argument's size, and no character
    that a shell reads in its own way."""
    if not body:
        yield curl + (b" \\\n  --data-binary ''" if sends else b"")
        return
    curl += b" \\\n  --data-binary @-"
    end = _end(body)
    if _is_text(body):
        # A here-document ends in a line feed, which the body may not have.
        yield b"head -c %d <<'%s' | %s" % (len(body), end, curl)
        yield body
    else:
        yield b"base64 --decode <<'%s' | %s" % (end, curl)
        coded = base64.b64encode(body)
        yield from (coded[at : at + _LINE] for at in range(0, len(coded), _LINE))
    yield end


def _is_text(body: bytes) -> bool:
    if len(body.translate(None, _ODD_IN_TEXT)) < len(body) or _C1.search(body):
        return False
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _end(body: bytes) -> bytes:
    """A line that is none of the body's."""
    end, number = b"END_OF_BODY", 0
    while end in body:
        number += 1
        end = b"END_OF_BODY_%d" % number
    return end


def _quoted(raw: bytes) -> bytes:
    return b"'" + raw.replace(b"'", b"'\\''") + b"'"


def _expanded(variable: str) -> bytes:
    return f'"${variable}"'.encode()
