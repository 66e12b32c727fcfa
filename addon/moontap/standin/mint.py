"""Ids, minted in the three ways that were seen in the wild.

In: how to mint, the calls of a reply, the number of calls in the history, a nonce. Out: one id a
call. It never draws on chance: the nonce carries whatever must differ between replies.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from enum import StrEnum

from moontap.standin.seen import Protocol


class Mint(StrEnum):
    """How tool-call ids come about."""

    RESPONSE = "response"  # the place in this response: `Bash_0` again and again
    HISTORY = "history"  # the calls visible in the request, and on: repeats after a loss
    UNIQUE = "unique"  # never twice


class IdForm(StrEnum):
    """What stands between name and number."""

    UNDERSCORE = "underscore"
    COLON = "colon"

    @property
    def mark(self) -> str:
        return "_" if self is IdForm.UNDERSCORE else ":"


def default_form(protocol: Protocol) -> IdForm:
    """`pwd_0` on Messages, `get_weather:0` on Chat Completions."""
    return IdForm.UNDERSCORE if protocol is Protocol.MESSAGES else IdForm.COLON


def make_uuid(*parts: object) -> str:
    """A UUID-shaped text, the same for the same parts."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return str(uuid.UUID(bytes=digest[:16], version=4))


def call_ids(
    how: Mint,
    names: Sequence[str],
    *,
    protocol: Protocol,
    form: IdForm | None,
    in_history: int,
    nonce: str,
    choice: int = 0,
) -> list[str]:
    """One id a name, in order. `in_history`: the tool calls the request shows."""
    if how is Mint.UNIQUE:
        uuids = [make_uuid(nonce, "call", choice, index) for index in range(len(names))]
        if protocol is Protocol.CHAT:
            return [f"chatcmpl-tool-{u}" for u in uuids]
        return [f"toolu_{u.replace('-', '')[:24]}" for u in uuids]
    mark = (form or default_form(protocol)).mark
    first = in_history if how is Mint.HISTORY else 0
    return [f"{name}{mark}{index}" for index, name in enumerate(names, first)]
