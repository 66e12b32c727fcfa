"""What was sent, for a person: first what is new, then what was said before, each result under its
call.

A `ShownRequest` in, a page of text out. Pure.

The names on the page, in this order, most of them only where there is something to say: `request`
(model, streamed or whole, its size), `session`, `agent`, `exchange` and `conversation` (numbers),
`findings` (what went wrong, what to do), `findings of the reply` (by name only), `tap`, `guard`,
`history` (what of it does not fit together); `new` and in it for each `message N` (its role)
`thinking`, `text`, the types of other blocks, and `call` (its tool) with `id`, `arguments` and
`result` below it; `before`; `tools`, the request's other members by their own names, `system`.
Messages count from 0, as findings and the API count them. Texts begin with `|`, remarks with `#`.
"""

from collections.abc import Sequence

import msgspec

from moontap.findings.types import Severity
from moontap.looking.views.found import put_findings
from moontap.looking.views.history import History
from moontap.looking.views.marks import Marks, marks_of
from moontap.looking.views.page import FOLD, Page
from moontap.looking.views.shown import ShownRequest
from moontap.looking.views.tools import put_settings, put_system, put_tools, tools_of
from moontap.looking.views.words import filled, one_line
from moontap.report.text import many
from moontap.wire import jsontext
from moontap.wire.types import Message

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_FEW = 10  # messages
_RAWS = msgspec.json.Decoder(list[msgspec.Raw])


def request_page(shown: ShownRequest, fold: int | None = FOLD) -> str:
    """The page. fold: characters of a text, argument or result that are shown; None shows all."""
    page = Page(fold)
    messages = shown.request.messages
    body = {key: bytes(raw) for key, raw in (jsontext.decode(_OBJECT, shown.body) or {}).items()}
    raws = [bytes(raw) for raw in jsontext.decode(_RAWS, body.get("messages", b"")) or ()]
    raws += [b""] * (len(messages) - len(raws))
    marks = marks_of(messages)
    tools = tools_of(body)
    _head(page, shown, len(tools))
    _history(page, marks, shown)
    history = History(page, shown.wire.protocol, messages, raws, marks)
    start, note = _new(messages, shown.new)
    page.line()
    if start == len(messages):
        page.field(
            "new", "nothing: the conversation had got this far before" if start else "nothing"
        )
    else:
        page.field("new", _range(start, len(messages)), note)
    with page.under():
        for position in page.some(range(start, len(messages)), "messages"):
            history.detail(position, start)
    if start:
        page.line()
        note = "in short, results behind their calls" if fold is not None else ""
        page.field("before", _range(0, start), note)
    with page.under():
        for position in page.some(range(start), "messages"):
            if fold is None:
                history.detail(position, 0)
            else:
                history.brief(position)
    page.line()
    put_tools(page, tools)
    put_settings(page, body)
    put_system(page, body.get("system", b""))
    return str(page)


def _history(page: Page, marks: Marks, shown: ShownRequest) -> None:
    """Whether it fits together. A client that drops a call with its result leaves no gap."""
    lines = list(filled(str(marks).split(", "), page.room - len("history: ")))
    bad = any(one.of_request and one.severity != Severity.INFO for one in shown.findings)
    page.field("history", lines[0], "but see findings" if bad and not marks else "")
    for line in lines[1:]:
        page.line(f"  {line}")


def _head(page: Page, shown: ShownRequest, tools: int) -> None:
    """What the request is, whose it is, what was found in it and what the tap did with it."""
    request = shown.request
    size = f"{shown.size:,} bytes"
    if len(shown.body) > 2 * shown.size:
        size += f", {len(shown.body):,} unpacked"
    about = (
        one_line(request.model or "", 64) or "(no model)",
        "streamed" if request.stream else "whole",
        many(len(request.messages), "message"),
        many(tools, "tool"),
        size,
    )
    page.field("request", ", ".join(about))
    if shown.session:
        page.field("session", one_line(shown.session, 100))
    if shown.agent:
        page.field("agent", one_line(shown.agent, 100))
    for name, number in (("exchange", shown.exchange), ("conversation", shown.conversation)):
        if number is not None:
            page.field(name, number)
    put_findings(page, shown.findings, of_request=True)
    if shown.healed:
        page.field("tap", f"made ids of the history unique ({many(shown.healed, 'place')})")
    if shown.reminded:
        page.field("guard", "added a reminder for the model, which is not shown here")
    if shown.blocked:
        page.field("guard", f"answered this itself, upstream was not asked: {shown.blocked}")


def _new(messages: Sequence[Message], known: int | None) -> tuple[int, str]:
    """The first message that is new, and why that one.

    A reply counts as new with its results: the client brings both. Where the tap has not seen the
    conversation before, nothing tells what of it is new; the last reply is where people look. A
    short history is shown whole then: it may be what a compaction has left.
    """
    last = max((at for at, one in enumerate(messages) if one.role == "assistant"), default=0)
    if known is None:
        return last, ""
    if known == 0 and last and len(messages) > _FEW:
        return last, "the tap saw none of it before"
    start = min(known, len(messages))
    replied = 0 < start < len(messages) and messages[start - 1].role == "assistant"
    return (start - 1 if replied and messages[start].role != "assistant" else start), ""


def _range(start: int, end: int) -> str:
    return f"messages {start} to {end - 1}" if end - start > 1 else f"message {start}"
