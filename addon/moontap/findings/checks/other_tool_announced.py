"""The text announces one tool, and another one is called. Weak: told as `info` only."""

import re
from collections.abc import Iterator

from moontap.findings.check import Check
from moontap.findings.declared import declared
from moontap.findings.excerpts import excerpt
from moontap.findings.naming import tool_named
from moontap.findings.turn import Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity

_ANNOUNCED = re.compile(
    r"\b(?:I'll|I will|I'm going to|I am going to|Let me|Now I|Next,? I)\b[^.!?\n]{0,60}?"
    r"\b(?:use|call|run|invoke)\s+(?:the\s+)?[`'\"*]{0,2}(\w[\w.-]*)[`'\"*]{0,2}(?:\s+(?:tool|function))?"
)
_HEDGED = re.compile(
    r"\b(?:not|instead|rather|cannot|unavailable|then|after|before|if|later|first)\b|n't\b",
    re.IGNORECASE,
)
_OPENERS = (b"I'll", b"I will", b"I'm going", b"I am going", b"Let me", b"Now I", b"Next")
_SHORTEST = 4
_LARGE = 16 * 1024  # bytes of a body; a larger one is not worth a guess


def look(turn: Turn) -> Iterator[Found]:
    """Where the text names just one declared tool, as the next step and without any if or but, and
    all calls are of one other tool. A text is read only if the body is small and holds that name
    and the beginning of such a sentence in one piece, so in streams most are missed."""
    got = turn.got
    if turn.sent is None or got is None or not got.calls or not got.reply.complete:
        return
    if len(got.body) > _LARGE or not any(opener in got.body for opener in _OPENERS):
        return
    called = {call.name for call in got.calls}
    names = declared(turn.sent.request.asked).names
    if len(called) != 1 or not called <= names:
        return
    others = [name for name in names - called if len(name) >= _SHORTEST]
    if not any(name.encode() in got.body for name in others):
        return
    (tool,) = called
    for choice, text in got.text.items():
        announced = {found[1].rstrip(".") for found in _ANNOUNCED.finditer(text)}
        if len(announced) != 1 or not announced <= set(others) or tool in text:
            continue
        if _HEDGED.search(text) or sum(name in text for name in others) != 1:
            continue
        (name,) = announced
        call = next((call for call in got.calls if call.choice == choice), None)
        if call is None:
            continue
        yield Found(
            f"The text announces {tool_named(name)}, and {tool_named(tool)} is called.",
            about=(name, tool),
            evidence=Evidence(
                choice=choice,
                index=call.index,
                ids=(call.id,),
                excerpt=excerpt(text, text.find(name)),
                facts={"announced": name, "tool": tool},
            ),
        )


CHECK = Check(
    code="other-tool-announced",
    needs=Part.TOOLS | Part.REPLY,
    severity=Severity.INFO,
    party=Party.API,
    title="One tool announced, another one called",
    explained="""\
The text of a reply says that the model is going to use one tool, and its call is of another one.
That can be a change of mind. It can also be the first sign that the model has lost track: tools
with names much alike, a long list of tools, or a history in which calls and results no longer match
(`pair-dropped-by-client`, `id-reused`).

It is a guess from words, so it is told as `info` only, and only where the text is plain.""",
    example="""\
{"type": "text", "text": "Let me use the read_file tool."},
{"type": "tool_use", "id": "write_file_0", "name": "write_file", "input": {…}}""",
    remedy="Look at the calls before it; give tools names and descriptions that are easy to tell "
    "apart.",
    look=look,
)
