"""Who a file is about: the values that name an account, a device or a session, and its secrets.

Flows go in one by one, values come out; where they stand is known, so that they can be found
wherever else they stand. It changes nothing. Ids of single requests and messages are not among
them: they name nobody to a stranger, and the ids that the tap makes are derived from them.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from mitmproxy import http

from moontap.capture import metadata
from moontap.care import made
from moontap.redact.coded import decoded
from moontap.redact.flow import SECRET_HEADERS, carried_secrets
from moontap.rules import Redact
from moontap.wire import jsontext

_HEADERS = frozenset(
    (
        "x-claude-code-session-id",
        "x-claude-code-agent-id",
        "x-claude-code-parent-agent-id",
        "anthropic-organization-id",
        "openai-organization",
        "openai-project",
        "x-session-id",
        "x-user-id",
        "x-forwarded-for",
        "x-real-ip",
        "forwarded",
        "true-client-ip",
        "cf-connecting-ip",
    )
)
_ATOM = re.compile(
    r"(?<![0-9A-Za-z])(?:[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-fA-F]{32,})"
    r"(?![0-9A-Za-z])"
)
_PARTS = re.compile(r"""[^\s,;="']+""")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
# Shorter ones, and words, would be replaced in ordinary text too; a rule can name them.
_SHORTEST = 7


class _Top(msgspec.Struct):
    """The members of a request that may name who sends it."""

    metadata: Any = None
    user: Any = None
    safety_identifier: Any = None
    prompt_cache_key: Any = None


_DECODER = msgspec.json.Decoder(_Top)


class Known:
    """What was learned of a file so far. secrets: what its secret headers carry."""

    def __init__(self, redact: Redact | None = None) -> None:
        self.secrets: set[str] = set()
        self.ids: set[str] = set()
        self._headers = SECRET_HEADERS.union(redact.headers if redact else ())

    def learn(self, flow: http.HTTPFlow) -> None:
        """Take in a flow. What an earlier scrub has put there names nobody."""
        ids = set[str]()
        self.secrets.update(
            value for value in carried_secrets(flow, self._headers) if value.strip("*")
        )
        for message in (flow.request, flow.response):
            if message:
                for name, value in message.headers.fields:
                    if name.decode("latin-1").lower() in _HEADERS:
                        ids.update(_ids(value.decode("utf-8", "surrogateescape")))
        session = flow.metadata.get(metadata.SESSION)
        if isinstance(session, str) and not session.startswith("conversation-"):
            ids.update(_ids(session))
        for text in _named(flow.request):
            ids.update(_ids(text))
        put = made.read(flow)
        self.ids.update(one for one in ids if not put or made.digest(one) not in put)


def _named(request: http.Request) -> Iterator[str]:
    body = request.raw_content
    if not body or request.method != "POST":
        return
    try:
        plain = decoded(body, request.headers.get("content-encoding"))
    except Exception:  # it is blanked later, and said so
        return
    top = jsontext.decode(_DECODER, body if plain is None else plain)
    if top is None:
        return
    values = [top.user, top.safety_identifier, top.prompt_cache_key]
    if isinstance(top.metadata, dict):
        values += top.metadata.values()
    yield from (value for value in values if isinstance(value, str))


def _ids(text: str) -> Iterator[str]:
    """The ids in a text: UUIDs and long hexadecimal numbers, else what looks like an id."""
    atoms = _ATOM.findall(text)
    if atoms:
        yield from atoms
        return
    for part in _PARTS.findall(text):
        telling = "@" in part or any(character.isdigit() for character in part)
        if len(part) >= _SHORTEST and telling and not part.startswith(_LOOPBACK):
            yield part
