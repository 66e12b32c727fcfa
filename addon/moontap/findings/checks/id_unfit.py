"""Ids with characters, or of a length, that strict consumers of the client's protocol refuse."""

import re
from collections.abc import Iterable, Iterator

from moontap.findings.check import Check
from moontap.findings.naming import is_empty, named
from moontap.findings.turn import Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity
from moontap.wire import jsontext
from moontap.wire.types import Protocol

_MESSAGES = re.compile(r"[a-zA-Z0-9_-]+")
_CHAT_LENGTH = 40


def look(turn: Turn) -> Iterator[Found]:
    """Once a conversation for the characters and once for the length; once more if refused."""
    refused = None
    for where, id_ in _ids(turn):
        if why := _unfit(turn.protocol, id_):
            refused = _is_refusal(turn) if refused is None else refused
            end = " The API refused it." if refused else ""
            yield Found(
                f"The id {named(id_)} {_WHY[why]}.{end}",
                about=why,
                evidence=where,
                severity=Severity.ERROR if refused else None,
            )


_WHY = {
    "characters": "has characters other than letters, digits, `_` and `-`, which Anthropic's API "
    "does not take",
    "length": f"is longer than {_CHAT_LENGTH} characters, which OpenAI's API does not take",
}


def _unfit(protocol: Protocol, id_: str | None) -> str | None:
    if id_ is None or is_empty(id_):
        return None
    if protocol is Protocol.ANTHROPIC:
        return None if _MESSAGES.fullmatch(id_) else "characters"
    return "length" if len(id_) > _CHAT_LENGTH else None


def _ids(turn: Turn) -> Iterable[tuple[Evidence, str | None]]:
    """New ids, and where they stand; all of a request that was refused."""
    if turn.sent:
        refused = turn.got and turn.got.status == 400
        start = 0 if refused else turn.sent.new
        for position, message in enumerate(turn.sent.request.messages[start:], start):
            for call in message.calls:
                yield Evidence(message=position, block=call.block, ids=(call.id,)), call.id
    for new in turn.got.calls if turn.got else ():
        yield Evidence(choice=new.choice, index=new.index, ids=(new.id,)), new.id


def _is_refusal(turn: Turn) -> bool:
    """Whether the response is an error about the form of an id."""
    got = turn.got
    if got is None or got.status != 400 or got.reply.error is None:
        return False
    text = jsontext.encode(got.reply.error)
    return bool(_AN_ID.search(text)) and any(words in text for words in _FORM)


_AN_ID = re.compile(r"[._]id\b")
_FORM = ("should match pattern", "maximum length", "string too long", "string_above_max_length")

CHECK = Check(
    code="id-unfit",
    needs=Part(0),
    severity=Severity.INFO,
    party=Party.API,
    title="An id that a strict API would not take",
    explained=(
        "Anthropic's API takes ids of letters, digits, `_` and `-` only (`^[a-zA-Z0-9_-]+$`); "
        "OpenAI's takes at most 40 characters in Chat Completions and 64 in Responses. Kimi's own "
        "API is more generous: `get_weather:0` is fine there, also on Messages, which is why this "
        "is no more than `info`.\n\n"
        "It matters when the conversation goes on elsewhere: a client that switches providers, or "
        "a gateway with a fallback, sends the old ids along and gets a 400 such as `String should "
        "match pattern`. Then it is an `error` here."
    ),
    example='{"type": "tool_use", "id": "get_weather:0", "name": "get_weather", "input": {}}',
    remedy=(
        "Nothing, as long as the conversation stays with this API; else `moontap_rewrite=all` "
        "with `moontap_id_style=opaque` gives ids that every API takes."
    ),
    look=look,
)
