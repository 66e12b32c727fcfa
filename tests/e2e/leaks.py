"""Whether known secrets stand in what a run left: plainly, encoded, compressed or cut in pieces.

A folder or bytes in, the names of the secrets found out. It shares no code with the tap.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mitmproxy import http, io


def in_folder(folder: Path, secrets: Mapping[str, str]) -> set[str]:
    """The secrets in any file, and in any body of its flow files once that is decoded."""
    found: set[str] = set()
    for path in folder.rglob("*"):
        found |= in_bytes(str(path).encode(), secrets)
        if path.is_file():
            found |= in_bytes(path.read_bytes(), secrets)
        if path.suffix == ".flow":
            for body in _bodies(path):
                found |= in_bytes(body, secrets) | in_bytes(_joined(body), secrets)
    return found


def in_bytes(data: bytes, secrets: Mapping[str, str]) -> set[str]:
    """The secrets that stand in some bytes, or the second half of one."""
    found = set()
    for name, secret in secrets.items():
        half = secret[len(secret) // 2 :]
        if any(form in data for whole in (secret, half) for form in _forms(whole)):
            found.add(name)
    return found


def in_events(body: bytes, secrets: Mapping[str, str]) -> set[str]:
    """The secrets that the events of a stream say piece by piece."""
    return in_bytes(_joined(body), secrets)


def _forms(secret: str) -> Iterator[bytes]:
    raw = secret.encode()
    yield raw
    yield raw.hex().encode()
    yield quote(secret, safe="").encode()
    for shift in range(3):
        # The first and the last characters of base64 depend on what stands beside.
        coded = base64.b64encode(b"\0" * shift + raw)
        yield coded[4:-4]


def _bodies(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        for flow in io.FlowReader(file).stream():
            if not isinstance(flow, http.HTTPFlow):
                continue
            for message in (flow.request, flow.response):
                if message is not None:
                    yield message.get_content(strict=False) or b""
            sent = flow.metadata.get("moontap.upstream_body")
            if sent and flow.response:
                coding = flow.metadata.get("moontap.upstream_encoding", "")
                yield sent
                yield (
                    http.Response.make(200, sent, {"content-encoding": coding}).get_content(
                        strict=False
                    )
                    or b""
                )


def _joined(body: bytes) -> bytes:
    """All strings of a stream's events, those at one place one after the other."""
    strings: dict[tuple[object, ...], list[str]] = {}
    for line in body.splitlines():
        if line.startswith(b"data:"):
            try:
                event = json.loads(line[5:])
            except ValueError:
                continue
            for place, text in _strings(event):
                strings.setdefault((_number(event), *place), []).append(text)
    return "\n".join("".join(pieces) for pieces in strings.values()).encode()


def _number(event: Any) -> object:
    return event.get("index") if isinstance(event, dict) else None


def _strings(value: Any) -> Iterator[tuple[tuple[object, ...], str]]:
    if isinstance(value, str):
        yield (), value
    elif isinstance(value, dict):
        for name, member in value.items():
            for place, text in _strings(member):
                yield (name, *place), text
    elif isinstance(value, list):
        for member in value:
            for place, text in _strings(member):
                yield (_number(member), *place), text
