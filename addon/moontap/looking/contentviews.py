"""moontap's content views, as mitmproxy wants them.

The bytes of a message with what mitmproxy knows of it in, text for the pane out, masked. A view
never fails: what cannot be read stands there raw, after the reason. Nothing is changed.
"""

import logging
from collections.abc import Callable

from mitmproxy import contentviews, http
from mitmproxy.contentviews import Contentview, Metadata, SyntaxHighlight

from moontap.looking import reading
from moontap.looking.masked import masked
from moontap.looking.views.events import events_page
from moontap.looking.views.page import FOLD
from moontap.looking.views.reply import reply_page
from moontap.looking.views.request import request_page
from moontap.redact.flow import Redactor
from moontap.report.text import plain
from moontap.rules import Rules

logger = logging.getLogger(__name__)

PRIORITY = 2.0
"""mitmproxy's own views say at most 1."""

type Show = Callable[[http.HTTPFlow, int | None], str]
"""A page of a flow, its texts folded to a length, or not at all. Raises ValueError."""


def _request(flow: http.HTTPFlow, fold: int | None) -> str:
    return request_page(reading.request_of(flow), fold)


def _reply(flow: http.HTTPFlow, fold: int | None) -> str:
    return reply_page(reading.reply_of(flow), fold)


def _events(flow: http.HTTPFlow, fold: int | None) -> str:
    if not reading.is_stream(flow):
        return f"# this reply came whole: there are no events\n{_reply(flow, fold)}"
    return events_page(reading.stream_of(flow))


class View(Contentview):
    """One of them. request, reply: what it shows of either side. chosen: for which of them it is
    chosen by itself. full: nothing is folded.

    fold: characters that are shown of a text, for all views; None shows all. mask: takes secrets
    out of what is shown. redactor: takes them out of a flow, before. seen: told which flow a person
    looks at.
    """

    fold: int | None = FOLD
    mask: Callable[[str], str] = staticmethod(lambda text: text)
    redactor: Callable[[], Redactor] = staticmethod(Redactor)
    seen: Callable[[http.HTTPFlow], None] = staticmethod(lambda flow: None)

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
        try:
            text = self._shown(data, metadata)
        except Exception as error:  # whatever it is, a person wants to see something
            text = raw(data, _reason(error, self.name))
        return View.mask(text)

    def _shown(self, data: bytes, metadata: Metadata) -> str:
        flow, message = metadata.flow, metadata.http_message
        if not isinstance(flow, http.HTTPFlow) or message is None:
            raise ValueError("this is no HTTP message")
        View.seen(flow)
        flow = masked(flow, View.redactor())
        sent = isinstance(message, http.Request)
        show, shown = (self._request, flow.request) if sent else (self._reply, flow.response)
        try:
            return show(flow, None if self._full else View.fold)
        except Exception as error:
            if shown is not None:
                data = shown.get_content(strict=False) or b""
            return raw(data, _reason(error, self.name))


def raw(data: bytes, reason: str) -> str:
    """Bytes as text, with why they are not shown in another way."""
    lines = data.decode("utf-8", "backslashreplace").split("\n")
    return "\n".join([f"# shown raw: {plain(reason)}", *map(plain, lines)])


def _reason(error: Exception, name: str) -> str:
    if isinstance(error, ValueError):
        return str(error)
    logger.debug("moontap: the view %s failed", name, exc_info=error)
    return repr(error)


def _after(line: str, show: Show) -> Show:
    return lambda flow, fold: f"# {line}\n{show(flow, fold)}"


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
) -> None:
    """Offer the views; once a process, with the latest addon's mask. rules: as they are when
    somebody looks."""
    View.mask, View.seen = staticmethod(mask), staticmethod(seen)
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
