"""Why a server could not be asked, and what helps.

An answer in, one line for a person out. Pure; what the server says is masked whole (a cut one would
show half a key), then goes through `plain` and is cut.
"""

import json
from collections.abc import Callable
from typing import Any

from moontap.probe.ask import Answer
from moontap.probe.dialect import MOST_TOKENS, Said
from moontap.report.text import short

type Mask = Callable[[str], str]

_SHOWN = 160


class Refusal(Exception):
    """It could not be asked; the text has the cause and the remedy.

    final: nor could the rest, so no further request is worth its while.
    """

    def __init__(self, text: str, *, final: bool = False) -> None:
        super().__init__(text)
        self.final = final


_REMEDIES = {
    400: "it does not take such a request: is --model one that calls tools?",
    401: "it does not take the key. Keys of api.moonshot.cn and api.moonshot.ai are not "
    "interchangeable: does MOONSHOT_API_KEY go with --base-url? (Loopback gets a made-up key)",
    403: "it does not let this key or this program in; Kimi Code takes known agents only: probe "
    "https://api.moonshot.cn",
    404: "nothing is there: check --base-url and --model, or --protocol where it speaks only one",
    429: "too many requests, or no balance: wait, or top up, and try again",
}
_REMEDY = "the request was not taken: check --base-url and --model"
_SERVERS = "the server is in trouble: try again later"
_FINAL = (401, 403)


def refused(answer: Answer, mask: Mask) -> Refusal:
    """For a status other than 2xx. mask: takes the secrets out of what the server says."""
    status = answer.status
    remedy = _SERVERS if status >= 500 else _REMEDIES.get(status, _REMEDY)
    message = _message(answer.body)
    said = f' "{short(mask(message), _SHOWN)}"' if message else ""
    return Refusal(f"{status}{said}: {remedy}", final=status in _FINAL)


def without_call(answer: Answer, said: Said, mask: Mask) -> Refusal | None:
    """For a 2xx that names no call, or not with an id; None where all is well."""
    reply = said.reply
    if reply.error is not None:
        message = _text_of(reply.error) or json.dumps(reply.error, ensure_ascii=False)
        return Refusal(f'an error in the reply, "{short(mask(message), _SHOWN)}": try again later')
    if not answer.body.strip() and not answer.cut:
        return Refusal("an empty reply: try again, or check --base-url")
    if answer.cut or (not reply.complete and (reply.message_id or reply.calls)):
        return Refusal("the reply broke off before its end: try again")
    if not reply.complete:
        return Refusal("a reply that is not of this protocol: check --base-url and --protocol")
    if not reply.calls:
        choice = reply.choices.get(0)
        if choice and choice.stop_reason in ("max_tokens", "length"):
            return Refusal(f"no tool call within {MOST_TOKENS:,} tokens: try again, or --model")
        text = short(mask(choice.text if choice else ""), _SHOWN)
        return Refusal(f'the model called no tool but said "{text}": try again, or another --model')
    if not all(said.ids):
        return Refusal("a tool call without an id: there is nothing to compare, nor to pair by")
    return None


def unreachable(origin: str, reason: str, behind_proxy: bool, mask: Mask) -> Refusal:
    """For an upstream that the tap got no answer from."""
    direct = "; HTTPS_PROXY is not used" if behind_proxy else ""
    text = f"no answer from {origin}, {short(mask(reason), _SHOWN)}: check --base-url{direct}"
    return Refusal(text, final=True)


def stalled(seconds: float) -> Refusal:
    """For one that did not end in time."""
    return Refusal(f"no end of the reply within {seconds:g} s: try again later", final=True)


def _message(body: bytes) -> str:
    """The message of an error object; "" for a page of HTML."""
    try:
        return _text_of(json.loads(body))
    except (ValueError, RecursionError):
        return ""


def _text_of(error: Any) -> str:
    while isinstance(error, dict):
        error = error.get("error", error.get("message"))
    return error if isinstance(error, str) else ""
