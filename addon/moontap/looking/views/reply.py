"""What came back, for a person: how it ended, what it said, each call with both its ids.

A `ShownReply` in, a page of text out. Pure.

The names on the page, in this order, each only where there is something to say: `reply` (model,
streamed or whole, how it ended), `exchange` (its number), `trouble`, `stop`, `calls` (their tools),
`guard`, `findings` (what went wrong, what to do), `findings of the request` (by name only),
`note`, `error`, `choice N` (where there are several; in it `stop`), `thinking`, `text`; then for
each call `call` (its tool) and below it `id`, `upstream id`, `choice`, `result`, `note` and
`arguments`; `body`, where nothing could be read; last `usage`, `message id`, `request id`. Texts
begin with `|`, remarks with `#`.
"""

from collections import Counter
from collections.abc import Iterator

from moontap.looking.views import jsonlines
from moontap.looking.views.found import put_findings
from moontap.looking.views.page import FOLD, Page
from moontap.looking.views.shown import ShownReply
from moontap.looking.views.usage import usage_words
from moontap.looking.views.words import named, one_line
from moontap.report.text import many
from moontap.wire import jsontext
from moontap.wire.types import Choice, ReplyCall

_NAME = 100


def reply_page(shown: ShownReply, fold: int | None = FOLD) -> str:
    """The page. fold: characters of a text or argument that are shown; None shows all."""
    page = Page(fold)
    _head(page, shown)
    for note in _notes(shown):
        page.prose("note", note)
    if shown.reply.error is not None:
        page.json("error", jsontext.encode(shown.reply.error))
    choices = sorted(shown.reply.choices.items())
    several = len(choices) > 1
    for number, choice in page.some(choices, "choices"):
        if several:
            page.line(f"choice {number}:")
            with page.under():
                if choice.stop_reason is not None:
                    page.field("stop", choice.stop_reason)
                _said(page, choice)
        else:
            _said(page, choice)
    before: set[str | None] = set()
    told = 0  # calls that `before` knows of
    for number in page.some(range(len(shown.reply.calls)), "calls"):
        before.update(_upstream(shown, one) for one in range(told, number))
        told = number
        _call(page, shown, number, before, several)
    if not _says_anything(shown):
        _body(page, shown)
    _foot(page, shown)
    return str(page)


def _head(page: Page, shown: ShownReply) -> None:
    reply = shown.reply
    about = [one_line(reply.model or "", _NAME) or "(no model)"]
    about.append("streamed" if shown.streamed else "whole")
    if shown.status != 200:
        about.append(f"status {shown.status}")
    if shown.live:
        about.append("still coming")
    elif shown.cut or _lacks_end(shown):
        about.append("broke off")
    elif not shown.body.strip():
        about.append("empty")
    if shown.seconds is not None:
        about.append(f"{shown.seconds:.2f} s")
    page.field("reply", ", ".join(about))
    if shown.exchange is not None:
        page.field("exchange", shown.exchange)
    if shown.trouble:
        page.prose("trouble", shown.trouble)
    stops = [choice.stop_reason for choice in reply.choices.values()]
    if len(stops) == 1 and stops[0] is not None:
        page.field("stop", stops[0])
    if reply.calls:
        page.prose("calls", ", ".join(_tools(shown)))
    if shown.blocked:
        page.prose("guard", f"moontap answered itself, upstream was not asked: {shown.blocked}")
    put_findings(page, shown.findings, of_request=False)


def _foot(page: Page, shown: ShownReply) -> None:
    """What is looked up now and then; above it would push the calls out of a small window."""
    reply = shown.reply
    if reply.usage and (words := usage_words(reply.usage)):
        page.field("usage", words)
    if reply.message_id is not None:
        page.field("message id", reply.message_id)
    if shown.request_id:
        page.field("request id", shown.request_id)


def _tools(shown: ShownReply) -> Iterator[str]:
    """The tools that are called, and how often; what is broken about it is seen here first."""
    said: Counter[str] = Counter()
    for call in shown.reply.calls:
        text = call.arguments
        broken = text.strip() and not (shown.live and not call.ended) and jsonlines.fault(text)
        tool = one_line(call.name, _NAME) or "(no tool name)"
        said[f"{tool} (broken arguments)" if broken else tool] += 1
    yield from (f"{tool} ×{count}" if count > 1 else tool for tool, count in said.items())


def _lacks_end(shown: ShownReply) -> bool:
    """Whether a stream has no end though nobody says that it broke off, as in a file that was
    recorded without moontap."""
    reply = shown.reply
    ended = reply.complete or reply.error or not shown.body.strip()
    return shown.streamed and not ended and 200 <= shown.status < 300


def _notes(shown: ShownReply) -> Iterator[str]:
    reply = shown.reply
    if reply.restarts:
        times = "once" if reply.restarts == 1 else f"{reply.restarts:,} times"
        yield f"the reply began anew {times}"
    for kind, more in Counter(reply.doubled).items():
        yield f"{kind} came {'once more' if more == 1 else f'{more:,} more times'}"
    if reply.unreadable and shown.streamed:
        yield f"{many(reply.unreadable, 'event')} could not be read: no JSON objects"


def _said(page: Page, choice: Choice) -> None:
    if choice.thinking:
        page.text("thinking", choice.thinking, share=3)
    if choice.text:
        page.text("text", choice.text)


def _call(
    page: Page, shown: ShownReply, number: int, before: set[str | None], several: bool
) -> None:
    call = shown.reply.calls[number]
    upstream = _upstream(shown, number)
    page.field("call", one_line(call.name, _NAME) or "(no tool name)")
    with page.under():
        page.field("id", named(call.id))
        page.field("upstream id", named(upstream), *_of_id(call, upstream, shown, before))
        if several:
            page.field("choice", call.choice)
        result = shown.results[number] if number < len(shown.results) else None
        if result is not None:
            page.field("result", result)
        if call.others:
            page.prose("note", f"other ids came for it later: {', '.join(map(named, call.others))}")
        _arguments(page, shown, call)


def _upstream(shown: ShownReply, number: int) -> str | None:
    """The id of a call as the server sent it."""
    known = number < len(shown.upstream_ids)
    return shown.upstream_ids[number] if known else shown.reply.calls[number].id


def _of_id(
    call: ReplyCall, upstream: str | None, shown: ShownReply, before: set[str | None]
) -> Iterator[str]:
    yield "the same" if upstream == call.id else "rewritten"
    if upstream in shown.used:
        yield "used before in this conversation"
    if upstream and upstream in before:
        yield "used before in this reply"


def _arguments(page: Page, shown: ShownReply, call: ReplyCall) -> None:
    text = call.arguments
    ended = call.ended or shown.reply.complete
    coming = "" if ended else "still coming" if shown.live else "the reply ended here"
    if not text.strip():
        page.field("arguments", "(empty)", coming)
    elif coming and jsonlines.fault(text):
        page.text("arguments", text, coming if shown.live else f"not valid JSON: {coming}")
    else:
        page.json("arguments", text, coming)


def _says_anything(shown: ShownReply) -> bool:
    reply = shown.reply
    said = any(choice.text or choice.thinking for choice in reply.choices.values())
    # A stream that says nothing has its events, in a view of their own.
    return bool(said or reply.calls or reply.error is not None) or (
        shown.streamed and reply.message_id is not None
    )


def _body(page: Page, shown: ShownReply) -> None:
    """The body itself, where nothing could be read."""
    if not shown.body.strip():
        page.field("body", "(nothing yet)" if shown.live else "(empty)")
        return
    text = shown.body.decode("utf-8", "backslashreplace")
    if shown.streamed:
        page.text("body", text, "no event of it could be read")
    elif shown.reply.unreadable:
        page.text("body", text, f"not read: {jsonlines.fault(text) or 'no JSON object'}")
    else:
        page.json("body", text)
