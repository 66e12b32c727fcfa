"""Markup of the model's own prompt format in the text that it says."""

import re
from collections.abc import Iterator

from moontap.findings.check import Check
from moontap.findings.excerpts import excerpt
from moontap.findings.turn import Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity

_CALL = re.compile(
    r"<\|tool_calls?_section_(?:begin|end)\|>"
    r"|<\|tool_call_(?:begin|end|argument_begin)\|>"
    r"|<\|(?:open|close)\|>call"
)
_ANY = re.compile(
    _CALL.pattern + r"|<\|(?:open|close)\|>\w+|<\|im_(?:system|user|assistant|middle|end)\|>"
)
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)

# A body without any of these holds no mark; most are not read any further.
_HINTS = tuple(
    form
    for less, more in ((b"<", b">"), (rb"\u003c", rb"\u003e"), (rb"\u003C", rb"\u003E"))
    for form in (less + b"|", b"|" + more)
)


def look(turn: Turn) -> Iterator[Found]:
    """The text of the reply. What stands in code, or was in the request already, is a quotation."""
    got = turn.got
    if got is None or got.is_refusal or not _may_hold(got.body):
        return
    with_calls = {call.choice for call in got.calls}
    for choice, text in got.text.items():
        said = _CODE.sub(lambda code: " " * len(code[0]), text) if "`" in text else text
        first = _CALL.search(said) or _ANY.search(said)
        if first is None:
            continue
        lost = _CALL.search(said) is not None and choice not in with_calls
        quoted = _was_sent(turn, first[0])
        then = ", and there is no call in it" if lost else ""
        yield Found(
            f"The text of the reply holds `{first[0]}`, which is markup of the model{then}.",
            about=(turn.number, choice),
            evidence=Evidence(
                choice=choice,
                excerpt=excerpt(text, first.start()),
                facts={"markup": first[0], "calls": sum(c.choice == choice for c in got.calls)},
            ),
            severity=Severity.INFO if quoted else Severity.ERROR if lost else Severity.WARNING,
        )


def _may_hold(body: bytes) -> bool:
    if b"|" not in body:  # one byte is found many times as fast as two
        return False
    # `<` and `|` can also be the end of one piece of text and the beginning of the next one.
    return any(hint in body for hint in _HINTS) or (b'<"' in body and b'"|' in body)


def _was_sent(turn: Turn, mark: str) -> bool:
    """Whether somebody else said it: a person who asks about it, a file that was read."""
    if turn.sent is None:
        return False
    raw = mark.encode()
    return any(
        mark in message.text or any(raw in result.content for result in message.results)
        for message in turn.sent.request.messages
        if message.role != "assistant"
    )


CHECK = Check(
    code="markup-leaked",
    needs=Part.REPLY,
    severity=Severity.WARNING,
    party=Party.API,
    title="The model's markup in its text",
    explained="""\
Models write a tool call as marked-up text, `<|tool_call_begin|>functions.Bash:0…` (K2) or
`<|open|>call …` (K3), and the server turns it into a tool call. Here the markup came through as
text: the server did not recognise it, because the model wrote it in an odd way, in its thinking,
or with an id of an unexpected shape.

Where no call came with it, the call is lost: the client sees a text and ends the turn, so the agent
stops in the middle of its work. The text stays in the history, and the model is likely to write
more of the same. moontap shows this and repairs nothing. Code, and what stands in the request
already, counts as a quotation; results of tools are never looked at.""",
    example="""\
data: {"choices": [{"delta": {"content": "<|tool_calls_section_begin|><|tool_call_begin|>"}}]}
data: {"choices": [{"delta": {"content": "functions.Bash:0<|tool_call_argument_begin|>{}"}}]}
data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}""",
    remedy="Take that reply out of the history and send the request again; if ids of K2 were "
    "rewritten on the way, use `moontap_id_style=native`.",
    look=look,
)
