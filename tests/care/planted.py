"""Values that belong to somebody, rules that name them, and the search for what is left of them."""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from urllib.parse import quote

from mitmproxy import http
from mitmproxy.test import tflow

from moontap.jsonpaths import compile_path
from moontap.rules import Rules, Scrub

VALUES: Mapping[str, str] = {
    "name": "Rosalind",
    "name with an accent": "Zoë-Anaïs",
    "name in Chinese": "欧阳修远",
    "two words": "Quentin Archer",
    "path": "/home/rosalind/secretproject/notes.md",
    "mail": "quentin.archer@example.org",
    "selected": "the blue whale 4711",
}
"""What must not be left, each in full. No value but `selected` is found by a JSON path."""

RULES = Rules(
    scrub=Scrub(
        names=("Rosalind", "Zoë-Anaïs", "欧阳修远", "Quentin Archer"),
        paths=("/home/rosalind",),
        texts=(re.compile(r"[\w.]+@[\w.]+\w"),),
        json_paths=(compile_path("$..customer"),),
    )
)

TEXT = " | ".join(value for name, value in VALUES.items() if name != "selected")
TOKEN = "made-up.token_0001"
UUID = "12345678-1234-4abc-8def-1234567890ab"
URL = "https://api.moonshot.cn/anthropic/v1/messages"


def flow_of(
    request: bytes = b"{}",
    response: bytes = b"{}",
    headers: Mapping[str, str] | None = None,
    kind: str = "application/json",
    url: str = URL,
) -> http.HTTPFlow:
    flow = tflow.tflow()
    fields = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    flow.request = http.Request.make("POST", url, b"", http.Headers(fields))
    flow.request.raw_content = request
    flow.response = http.Response.make(200, b"", {"content-type": kind})
    flow.response.raw_content = response
    return flow


def dump(value: object, how: str = "plain") -> bytes:
    """JSON in the spellings of several encoders."""
    if how == "escaped":
        return json.dumps(value).encode()
    text = json.dumps(value, ensure_ascii=False)
    return (text.replace("/", "\\/") if how == "slashes" else text).encode()


def left(data: bytes) -> set[str]:
    """The values of which some bytes still hold a half or more, in any usual spelling."""
    small = data.lower()
    return {name for name, value in VALUES.items() if any(form in small for form in _forms(value))}


def _forms(value: str) -> Iterator[bytes]:
    half = len(value) // 2
    for text in (value[:half] if half > 4 else value, value[-half:] if half > 4 else value):
        yield text.lower().encode()
        yield json.dumps(text)[1:-1].lower().encode()
        yield quote(text, safe="").lower().encode()
        coded = base64.b64encode(text.encode())[:-4].lower()
        if len(coded) > 8:
            yield coded
