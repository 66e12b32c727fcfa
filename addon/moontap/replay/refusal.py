"""The answer to a request that nothing recorded matches: an error in the protocol's own form.

A request's path and a message in, what to play out.
"""

import json

from moontap.serving.play import Play
from moontap.wire.types import Protocol

# SDKs and Claude Code try again on 408, 409, 429 and from 500 on, and give up on this.
_STATUS = 400
_KIND = "invalid_request_error"


def refusal(protocol: Protocol | None, message: str) -> Play:
    """protocol: None takes the form of Chat Completions, as Moonshot does."""
    error: dict[str, object] = {"message": message, "type": _KIND}
    body: dict[str, object] = {"error": error}
    if protocol is Protocol.ANTHROPIC:
        body = {"type": "error", **body}
    text = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
    headers = ((b"content-type", b"application/json"), (b"content-length", b"%d" % len(text)))
    return Play(_STATUS, headers, (text,))
