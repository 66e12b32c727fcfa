"""What holds for every exchange, whatever its sheet says, found without the tap's own readers.

Saved flows in, complaints out. Delivered bytes are upstream's but for the ids that changed;
requests are the client's but for the ids of a healed history, and those are unique.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from mitmproxy import http

from moontap.capture import metadata
from moontap.standin import coding
from tests.golden.outcome import changes

_STRING = rb'(?:[^"\\]|\\.)*'
_ID_KEYS = ("id", "tool_use_id", "tool_call_id")


def complaints(recorded: Sequence[http.HTTPFlow], got: Sequence[http.HTTPFlow]) -> Iterator[str]:
    """What is wrong with the exchanges of a run. recorded: as a bare mitmproxy would have them."""
    if len(recorded) != len(got):
        yield f"{len(recorded)} exchanges were recorded, {len(got)} came of them"
        return
    for number, (before, after) in enumerate(zip(recorded, got, strict=True), 1):
        for complaint in (*_reply(before, after), *_request(before, after)):
            yield f"exchange {number}: {complaint}"


def _reply(before: http.HTTPFlow, after: http.HTTPFlow) -> Iterator[str]:
    if before.response is None or after.response is None:
        if before.response or after.response:
            yield "one way has a reply, the other has none"
        return
    sent, got = before.response.raw_content or b"", after.response.raw_content or b""
    if sent == got:
        return
    try:
        new = {id_ for upstream_id, id_ in changes(after) if id_ and id_ != upstream_id}
    except ValueError as error:
        yield f"cannot be read: {error}"
        return
    sent = coding.decode(sent, _encoding(before.response))
    ids = b"|".join(re.escape(json.dumps(id_)[1:-1].encode()) for id_ in sorted(new))
    # The quotes keep an id from being found within a longer one.
    parts = re.split(rb'(?<=")(?:%s)(?=")' % ids, got) if new else [got]
    pattern = _STRING.join(map(re.escape, parts))
    whole = not after.metadata.get(metadata.INCOMPLETE)
    if not (re.fullmatch if whole else re.match)(pattern, sent, re.DOTALL):
        yield "the client got other bytes than upstream's with the ids changed"


def _request(before: http.HTTPFlow, after: http.HTTPFlow) -> Iterator[str]:
    own, sent = before.request.raw_content or b"", after.request.raw_content or b""
    if own == sent:
        return
    encoding = before.request.headers.get("content-encoding", "")
    values = [json.loads(coding.decode(body, encoding)) for body in (own, sent)]
    keys = set(_differing(*values))
    if keys - set(_ID_KEYS):
        yield f"the request was changed at {', '.join(sorted(keys - set(_ID_KEYS)))}"
    ids = list(_call_ids(values[1]))
    if len(set(ids)) < len(ids):
        yield "a healed history still has duplicate ids"


def _encoding(response: http.Response) -> str:
    named: str = response.headers.get("content-encoding", "")
    if not named and (response.raw_content or b"").startswith(b"\x1f\x8b"):
        return "gzip"
    return named


def _differing(one: Any, other: Any, key: str = "(top)") -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict) and list(one) == list(other):
        for name in one:
            yield from _differing(one[name], other[name], name)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for left, right in zip(one, other, strict=True):
            yield from _differing(left, right, key)
    elif one != other:
        yield key


def _call_ids(body: Any) -> Iterator[str]:
    for message in body["messages"]:
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        calls = [block for block in blocks if block.get("type") == "tool_use"]
        for call in [*calls, *(message.get("tool_calls") or [])]:
            if call.get("id"):
                yield call["id"]
