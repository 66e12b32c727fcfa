"""Pages of streams under way, made no more often than there is time for.

mitmweb asks for the open page anew each time that the stream has grown, and it is made on the
thread that carries the traffic: of a reply of 12 MB that took half a minute. A page in, the same or
the last one out.
"""

import time
from collections.abc import Callable
from weakref import WeakKeyDictionary

from mitmproxy import http

from moontap.looking.board import SHARE


class Paced:
    """The last pages of the flows under way. clock: seconds."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        # By the name of the view: the page, and when it may be made again.
        self._pages: WeakKeyDictionary[http.HTTPFlow, dict[str, tuple[str, float]]]
        self._pages = WeakKeyDictionary()

    def page(self, flow: http.HTTPFlow, name: str, make: Callable[[], str], *, live: bool) -> str:
        """The page. live: the flow is under way; else it is always made, and none is kept."""
        if not live:
            self._pages.pop(flow, None)
            return make()
        pages = self._pages.setdefault(flow, {})
        begun = self._clock()
        last, due = pages.get(name, ("", begun))
        if begun < due:
            return last
        page = make()
        ended = self._clock()
        pages[name] = page, ended + SHARE * (ended - begun)
        return page
