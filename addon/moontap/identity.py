"""Whose exchange it is: the session and the agent that a client's headers or body name.

Headers and the body's own hint in, names out. Pure. Not keyed on the first user message while
anything else names a session: clients put the same reminder text first in many conversations.
"""

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

from moontap.wire.types import Request

_SESSION = "x-claude-code-session-id"
_AGENT = "x-claude-code-agent-id"  # on requests of sub-agents only (seen on 2.1.328)


class Identity(NamedTuple):
    """session, agent: None where the client names none."""

    session: str | None
    agent: str | None


def identify(headers: Mapping[str, str], hint: str | None) -> Identity:
    """headers: of the request, looked up in lower case. hint: `Request.session`."""
    return Identity(_text(headers.get(_SESSION)) or _text(hint), _text(headers.get(_AGENT)))


def _text(name: str | None) -> str | None:
    """A name as text that can be written down: header bytes that are not UTF-8 (which mitmproxy
    hands on as surrogates) and lone surrogates of a body become `?`."""
    return name.encode("utf-8", "replace").decode("utf-8") if name else None


def derived(opening: str) -> str:
    """A session's name where nothing names one, from the text of its first user message."""
    digest = hashlib.sha256(opening.encode("utf-8", "surrogatepass")).hexdigest()
    return f"conversation-{digest[:12]}"


def session_of(identity: Identity, request: Request) -> str:
    """The session that an exchange is counted to: the one that is named, else a derived one."""
    return identity.session or derived(request.opening)


def shelf(identity: Identity, request: Request) -> str:
    """A key for what is remembered of one session and agent."""
    return f"{session_of(identity, request)}\0{identity.agent or ''}"
