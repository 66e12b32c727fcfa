"""The page about findings. Checks and the corpus in, Markdown out; the same for the same."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from moontap.findings.check import Check
from moontap.findings.types import Part, Party
from scripts.findings_lib.corpus import Corpus

BEGIN = "<!-- From here on scripts/findings-docs writes. -->"

# The beginning of a code, the longest that fits, and the chapter that it belongs to.
_CHAPTERS = {
    "Ids": ("id",),
    "Calls and their results": ("call-unanswered", "pair", "result"),
    "Messages": ("calls", "empty", "message", "reasoning", "legacy", "tool-choice"),
    "What the model calls": ("arguments", "call", "markup", "other", "stop", "tool"),
    "Replies on their way": ("encoding", "reply", "stream"),
    "The same again": ("no", "request"),
    "Refusals": ("api",),
    "More": ("",),
}
_PARTS = {
    Part.HISTORY: "a request's messages",
    Part.TOOLS: "what a request declares and asks for",
    Part.REPLY: "a reply",
    Part.EVENTS: "a streamed reply",
    Part.ANSWER: "a response's status and headers",
    Part.TIMES: "times",
    Part.TURNS: "several turns of a conversation",
}
_PARTIES = {
    Party.API: "model or API",
    Party.CLIENT: "client",
    Party.SDK_RETRY: "SDK",
    Party.NETWORK: "network",
    Party.TOOL: "tool",
}


def page(head: str, checks: Sequence[Check], corpus: Corpus) -> str:
    """The whole page. head: what a person wrote, up to BEGIN."""
    parts = [head.partition(BEGIN)[0] + BEGIN, *_overview(checks)]
    for chapter, own in _chaptered(checks):
        parts.append(f"## {chapter}")
        parts += chain.from_iterable(_section(check, corpus) for check in own)
    return "\n\n".join(parts) + "\n"


def _chaptered(checks: Sequence[Check]) -> Iterator[tuple[str, list[Check]]]:
    for chapter in _CHAPTERS:
        if own := [check for check in checks if _chapter(check.code) == chapter]:
            yield chapter, own


def _chapter(code: str) -> str:
    fitting = [
        (len(start), chapter)
        for chapter, starts in _CHAPTERS.items()
        for start in starts
        if not start or code == start or code.startswith(f"{start}-")
    ]
    return max(fitting)[1]


def _overview(checks: Sequence[Check]) -> Iterator[str]:
    rows = [
        f"| [`{check.code}`](#{check.code}) | {check.title} | {check.severity} | "
        f"{_PARTIES[check.party]} |"
        for _, own in _chaptered(checks)
        for check in own
    ]
    yield "\n".join(["| code | what | severity | likely party |", "|---|---|---|---|", *rows])


def _section(check: Check, corpus: Corpus) -> Iterator[str]:
    yield f"### {check.code}"
    parts = " and ".join(word for part, word in _PARTS.items() if part in check.needs)
    needs = f" Needs {parts}." if parts else ""
    yield (
        f"**{check.title}.** Severity: {check.severity}; most likely: {_PARTIES[check.party]}."
        f"{needs}"
    )
    if check.explained:
        yield check.explained.strip()
    if check.example:
        yield f"```\n{check.example.strip()}\n```"
    if check.remedy:
        yield f"**What to do.** {check.remedy.strip()}"
    yield " ".join(_seen(check, corpus))


def _seen(check: Check, corpus: Corpus) -> Iterable[str]:
    if best := corpus.best(check.code):
        name, one = best
        yield f"A flow that raises it: {_flow(name)}, in exchange {one.exchange}"
        yield f"(in a checkout: `moontap lint flows/{name}.flow`)."
    if near := corpus.near.get(check.code):
        yield f"A near miss: {_flow(near[0])}."
    test = f"tests/findings/checks/test_{check.look.__module__.rpartition('.')[2]}.py"
    yield f"[More cases](../{test})."


def _flow(name: str) -> str:
    return f"[{name}](../flows/{name}.yaml)"
