"""Twenty files of each kind that `moontap lint` reads, odd and damaged ones among them.

Deterministic, made of `documents`. `damaged`: part of it cannot be used, and that must be said.
"""

from __future__ import annotations

import codecs
import copy
import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from backports import zstd
from mitmproxy.test import tflow

from moontap.evidence.kinds import Kind
from tests.evidence import documents
from tests.evidence.documents import DOCUMENTS, LINES, STREAMS, flow_file, har, joined
from tests.samples import dump

SURROGATE = "\ud83d"


@dataclass(frozen=True)
class Made:
    """A file. name: how it differs from the plain one. folder: it is a capture's traffic.flow."""

    kind: Kind
    name: str
    data: bytes
    damaged: bool = False

    def __str__(self) -> str:
        return f"{self.kind.value}-{self.name}"


def utf16(text: bytes) -> bytes:
    return codecs.BOM_UTF16_LE + text.decode().encode("utf-16-le")


def utf16_big(text: bytes) -> bytes:
    return codecs.BOM_UTF16_BE + text.decode().encode("utf-16-be")


def bom(text: bytes) -> bytes:
    return codecs.BOM_UTF8 + text


def crlf(text: bytes) -> bytes:
    return text.replace(b"\n", b"\r\n")


PACKED: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("bom", bom),
    ("utf-16", utf16),
    ("utf-16-big-endian", utf16_big),
    ("gzip", lambda text: gzip.compress(text, mtime=0)),
    ("zstd", zstd.compress),
    ("blank-lines-before", lambda text: b"\n \t\n" + text),
]


def of_document(kind: Kind, value: Any) -> Iterator[Made]:
    plain, pretty = dump(value), json.dumps(value, indent=2).encode()
    yield Made(kind, "plain", plain)
    for name, made in PACKED:
        yield Made(kind, name, made(plain))
    yield Made(kind, "pretty", pretty)
    yield Made(kind, "pretty-crlf", crlf(pretty))
    yield Made(kind, "tabs", json.dumps(value, indent="\t", ensure_ascii=False).encode())
    yield Made(kind, "escaped-letters", plain.replace(b"Bash", rb"\u0042ash"))
    yield Made(kind, "no-line-end-spaces", b"  " + plain + b"   ")
    yield Made(kind, "unknown-fields", dump(with_unknown(value)))
    yield Made(kind, "keys-reversed", dump(turned(value)))
    yield Made(kind, "lone-surrogate", json.dumps(with_text(value, SURROGATE)).encode())
    yield Made(kind, "nan", dump(with_text(value, float("nan"))), damaged=True)
    yield Made(
        kind,
        "not-utf-8",
        plain[:-1] + b',"x":"\xff"}'
        if plain[-1:] == b"}"
        else plain[:-1] + b',{"role":"user","content":"\xff"}]',
        damaged=True,
    )
    yield Made(kind, "breaks-off", cut(kind, plain), damaged=True)
    yield Made(kind, "breaks-off-pretty", cut(kind, pretty), damaged=True)
    yield Made(kind, "more-behind", plain + b"\n-- end of log --\n", damaged=True)


def with_unknown(value: Any) -> Any:
    if isinstance(value, dict):
        return {**{name: with_unknown(one) for name, one in value.items()}, "x_new": {"a": [1]}}
    return [with_unknown(one) for one in value] if isinstance(value, list) else value


def turned(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: turned(value[name]) for name in reversed(value)}
    return [turned(one) for one in value] if isinstance(value, list) else value


def with_text(value: Any, text: object) -> Any:
    """With a value put into a member that nobody knows."""
    value = copy.deepcopy(value)
    (value if isinstance(value, dict) else value[0])["x_odd"] = text
    return value


def cut(kind: Kind, text: bytes) -> bytes:
    """Broken off in the last message, block or member."""
    mark = {
        Kind.CHAT_REPLY: b'"usage"',
        Kind.MESSAGES_REPLY: b'"ls"',
        Kind.ERROR: b"duplicated",
    }.get(kind, b"Sunday")
    return text[: text.rindex(mark) + 4]


def of_lines(kind: Kind, records: list[dict[str, Any]], first: bytes = b"") -> Iterator[Made]:
    plain = joined(records)
    lines = plain.splitlines(keepends=True)
    middle = len(lines) // 2
    yield Made(kind, "plain", plain)
    for name, made in PACKED:
        yield Made(kind, name, made(plain))
    yield Made(kind, "crlf", crlf(plain))
    yield Made(kind, "no-last-line-end", plain.rstrip(b"\n"))
    yield Made(kind, "blank-lines-between", plain.replace(b"\n", b"\n\n"))
    yield Made(kind, "one-line", lines[middle])
    yield Made(kind, "one-record-pretty", json.dumps(json.loads(lines[middle]), indent=2).encode())
    yield Made(kind, "zeros-behind", plain + b"\0" * 512)
    yield Made(kind, "unknown-fields", joined(with_unknown(records)))
    odd = json.dumps({**records[middle], "x_odd": SURROGATE}).encode() + b"\n"
    yield Made(kind, "lone-surrogate", b"".join([*lines[:middle], odd, *lines[middle + 1 :]]))
    yield Made(kind, "begins-within-a-line", lines[0][15:] + b"".join(lines[1:]), damaged=True)
    yield Made(kind, "breaks-off", plain[:-20], damaged=True)
    broken = [*lines[:middle], b"=== log rotated ===\n", *lines[middle:]]
    yield Made(kind, "noise-between", b"".join(broken), damaged=True)
    torn = [*lines[:middle], lines[middle][:30], *lines[middle + 1 :]]
    yield Made(kind, "two-lines-run-together", b"".join(torn), damaged=True)
    yield Made(kind, "not-utf-8", plain + b'{"type":"\xff"}\n', damaged=True)


def of_log(kind: Kind) -> Iterator[Made]:
    lines = documents.debug_log()
    plain = joined(lines)
    refused = (
        '2026-11-29T12:00:09.000Z [ERROR] API error (attempt 1/11): 400 400 {"type":"error",'
        '"error":{"type":"invalid_request_error","message":"tool call id Bash_0 is duplicated"}}'
    )
    yield Made(kind, "plain", plain)
    for name, made in PACKED:
        yield Made(kind, name, made(plain))
    yield Made(kind, "crlf", crlf(plain))
    yield Made(kind, "no-repairs", joined(lines[:1]))
    yield Made(kind, "one-repair", joined(documents.debug_log(1)))
    yield Made(kind, "many-repairs", joined(documents.debug_log(60)))
    yield Made(kind, "refused", joined([*lines, refused]))
    yield Made(kind, "refused-with-html", joined([*lines, refused.partition("{")[0] + "<html>"]))
    yield Made(kind, "stack-trace", joined([lines[0], "    at run (cli.js:1:2)", *lines[1:]]))
    yield Made(kind, "no-last-line-end", plain.rstrip(b"\n"))
    yield Made(kind, "begins-within-a-line", plain[30:])
    yield Made(kind, "other-levels", joined([line.replace("DEBUG", "INFO") for line in lines]))
    yield Made(kind, "noise-between", joined([lines[0], "=== rotated ===", *lines[1:]]))
    yield Made(kind, "breaks-off", plain + b"2026-11-29T12:0", damaged=True)
    yield Made(kind, "not-utf-8", plain + b"2026-11-29T12:00:09.000Z [INFO] \xff\n", damaged=True)


def of_stream(kind: Kind, events: list[bytes]) -> Iterator[Made]:
    plain = b"".join(events)
    datas = [line[5:].strip() for line in plain.split(b"\n") if line.startswith(b"data:")]
    nameless = b"\n".join(line for line in plain.split(b"\n") if not line.startswith(b"event:"))
    yield Made(kind, "plain", plain)
    for name, made in PACKED:
        yield Made(kind, name, made(plain))
    yield Made(kind, "crlf", crlf(plain))
    named = plain.replace(b"data:", b"event: message\ndata:")
    if nameless == plain:
        yield Made(kind, "event-lines", named)
    else:
        yield Made(kind, "no-event-lines", nameless)
    yield Made(kind, "no-space", plain.replace(b"data: ", b"data:"))
    yield Made(kind, "comment-first", b": keep-alive\n\n" + plain)
    yield Made(kind, "ping-first", b'event: ping\ndata: {"type":"ping"}\n\n' + plain)
    yield Made(kind, "with-ids", b"id: 1\nretry: 3000\n" + plain)
    yield Made(kind, "blank-between", plain.replace(b"\n\n", b"\n \n"))
    yield Made(kind, "many-blank-lines", plain.replace(b"\n\n", b"\n\n\n\n"))
    yield Made(kind, "twice", plain + plain)
    yield Made(kind, "breaks-off", plain[:-25])
    yield Made(kind, "breaks-off-in-a-call", plain[: plain.index(b"Bash") + 6])
    yield Made(kind, "begins-within-a-line", plain[9:])
    yield Made(kind, "data-alone", b"\n".join(one for one in datas if one != b"[DONE]"))


def of_flows(kind: Kind) -> Iterator[Made]:
    saved = documents.flows()
    plain = flow_file(saved)
    one = flow_file(saved[:1])
    chat = flow_file(documents.chatted())
    end = len(flow_file(saved[:2]))
    is_file = kind is Kind.FLOWS
    yield Made(kind, "plain", plain)
    yield Made(kind, "one", one)
    yield Made(kind, "chat", chat)
    yield Made(kind, "both-protocols", plain + chat)
    yield Made(kind, "long", flow_file(documents.flows(16)))
    yield Made(kind, "other-traffic", flow_file([tflow.tflow(resp=True)]))
    yield Made(kind, "no-response", flow_file([tflow.tflow()]))
    yield Made(kind, "errors", flow_file([tflow.tflow(err=True), *saved]))
    yield Made(kind, "websocket", flow_file([tflow.twebsocketflow(), *saved]))
    yield Made(kind, "tcp-between", flow_file([saved[0], tflow.ttcpflow(), *saved[1:]]))
    yield Made(kind, "tcp-first", flow_file([tflow.ttcpflow(), *saved]))
    yield Made(kind, "dns-first", flow_file([tflow.tdnsflow(), *saved]))
    yield Made(kind, "twice", plain + plain)
    yield Made(
        kind,
        "gzip" if is_file else "reversed",
        gzip.compress(plain, mtime=0) if is_file else flow_file(saved[::-1]),
    )
    yield Made(
        kind,
        "zstd" if is_file else "marked",
        zstd.compress(plain) if is_file else flow_file([saved[0].copy(), *saved]),
    )
    yield Made(kind, "breaks-off", plain[:-200], damaged=True)
    yield Made(kind, "breaks-off-early", plain[: end + 40], damaged=True)
    yield Made(kind, "begins-within-a-record", plain[60:], damaged=True)
    middle = end - 120
    yield Made(
        kind, "damaged-within", plain[:middle] + b"\0" * 60 + plain[middle + 60 :], damaged=True
    )
    yield Made(kind, "noise-behind", plain + b"=== end ===", damaged=True)


def of_har(kind: Kind) -> Iterator[Made]:
    saved = documents.flows()
    plain, pretty = har(saved), har(saved, 4)
    value = json.loads(plain)
    yield Made(kind, "plain", plain)
    for name, made in PACKED:
        yield Made(kind, name, made(plain))
    yield Made(kind, "pretty", pretty)
    yield Made(kind, "pretty-crlf", crlf(pretty))
    yield Made(kind, "one", har(saved[:1]))
    yield Made(kind, "chat", har(documents.chatted()))
    yield Made(kind, "other-traffic", har([tflow.tflow(resp=True)]))
    yield Made(kind, "unknown-fields", dump(with_unknown(value)))
    yield Made(kind, "keys-reversed", dump({"log": turned(value["log"])}))
    yield Made(kind, "another-member-first", dump({"x": 1, **value}))
    yield Made(kind, "no-creator", dump({"log": {"entries": value["log"]["entries"]}}))
    yield Made(kind, "breaks-off", plain[:-300], damaged=True)
    yield Made(kind, "breaks-off-pretty", pretty[:-300], damaged=True)
    entries = value["log"]["entries"]
    yield Made(kind, "an-entry-is-empty", dump({"log": {"entries": [{}, *entries]}}), damaged=True)
    yield Made(kind, "an-entry-is-null", dump({"log": {"entries": [*entries, None]}}), damaged=True)


def every() -> list[Made]:
    """All of them, in the order of the kinds."""
    made = [*of_flows(Kind.CAPTURE), *of_flows(Kind.FLOWS), *of_har(Kind.HAR)]
    for kind, value in DOCUMENTS.items():
        made += of_document(kind, value)
    for kind, events in STREAMS.items():
        made += of_stream(kind, events)
    for kind, records in LINES.items():
        made += of_lines(kind, records)
    return [*made, *of_log(Kind.DEBUG_LOG)]
