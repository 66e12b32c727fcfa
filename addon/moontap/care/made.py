"""What `moontap scrub` has put into a flow, so that it is known when it is found again.

Values in, digests out. Without it a replacement that looks like what a rule asks for would be
replaced again each time.
"""

import hashlib
from collections.abc import Iterable

from mitmproxy import http

from moontap.capture import metadata

_SIZE = 8


def digest(value: str) -> bytes:
    """Eight bytes that stand for a value."""
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).digest()[:_SIZE]


def read(flow: http.HTTPFlow) -> frozenset[bytes]:
    """The digests that a flow carries."""
    kept = flow.metadata.get(metadata.SCRUBBED)
    data = kept if isinstance(kept, bytes) else b""
    return frozenset(data[at : at + _SIZE] for at in range(0, len(data), _SIZE))


def write(flow: http.HTTPFlow, digests: Iterable[bytes]) -> None:
    """Let a flow carry digests; in one order, so that equal flows stay equal."""
    if data := b"".join(sorted(digests)):
        flow.metadata[metadata.SCRUBBED] = data
