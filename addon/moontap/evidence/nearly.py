"""A request body whose history cannot be read: what is wrong with it, in a sentence.

A decoded JSON object in, words out. Pure.
"""

from collections.abc import Mapping
from typing import Any

from moontap.wire.near import near

_WANTED = 'a list such as [{"role": "user", "content": "…"}]'
# A request has one of these beside its messages; many other things have a `messages`.
_BESIDE = ("model", "max_tokens", "tools", "stream", "temperature", "system")
_KINDS = {str: "a string", dict: "an object", bool: "a boolean", type(None): "null"}


def wrong_request(value: Mapping[str, Any]) -> str | None:
    """What is wrong, behind the input's name; None where it is nothing like a request."""
    if "messages" in value:
        if len(value) > 1 and not any(name in value for name in _BESIDE):
            return None
        kind = _KINDS.get(type(value["messages"]), "a number")
        return f"is a request body, but its `messages` is {kind}; it must be {_WANTED}"
    if not any(name in value for name in _BESIDE):
        return None
    for name, one in value.items():
        if isinstance(one, list) and near(name, ("messages",)):
            return f"is a request body with `{name}`, where `messages` is meant"
    return None
