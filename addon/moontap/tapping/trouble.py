"""What went wrong during a run, kept for the end of it or said as it happens.

Log records, failed flows and refusals in, lines with their count out. A line never holds a key, a
header or a query. It never prints.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mitmproxy import http

from moontap.capture import metadata

# mitmproxy's words for a client that went away: Esc in Claude Code. Counted as incomplete.
_CLIENT_LEFT = "Client disconnected."
# What they say for a person to read is of the level INFO, which is left out unless asked for.
_TALKERS = ("mitmproxy", "moontap")


class Troubles:
    """The lines of one run, each with how often it came. Also a mitmproxy addon.

    mask: takes secrets out of a line. unreachable: a request got no answer at all.
    """

    def __init__(self, mask: Callable[[str], str]) -> None:
        self._mask = mask
        self._tell: Callable[[str], None] = lambda line: None
        self.lines: Counter[str] = Counter()
        self.unreachable = False

    def tell(self, tell: Callable[[str], None]) -> None:
        """Say each line when it is new, from now on; those that there are already, at once."""
        self._tell = tell
        for line in self.lines:
            tell(line)

    def log(self, record: logging.LogRecord) -> None:
        """Take a record's message; of an exception only its kind, as its text may quote a body."""
        text = record.getMessage().removeprefix("moontap: ")
        if record.exc_info and record.exc_info[0]:
            text += f" ({record.exc_info[0].__name__})"
        self._add(text)

    def response(self, flow: http.HTTPFlow) -> None:
        """Note what upstream refused; what the guard refused is in the log."""
        if metadata.BLOCKED in flow.metadata:
            return
        if flow.response and flow.response.status_code >= 400:
            reason = f"{flow.response.status_code} {flow.response.reason}".strip()
            self._add(f"{flow.request.host} answered {reason} to {_asked(flow)}")

    def error(self, flow: http.HTTPFlow) -> None:
        """Note a flow that failed."""
        if flow.error and flow.error.msg != _CLIENT_LEFT:
            self.unreachable |= flow.response is None
            self._add(f"{_asked(flow)} to {flow.request.host} failed: {flow.error.msg}")

    def _add(self, text: str) -> None:
        line = self._mask(" ".join(text.split()))
        self.lines[line] += 1
        if self.lines[line] == 1:
            self._tell(line)


class _Handler(logging.Handler):
    def __init__(self, troubles: Troubles) -> None:
        super().__init__(logging.WARNING)
        self._troubles = troubles

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._troubles.log(record)
        except Exception:  # a handler must not raise, nor print while an agent runs
            self._troubles.lines["a log record could not be read"] += 1


@contextmanager
def listening(troubles: Troubles, *, page: bool = False) -> Iterator[None]:
    """Have warnings of all libraries go to `troubles` and nowhere else.

    Without a handler Python prints them itself, into the middle of the agent's screen. page: there
    is one with an event log, which gets all that mitmproxy and moontap say.
    """
    root, handler = logging.getLogger(), _Handler(troubles)
    root.addHandler(handler)
    logging.captureWarnings(True)
    levels = {name: logging.getLogger(name).level for name in _TALKERS if page}
    for name in levels:
        logging.getLogger(name).setLevel(logging.INFO)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
        logging.captureWarnings(False)
        root.removeHandler(handler)


def _asked(flow: http.HTTPFlow) -> str:
    return f"{flow.request.method} {flow.request.path.partition('?')[0]}"
