"""moontap's content views, as mitmproxy wants them.

The bytes of a message with what mitmproxy knows of it in, text for the pane out, masked. A view
never fails: what cannot be read stands there raw, after the reason; what cannot be masked does not.
Nothing is changed.
"""

import logging
from collections.abc import Callable
from dataclasses import replace

from mitmproxy import contentviews, http
from mitmproxy.contentviews import Contentview, Metadata, SyntaxHighlight

from moontap.looking import reading
from moontap.looking.facts import Facts
from moontap.looking.masked import masked
from moontap.looking.paced import Paced
from moontap.looking.views.events import events_page
from moontap.looking.views.page import FOLD
from moontap.looking.views.reply import reply_page
from moontap.looking.views.request import request_page
from moontap.redact.flow import Redactor
from moontap.report.text import plain
from moontap.rules import Rules

logger = logging.getLogger(__name__)

_PACED = Paced()

_MOST_RAW = 1024 * 1024
_NO_HTTP = "this is no HTTP message"

PRIORITY = 2.0
"""mitmproxy's own views say at most 1."""

type Show = Callable[[http.HTTPFlow, Facts | None, int | None], str]
"""A page of a flow and of what is known of it, its texts folded to a length, or not at all. Raises
ValueError."""


def _request(flow: http.HTTPFlow, facts: Facts | None, fold: int | None) -> str:
    return request_page(reading.request_of(flow, facts), fold)


def _reply(flow: http.HTTPFlow, facts: Facts | None, fold: int | None) -> str:
    return reply_page(reading.reply_of(flow, facts), fold)


def _events(flow: http.HTTPFlow, facts: Facts | None, fold: int | None) -> str:
    if not reading.is_stream(flow):
        return f"# this reply came whole: there are no events\n{_reply(flow, facts, fold)}"
    return events_page(reading.stream_of(flow), fold)


class View(Contentview):
    """One of them. request, reply: what it shows of either side. chosen: for which of them it is
    chosen by itself. full: nothing is folded.

    fold: characters that are shown of a text, for all views; None shows all. mask: takes secrets
    out of what is shown. redactor: takes them out of a flow, before. seen: told which flow a person
    looks at. facts: what the run has come to know of a flow.
    """

    fold: int | None = FOLD
    mask: Callable[[str], str] = staticmethod(lambda text: text)
    redactor: Callable[[], Redactor] = staticmethod(Redactor)
    seen: Callable[[http.HTTPFlow], None] = staticmethod(lambda flow: None)
    facts: Callable[[http.HTTPFlow], Facts | None] = staticmethod(lambda flow: None)

    def __init__(
        self,
        name: str,
        request: Show,
        reply: Show,
        chosen: type[http.Message] | None = None,
        *,
        full: bool = False,
    ) -> None:
        self._name = name
        self._request = request
        self._reply = reply
        self._chosen = chosen
        self._full = full

    @property
    def name(self) -> str:
        return self._name

    @property
    def syntax_highlight(self) -> SyntaxHighlight:
        return "yaml"

    def render_priority(self, data: bytes, metadata: Metadata) -> float:
        """Above all others for what moontap reads."""
        flow, message = metadata.flow, metadata.http_message
        if self._chosen is None or not isinstance(message, self._chosen):
            return -1
        if not isinstance(flow, http.HTTPFlow) or reading.wire_of(flow) is None:
            return -1
        return PRIORITY

    def prettify(self, data: bytes, metadata: Metadata) -> str:
        """The text. Never raises."""
        flow = metadata.flow
        if not isinstance(flow, http.HTTPFlow) or not isinstance(
            metadata.http_message, http.Response
        ):
            return self._page(data, metadata)
        key, live = f"{self.name} {View.fold}", reading.is_live(flow)
        return _PACED.page(flow, key, lambda: self._page(data, metadata), live=live)

    def _page(self, data: bytes, metadata: Metadata) -> str:
        try:
            return View.mask(self._shown(data, metadata))
        except Exception as error:  # what could not be masked is not shown
            logger.debug("moontap: the view %s failed", self.name, exc_info=error)
            kind = type(error).__name__  # its text may quote the body
            return f"# not shown: it could not be searched for secrets ({kind})\n"

    def _shown(self, data: bytes, metadata: Metadata) -> str:
        flow, message = metadata.flow, metadata.http_message
        redactor = View.redactor()
        if not isinstance(flow, http.HTTPFlow):
            return raw(redactor.mask_body(data), _NO_HTTP)
        try:
            View.seen(flow)
        except Exception as error:
            logger.debug("moontap: nobody was told what is looked at", exc_info=error)
        facts = _masked_facts(View.facts(flow))
        known = flow
        flow, left = masked(known, redactor)
        if message is None:
            return raw(_of_websocket(metadata, known, flow) or redactor.mask_body(data), _NO_HTTP)
        sent = isinstance(message, http.Request)
        show, shown = (self._request, flow.request) if sent else (self._reply, flow.response)
        note = left.sent if sent else left.came
        try:
            page = show(flow, facts, None if self._full else View.fold)
            return f"# {note}\n{page}" if note else page
        except Exception as error:
            if shown is not None:
                data = shown.get_content(strict=False) or b""
            return raw(data, "; ".join(filter(None, (_reason(error, self.name), note))))


def raw(data: bytes, reason: str) -> str:
    """Bytes as text, with why they are not shown in another way."""
    left = len(data) - _MOST_RAW
    lines = data[:_MOST_RAW].decode("utf-8", "backslashreplace").split("\n")
    more = [f"[… {left:,} bytes more …]"] if left > 0 else []
    return "\n".join([f"# shown raw: {plain(reason)}", *map(plain, lines), *more])


def _of_websocket(shown: Metadata, flow: http.HTTPFlow, clean: http.HTTPFlow) -> bytes | None:
    """A WebSocket message without the secrets of its flow; None where it is none of it."""
    if not (flow.websocket and clean.websocket):
        return None
    pairs = zip(flow.websocket.messages, clean.websocket.messages, strict=False)
    return next((one.content for of, one in pairs if of is shown.websocket_message), None)


def _reason(error: Exception, name: str) -> str:
    if isinstance(error, ValueError):
        return str(error)
    logger.debug("moontap: the view %s failed", name, exc_info=error)
    return repr(error)


def _after(line: str, show: Show) -> Show:
    return lambda flow, facts, fold: f"# {line}\n{show(flow, facts, fold)}"


def _masked_facts(facts: Facts | None) -> Facts | None:
    """Before a sentence is wrapped: half a key is no longer known for one."""
    if facts is None:
        return None
    findings = [
        replace(one, message=View.mask(one.message), remedy=View.mask(one.remedy))
        for one in facts.findings
    ]
    return replace(facts, findings=findings)


_SENT = "this view is for what came back; this was sent:"
_CAME = "this view is for what was sent; this came back:"

VIEWS = (
    View("Moontap-reply", _after(_SENT, _request), _reply, http.Response),
    View("Moontap-request", _request, _after(_CAME, _reply), http.Request),
    View("Moontap-events", _after(_SENT, _request), _events),
    View("Moontap-full", _request, _reply, full=True),
)


def install(
    mask: Callable[[str], str],
    seen: Callable[[http.HTTPFlow], None],
    rules: Callable[[], Rules],
    facts: Callable[[http.HTTPFlow], Facts | None] = lambda flow: None,
) -> None:
    """Offer the views; once a process, with the latest addon's mask. rules, facts: as they are when
    somebody looks."""
    View.mask, View.seen, View.facts = staticmethod(mask), staticmethod(seen), staticmethod(facts)
    View.redactor = staticmethod(_following(rules))
    for view in VIEWS:
        if contentviews.registry.get(view.name.lower()) is not view:
            contentviews.add(view)


def _following(rules: Callable[[], Rules]) -> Callable[[], Redactor]:
    """A redactor of its own for the thread that shows; made anew where the rules are others."""
    known = rules()
    redactor = Redactor(known)

    def latest() -> Redactor:
        nonlocal known, redactor
        if (now := rules()) is not known:
            known, redactor = now, Redactor(now)
        return redactor

    return latest
