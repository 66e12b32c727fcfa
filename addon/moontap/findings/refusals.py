"""What the errors of these APIs mean: one table, by status and by words of their text.

The texts are those that Moonshot's endpoints, Kimi Code, Anthropic's and OpenAI's APIs and gateways
before them have been reported to send. A status and a text in, a row out. Pure.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from moontap.findings import places
from moontap.findings.places import Finder
from moontap.findings.turn import Got
from moontap.findings.types import Party, Severity


@dataclass(frozen=True, slots=True)
class Reason:
    """A row. code: for `facts.reason`. pattern: in the error's type and text; a group `id` names
    tool-call ids. statuses: where it holds; none: for every one. sentence: what it means, without
    its full stop; `{id}` in it stands for the ids. place: finds what it points at. by: who refused
    the request."""

    code: str
    sentence: str
    party: Party
    remedy: str
    pattern: re.Pattern[str] | None = None
    statuses: tuple[int, ...] = ()
    place: Finder | None = None
    severity: Severity = Severity.ERROR
    by: str = "The API"


@dataclass(frozen=True, slots=True)
class Error:
    """What an error says of itself. page: it is a page of HTML."""

    kind: str = ""
    text: str = ""
    page: bool = False


def error_of(got: Got) -> Error:
    """The error in a response, whatever its form."""
    if got.reply.error is not None:
        return _read(got.reply.error)
    body = got.body[:100_000].decode("utf-8", "replace").strip()
    if body[:200].lower().startswith(("<!doctype", "<html", "<head", "<?xml")):
        title = _TITLE.search(body)
        return Error(text=" ".join(title[1].split()) if title else "", page=True)
    return Error(text=body[:1000])


def reason_of(status: int, text: str) -> Reason:
    """The row for an error: by its text, else by its status."""
    return known(status, text) or next(
        (row for row in _BY_STATUS if status in row.statuses),
        _SERVERS if status >= 500 else _OTHER,
    )


def known(status: int, text: str) -> Reason | None:
    """The row whose words stand in a text."""
    for row in _BY_TEXT:
        fits = not row.statuses or status in row.statuses
        if fits and row.pattern and row.pattern.search(text):
            return row
    return None


def meanings() -> dict[str, str]:
    """What each code means, in the order of the tables."""
    found: dict[str, str] = {}
    for row in (*_BY_TEXT, *_BY_STATUS, _SERVERS, _OTHER):
        found.setdefault(row.code, row.sentence.replace(" ({id})", ""))
    return found


def ids_in(reason: Reason, text: str) -> tuple[str, ...]:
    """The tool-call ids that the text names. `""` where it names an empty one."""
    found = reason.pattern.search(text) if reason.pattern else None
    if found is None or "id" not in found.groupdict() or found["id"] is None:
        return ()
    return tuple(one.strip("`'\".") for one in re.split(r"[,\s]+", found["id"].strip()))


def _read(error: Any) -> Error:
    kind, text = "", ""
    for _ in range(4):  # gateways put errors into errors
        if not isinstance(error, dict):
            break
        kind = next((v for k in ("type", "code") if isinstance(v := error.get(k), str) and v), kind)
        inner = error.get("error", error.get("message", error.get("detail")))
        if inner is None:
            break
        error = inner
    if isinstance(error, str):
        text = error
    elif error:
        text = json.dumps(error, ensure_ascii=False)[:1000]
    return Error(kind, text)


_TITLE = re.compile(r"<title[^>]*>([^<]{1,200})", re.IGNORECASE)


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_UNIQUE = (
    "Make the ids unique: run with moontap_rewrite=all (moontap run does); a history that was "
    "saved with equal ids is healed on its way out."
)
_TRIM = (
    "Send the assistant message with its calls before their results; where the history is cut to "
    "save room, cut both or neither."
)
_ANSWER = "Send one result for every call, in the message right after it, also for one that failed."
_KEEP_REASONING = (
    "Send each assistant message back with the reasoning_content (or the thinking blocks) that it "
    "came with."
)
_WARNING = Severity.WARNING

_BY_TEXT = (
    # Before the others: both quote names that anybody has given.
    Reason(
        "guard",
        "the agent went round in circles, or its session had used up a limit; the API has not seen "
        "this request",
        Party.CLIENT,
        "See what it repeats (moontap explain tells), then say something new to the agent; "
        "docs/guard.md has the limits.",
        _words(r"\bblocked_(?:no_progress|limit): moontap stopped"),
        severity=_WARNING,
        by="moontap's guard",
    ),
    Reason(
        "replay",
        "this is not what the agent had sent when the session was recorded; no API was asked",
        Party.CLIENT,
        "Read what differs; what may differ, moontap replay takes as an option or from the rules.",
        _words(r"(?:^|: )moontap replay: "),
        by="moontap replay",
    ),
    Reason(
        "id-empty",
        "a tool result names no call: its id is empty",
        Party.CLIENT,
        "Send the call's own id with its result; where the model gave none, run with "
        "moontap_rewrite=all.",
        _words(r"tool_call_id(?:  +|\s*(?:''|\"\"|``)\s*)(?:is )?not found"),
        place=places.empty_id,
    ),
    Reason(
        "call-missing",
        "a tool result names a call ({id}) that stands in no message before it",
        Party.CLIENT,
        _TRIM,
        _words(
            r"tool_call_id\W{0,3}(?P<id>[^\s'\"`]+)\W{0,2} (?:is )?not found"
            r"|role '?tool'? must be a response to a prec+e+e?ding"
            r"|unexpected `?tool_use_id`? found in `?tool_result`? blocks"
        ),
        place=places.orphan,
    ),
    Reason(
        "id-duplicated",
        "the history holds two calls with one id ({id})",
        Party.API,
        _UNIQUE,
        _words(
            r"tool[ _]call[ _]id\W{0,3}(?P<id>[^\s'\"`]+)\W{0,2} is duplicated"
            r"|`?tool_use`? ids must be unique|duplicate[d]? tool[ _]call[ _]id"
        ),
        place=places.repeated_call,
    ),
    Reason(
        "result-missing",
        "a call ({id}) has no result in what follows it",
        Party.CLIENT,
        _ANSWER,
        _words(
            r"tool_call_ids? did not have response messages(?::\s*(?P<id>[^\s,]+(?:,\s*[^\s,]+)*))?"
            r"|tool_use`? ids were found without `?tool_result"
            r"|must be followed by tool messages responding to each"
        ),
        place=places.unanswered,
    ),
    Reason(
        "message-empty",
        "a message says nothing",
        Party.CLIENT,
        "Leave the empty message out, or say in it what happened; where a tool call was lost "
        "before it, that is what to mend.",
        _words(r"message\b.{0,80}\bmust not be empty|messages?\b.{0,80}\bnon-empty content"),
        place=places.empty_message,
    ),
    Reason(
        "text-empty",
        "a text block is empty",
        Party.CLIENT,
        "Leave empty text blocks out of the request.",
        _words(
            r"text content blocks must (?:be non-empty|contain non-whitespace)"
            r"|text content is empty"
        ),
        place=places.blank_text,
    ),
    Reason(
        "reasoning-missing",
        "an assistant message with calls came back without its reasoning, which this model needs",
        Party.CLIENT,
        _KEEP_REASONING,
        _words(
            r"reasoning_content (?:is missing|must be)|expected `?thinking`? or `?redacted_thinking"
        ),
        place=places.without_reasoning,
    ),
    Reason(
        "tool-choice",
        "this model refuses that tool_choice while it thinks",
        Party.CLIENT,
        "Set tool_choice to auto, or turn thinking off for this request.",
        _words(
            r"tool_choice\b.{0,60}\bincompatible with thinking|thinking may not be enabled when"
        ),
    ),
    Reason(
        "context-too-long",
        "the request is longer than the model's context",
        Party.CLIENT,
        "Compact the history, or take a model with a longer context.",
        _words(
            r"exceeded model token limit|prompt is too long|maximum context length"
            r"|context_length_exceeded|input length .{0,40}exceed"
        ),
    ),
    Reason(
        "content-filter",
        "the provider's filter did not let it through",
        Party.API,
        "Look at what was added last (often a tool's result) and leave it out or shorten it.",
        _words(r"high risk|content_filter|content filter"),
    ),
    Reason(
        "quota",
        "the account has no balance left, or its plan is used up",
        Party.CLIENT,
        "Top up the account or wait for the plan's next period; trying again does not help.",
        _words(
            r"exceeded_current_quota|insufficient[ _](?:balance|quota)|current quota"
            r"|account .{0,60}suspended|usage limit"
        ),
        statuses=(400, 402, 403, 429),
    ),
    Reason(
        "overloaded",
        "the server has too much to do",
        Party.API,
        "Wait and try again, with growing pauses.",
        _words(r"overloaded|try again later"),
        severity=_WARNING,
    ),
    Reason(
        "rate-limit",
        "more requests or tokens a minute than the account may send",
        Party.CLIENT,
        "Send fewer requests at once and wait as long as retry-after says.",
        _words(r"rate[ _]limit|max (?:request|organization|rpm|tpm)|too many requests|concurrency"),
        severity=_WARNING,
    ),
    Reason(
        "model-unknown",
        "there is no such model here, or the key may not use it",
        Party.CLIENT,
        "Check the model's name (ANTHROPIC_MODEL for Claude Code) and that it goes with this host.",
        _words(r"not found the model|model\b.{0,60}\b(?:not found|does not exist|not_found)"),
    ),
)

_BY_STATUS = (
    Reason(
        "key-refused",
        "the key was not taken",
        Party.CLIENT,
        "Check the key; those of api.moonshot.cn, api.moonshot.ai and api.kimi.com are not "
        "interchangeable.",
        statuses=(401,),
    ),
    Reason(
        "not-allowed",
        "the key may not do this, or the agent is not one that this service lets in",
        Party.CLIENT,
        "Check the key's rights; Kimi Code takes known agents only, by their User-Agent: use the "
        "Open Platform for others.",
        statuses=(403,),
    ),
    Reason(
        "not-there",
        "nothing answers at this address",
        Party.CLIENT,
        "Check the base URL: …/anthropic for Messages, …/v1 for Chat Completions.",
        statuses=(404, 405),
    ),
    Reason(
        "too-large",
        "the request has too many bytes",
        Party.CLIENT,
        "Compact the history, and leave pictures and long results out of it.",
        statuses=(413,),
    ),
    Reason(
        "rate-limit",
        "too many requests",
        Party.CLIENT,
        "Send fewer requests at once and wait as long as retry-after says.",
        statuses=(429,),
        severity=_WARNING,
    ),
    Reason(
        "gateway-timeout",
        "a gateway gave up waiting for the model",
        Party.API,
        "Ask with streaming, or for less at once; a request that is not streamed has 900 seconds.",
        statuses=(504, 524),
        severity=_WARNING,
    ),
    Reason(
        "overloaded",
        "the server has too much to do",
        Party.API,
        "Wait and try again, with growing pauses.",
        statuses=(503, 529),
        severity=_WARNING,
    ),
)

_SERVERS = Reason(
    "server-error",
    "the server failed",
    Party.API,
    "Try again after a pause; where it goes on, send the request id to the provider.",
    severity=_WARNING,
)
_OTHER = Reason(
    "bad-request",
    "it did not take the request as it is",
    Party.CLIENT,
    "Read what it says; moontap lint looks through the request.",
)
