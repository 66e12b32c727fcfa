"""The guard's answer in place of upstream's: the protocol's own error, never a success.

A refusal in, a status, headers and a body out. Pure.
"""

import json

from moontap.guard.types import Refusal
from moontap.wire.types import Protocol

STATUS = 423
"""Locked (RFC 4918, section 11.3): until somebody lifts it.

The official SDKs try again on 408, 409, 429 and from 500 on. Claude Code 2.1.328 does so on 400 and
422 as well, with fewer features each time; on 403 it says that the login failed, on 404 that there
is no such model, on 402 one thinks of money. This one it shows, and ends.
"""

KIND = "invalid_request_error"
"""The type that both APIs have for an error that the same request gets again."""

HEADERS = (
    (b"content-type", b"application/json"),
    (b"x-should-retry", b"false"),  # both official SDKs obey it
)


def body(protocol: Protocol, refusal: Refusal) -> bytes:
    """The body of the error. `error` holds the details, as SDKs hand on but that."""
    error = {
        "type": KIND,
        "message": f"{refusal.code}: {refusal.message}",
        "code": refusal.code,
        refusal.code: {**refusal.facts, "requires_review": True},
    }
    if protocol is Protocol.ANTHROPIC:
        return _json({"type": "error", "error": error})
    return _json({"error": {**error, "param": None}})


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()
