"""A tool result in a form that the API refuses, or that says nothing to the model."""

from collections.abc import Iterator
from enum import StrEnum, auto

from moontap.findings.check import Check
from moontap.findings.excerpts import excerpt
from moontap.findings.turn import Turn
from moontap.findings.types import Evidence, Found, Part, Party, Severity
from moontap.report.text import short
from moontap.wire import jsontext
from moontap.wire.types import Result


class Kind(StrEnum):
    """What is wrong with a result's content."""

    ABSENT = auto()
    EMPTY = auto()
    EMPTY_TEXT = auto()
    REFERENCE = auto()


def look(turn: Turn) -> Iterator[Found]:
    """The results of the new messages; once for each kind in a conversation, a client does it
    every time."""
    for position, message in turn.sent.fresh if turn.sent else ():
        for result in message.results:
            if kind := _kind(result):
                yield Found(
                    f"The result of {short(result.id, 48) or 'a call'} in message {position} "
                    f"{_SAYS[kind]}.",
                    about=kind,
                    evidence=Evidence(
                        message=position,
                        block=result.block,
                        ids=(result.id,),
                        excerpt=excerpt(result.content),
                        facts={"kind": kind.value},
                    ),
                    severity=Severity.INFO if kind is Kind.EMPTY else None,
                    party=Party.TOOL if kind is Kind.EMPTY else None,
                )


_SAYS = {
    Kind.ABSENT: "has no content",
    Kind.EMPTY: "is empty",
    Kind.EMPTY_TEXT: "holds an empty text block, which Kimi refuses as `text content is empty`",
    Kind.REFERENCE: "is a `tool_reference`, which only Anthropic's own tool search understands",
}


def _kind(result: Result) -> Kind | None:
    content = result.content.strip()
    if content in (b"", b"null"):
        return Kind.ABSENT
    if content in (b'""', b"[]"):
        return Kind.EMPTY
    # Most results are texts; of the lists, most hold neither.
    if content[:1] != b"[" or not (b'"tool_reference"' in content or b'""' in content):
        return None
    try:
        blocks = jsontext.loads(content)
    except ValueError:
        return None
    kinds = [block.get("type") for block in blocks if isinstance(block, dict)]
    if "tool_reference" in kinds:
        return Kind.REFERENCE
    texts = (block.get("text") for block in blocks if isinstance(block, dict))
    return Kind.EMPTY_TEXT if "" in texts else None


CHECK = Check(
    code="result-unfit",
    needs=Part.HISTORY,
    severity=Severity.WARNING,
    party=Party.CLIENT,
    title="A tool result that the API cannot use",
    explained="""\
A result has no content, holds an empty text block, or a block of a type that the endpoint does not
know, such as `tool_reference`: Claude Code sends that where its tool search is on, and Anthropic's
own API alone resolves it. Kimi refuses an empty text block with `text content is empty` (seen in
2026-09, github.com/BerriAI/litellm/issues/42186); absent content is refused by some endpoints and
read as nothing by others. A refusal comes back with every later request, for the result stays in
the history.

A result that is simply empty (`""`, `[]`) is taken. It is told as `info`, because the model cannot
tell "done, no output" from "nothing came", and tends to call the tool again.""",
    example="""\
{"type": "tool_result", "tool_use_id": "ToolSearch_0",
 "content": [{"type": "tool_reference", "tool_name": "WebFetch"}]}
{"type": "tool_result", "tool_use_id": "Bash_1"}""",
    remedy="Put a short text into every result, such as `(no output)`; with Claude Code turn tool "
    "search off with `ENABLE_TOOL_SEARCH=false`.",
    look=look,
)
