"""The names under which moontap keeps things in `flow.metadata`.

Values are what mitmproxy can serialise (bool, int, float, str, bytes, list). Short scalars are
for `~meta` filters; the rest is what `traffic.flow` needs to be the whole truth.
"""

UPSTREAM_BODY = "moontap.upstream_body"
"""bytes: what upstream sent as the response body, where the client got something else."""

UPSTREAM_ENCODING = "moontap.upstream_encoding"
"""str: its content-encoding header, where that was dropped because the tap decoded it."""

CHUNKS = "moontap.chunks"
"""list of [bytes, milliseconds since the response headers]: upstream's chunks as they arrived."""

HEALED = "moontap.healed"
"""list of [offset, length, bytes]: put these bytes there into the request body as it stands
(content encoding undone), and it is what the client sent. See `rewrite.unheal`."""

INCOMPLETE = "moontap.incomplete"
"""True: the reply broke off, or the run ended before it did; what arrived is kept."""

CALLS = "moontap.calls"
"""int: tool calls in the reply."""

REWRITTEN = "moontap.rewritten"
"""int: how many of them the client got under a new id."""

SESSION = "moontap.session"
"""str: the session it belongs to."""

SCRUBBED = "moontap.scrubbed"
"""bytes: digests, of 8 bytes each, of what `moontap scrub` has put into the flow."""

ALL = (UPSTREAM_BODY, UPSTREAM_ENCODING, CHUNKS, HEALED, INCOMPLETE, CALLS, REWRITTEN, SESSION)
